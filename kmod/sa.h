/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The subnet manager as each InfiniBand port sees it: who it is, whether it tells us of changes,
 * what it is asked.
 */
#ifndef REPATH_SA_H
#define REPATH_SA_H

#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_mad.h>
#include <uapi/ib_repath.h>

#include "learnt.h"
#include "notice.h"

struct repath_device;
struct repath_new_path;

#define REPATH_SA_DLIDS		16	/* more single paths than these are asked for as all */
#define REPATH_SA_TELL_GAP	(10 * HZ)	/* between two events to IPoIB for paths that only changed */
#define REPATH_SA_REPORTS	64	/* more Reports than these wait to be repeated, or are refused */

/* What the work of a port is to do, bits of repath_sa_port::wants. */
enum {
	REPATH_SA_LOOK,		/* read again who the subnet manager is */
	REPATH_SA_RENEW,	/* it may not know us any more */
	REPATH_SA_TABLE,	/* ask for all paths of the port */
	REPATH_SA_FORCED,	/* even if no queue pair uses one: an administrator wants to know */
};

/**
 * struct repath_sa_way - how to reach a subnet manager
 * @kref: the port holds one, each MAD that is under way one
 * @ah: address handle, on the SL that PortInfo says
 * @lid: the subnet manager's
 * @pkey_index: of the default P_Key
 */
struct repath_sa_way {
	struct kref kref;
	struct ib_ah *ah;
	u16 lid;
	u16 pkey_index;
};

/**
 * struct repath_sa_port - an InfiniBand port and its subnet manager
 * @node: in repath_device::sa_ports
 * @dev: the device, which outlives it
 * @port: its number
 * @agent: for the class SubnAdm on QP1; receives its Reports
 * @work: does everything, one at a time
 * @lock: protects what MAD callbacks and events touch: up to @wait. With interrupts off
 * @ending: @work is not to be queued any more
 * @wants: REPATH_SA_*
 * @reports: Reports that were believed and are not looked at yet
 * @nreports: entries of @reports
 * @asked: questions under way
 * @answered: questions that have an answer, or will never have
 * @sm_lid: who is believed; 0: nobody
 * @looked: when a stranger last made us look, jiffies
 * @wait: @asked became empty
 * @mutex: protects what follows. @work holds it, which may ask the device's firmware
 * @on: an administrator has not switched it off
 * @relayed: the hypervisor tells what it hears, and nothing is subscribed
 * @state: enum repath_sm_state
 * @way: to the subnet manager, or NULL
 * @lid: own, with the low @lmc bits 0
 * @lmc: own
 * @sm_sl: the subnet manager's
 * @timeout_ms: of one try; longer than a packet lives in this subnet
 * @gid: own, in the table at 0
 * @subscribed: the subnet manager has answered to all traps
 * @since_ns: when that was asked for, or the hypervisor began: CLOCK_BOOTTIME. No exception that
 *	is older is known to hold
 * @at: jiffies: when to ask for the subscription again; valid if REPATH_SM_WAITING, or ON
 * @backoff: jiffies: to wait after the next failure
 * @pending: traps that are asked for
 * @failed: one of them was not granted
 * @dlids: paths that are to be asked for one by one
 * @ndlids: entries of @dlids
 * @table_at: jiffies: not before that all paths are asked for
 * @table_tries: how often in vain
 * @table_news: the next table is asked for because something has changed
 * @breaks: paths are about to break, and it was not told of all of them what comes instead
 * @breaks_at: jiffies: when to ask instead; valid if @breaks
 * @breaks_all: of none
 * @breaks_all_at: the same for these; valid if @breaks_all
 * @repath_ns: CLOCK_BOOTTIME: when it was told last that all that was to break has got what comes instead
 * @ring: what was heard lately
 * @paths: what was learnt
 * @looks: how often it is to be looked again who uses a path that has changed
 * @look_again: when: jiffies; valid if @looks is not 0
 * @changed: IPoIB is to be told that paths have changed
 * @moved: the same, and soon: somebody is where nobody was before
 * @moved_ns: CLOCK_BOOTTIME: when somebody was last told to have moved
 * @told: when they were, jiffies
 */
struct repath_sa_port {
	struct list_head node;
	struct repath_device *dev;
	u32 port;
	struct ib_mad_agent *agent;
	struct delayed_work work;

	spinlock_t lock;
	bool ending;
	unsigned long wants;
	struct list_head reports;
	unsigned int nreports;
	struct list_head asked;
	struct list_head answered;
	u16 sm_lid;
	unsigned long looked;
	wait_queue_head_t wait;

	struct mutex mutex;
	bool on;
	bool relayed;
	u8 state;
	struct repath_sa_way *way;
	u16 lid;
	u8 lmc;
	u8 sm_sl;
	unsigned int timeout_ms;
	union ib_gid gid;
	bool subscribed;
	u64 since_ns;
	unsigned long at;
	unsigned long backoff;
	unsigned int pending;
	bool failed;
	u16 dlids[REPATH_SA_DLIDS];
	unsigned int ndlids;
	unsigned long table_at;
	unsigned int table_tries;
	bool table_news;
	bool breaks;
	bool breaks_all;
	unsigned long breaks_at;
	unsigned long breaks_all_at;
	u64 repath_ns;
	struct repath_notice_ring ring;
	struct repath_learnts paths;
	unsigned int looks;
	unsigned long look_again;
	bool changed;
	bool moved;
	u64 moved_ns;
	unsigned long told;
};

int repath_sa_init(void);
void repath_sa_exit(void);

/* In ib_client add() and remove(). */
void repath_sa_begin(struct repath_device *dev);
void repath_sa_end(struct repath_device *dev);
void repath_sa_woken(struct repath_device *dev);

void repath_sa_again(struct repath_device *dev);

/* From any context: have the work look at the port. @want: REPATH_SA_*. */
void repath_sa_want(struct repath_sa_port *sp, unsigned int want);
void repath_sa_kick(struct repath_sa_port *sp);

/*
 * For the work: repath_sa_port::mutex is held. @next: jiffies, when the work is to run again; made
 * earlier only.
 */
struct repath_sa_ask;
void repath_sa_subscribe(struct repath_sa_port *sp, unsigned long *next);
void repath_sa_subscribe_answered(struct repath_sa_port *sp, struct repath_sa_ask *ask);
void repath_sa_unsubscribe(struct repath_sa_port *sp);

void repath_sa_query(struct repath_sa_port *sp, unsigned long *next);
void repath_sa_query_answered(struct repath_sa_port *sp, struct repath_sa_ask *ask);
/* False: it was heard before. */
bool repath_sa_heard(struct repath_sa_port *sp, const struct repath_notice *notice);
void repath_sa_not_heard(struct repath_sa_port *sp, unsigned long *next);
void repath_sa_look_again(struct repath_sa_port *sp, unsigned long *next);
void repath_sa_tell_kernel(struct repath_sa_port *sp, unsigned long *next);
void repath_sa_forget(struct repath_sa_port *sp);
void repath_sa_want_paths(struct repath_sa_port *sp, u16 dlid);

/* Keeps a Report for the work; false: there are too many. @relayed: the hypervisor has told it. */
bool repath_sa_keep(struct repath_sa_port *sp, const struct ib_mad *mad, bool relayed);

/* sa_relay.c: tells hypervisors' tools; @notice: NULL: some may be missing. */
void repath_sa_hand_on(struct repath_sa_port *sp, const void *notice);
/* As if it were a Report; -errno. @notice: NULL: the hypervisor begins. */
int repath_sa_relay(struct repath_sa_port *sp, const void *notice);

/* sa_moved.c: who is at another LID: as it was told, or as an answer of all paths shows. */
void repath_sa_heard_moved(struct repath_sa_port *sp, const struct repath_notice *notice, bool late);
bool repath_sa_is_elsewhere(struct repath_sa_port *sp, const struct repath_learnt *path);
bool repath_sa_find_moved(struct repath_sa_port *sp, u64 asked_ns, u64 now, bool elsewhere,
			  bool under_way);

/* sa_heard.c, for sa_moved.c. */
void repath_sa_new_path(const struct repath_notice *notice, struct repath_new_path *path);
void repath_sa_learn_notice(struct repath_sa_port *sp, const struct repath_notice *notice, u8 source,
			    bool unpath);

/* sa_paths.c, for sa_heard.c and sa_moved.c. */
void repath_sa_drop(struct repath_sa_port *sp, const struct repath_learnt *path);
bool repath_sa_is_outdated(struct repath_sa_port *sp, const struct repath_learnt *path, u64 before_ns);
void repath_sa_want_table(struct repath_sa_port *sp, bool news);
void repath_sa_want_path(struct repath_sa_port *sp, u16 dlid);
bool repath_sa_learn(struct repath_sa_port *sp, const struct repath_learnt *path, bool news);
void repath_sa_path_of(const struct repath_learnt *learnt, struct repath_new_path *path);
void repath_sa_hand_all_over(struct repath_sa_port *sp);
void repath_sa_hand_over(struct repath_sa_port *sp, const struct repath_new_path *path);
bool repath_sa_is_breaking(const struct repath_sa_port *sp, const struct repath_learnt *path);
bool repath_sa_is_exception(struct repath_sa_port *sp, u16 slid, u16 dlid);
bool repath_sa_is_own(const struct repath_sa_port *sp, u16 slid);

static inline void repath_sa_sooner(unsigned long *next, unsigned long when)
{
	if (time_before(when, *next))
		*next = when;
}

#endif /* REPATH_SA_H */
