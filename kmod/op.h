/* SPDX-License-Identifier: GPL-2.0 */
/* Operations: suspend, resume and abort of a device, and their order. See docs/protocol.md. */
#ifndef REPATH_OP_H
#define REPATH_OP_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <rdma/ib_verbs.h>
#include <uapi/ib_repath.h>

struct genl_info;
struct net;
struct netlink_callback;
struct pid_namespace;
struct repath_device;
struct repath_kept;
struct repath_proc;
struct repath_qp;
struct sk_buff;

/*
 * Protects the list of operations and all their fields. Taken before repath_conn_mutex; nobody
 * waits for the network or for a process under it.
 */
extern struct mutex repath_op_mutex;

#define REPATH_STAGES (REPATH_STAGE_ABORT + 1)
#define REPATH_OP_TIMEOUT_MS 30000	/* of each phase, unless the administrator says another */

/**
 * struct repath_op_proc - one process inside an operation
 * @node: in repath_op::procs
 * @proc: the process; holds a reference. NULL: it left after the operation's end
 * @tgid: of the process; holds a reference
 * @comm: of the process
 * @stage: the last one that it has reported; of this resume, if it is resumed again
 * @err: positive errno it reported, 0 for none
 * @answered: it has answered the question that the operation waits for now
 * @untold: EV_ABORT did not get to it: it is said again
 * @stage_ns: since the operation's start; 0: not reached. That of REPATH_STAGE_NONE: when it
 *	was asked to resume
 * @kept: the numbers of its queue pairs, from when it leaves the device until it has come back, there or
 *	elsewhere; else NULL
 * @counters: as reported last
 * @counted: @counters were reported
 * @reason: with @err
 */
struct repath_op_proc {
	struct list_head node;
	struct repath_proc *proc;
	struct pid *tgid;
	char comm[TASK_COMM_LEN];
	u8 stage;
	u32 err;
	bool answered;
	bool untold;
	bool counted;
	u64 stage_ns[REPATH_STAGES];
	struct repath_kept *kept;
	struct repath_counters counters;
	char reason[REPATH_REASON_MAX];
};

/**
 * struct repath_op - one operation
 * @node: in the list, oldest first
 * @id: never used twice
 * @kind: enum repath_op_kind: what was asked last
 * @state: enum repath_op_state
 * @dev: the device that is, or was, suspended; holds a reference
 * @new_dev: where RESUME goes; holds a reference
 * @net: namespace that @dev belongs to, whose administrators may change it. Not held: where it ends, the
 *	initial one takes its place, as it does for @dev
 * @ns: PIDs in events and reasons are of this namespace; held
 * @procs: struct repath_op_proc
 * @nprocs: entries of @procs
 * @started_ns: CLOCK_BOOTTIME
 * @timeout_ms: of each phase
 * @deadline: of the current phase, jiffies
 * @hello_deadline: until when peers may answer HELLO, jiffies
 * @left: nobody has the device open any more
 * @left_at: since when, jiffies; valid if @left
 * @err: positive errno of a failure
 * @force: goes on although processes without the shim or unready peers are there
 * @dry_run: ends after the check
 * @checked: the device was looked at
 * @helloed: HELLO was said again to peers that are not READY
 * @look_next: until when the peers are not looked at again, jiffies; valid if @helloed
 * @look_put_off: they were to be looked at before that
 * @asked: EV_CHECK was sent
 * @killed: with @force: who has the device open without the shim got SIGKILL
 * @pinned: the module is held while processes are suspended; with nobody in it, it may go
 * @dev_gone: @dev was removed
 * @unplug: begun because @dev was being removed, by nobody's request
 * @auto_tries: how often it was resumed by nobody's request
 * @auto_any: a device has come since: any one will do
 * @settled: who removes @dev waits for this until it is suspended, or not
 * @reason: for a person
 * @dev_name: name of @dev when it was suspended
 */
struct repath_op {
	struct list_head node;
	u32 id;
	u8 kind;
	u8 state;
	struct repath_device *dev;
	struct repath_device *new_dev;
	struct net *net;
	struct pid_namespace *ns;
	struct list_head procs;
	u32 nprocs;
	u64 started_ns;
	u32 timeout_ms;
	unsigned long deadline;
	unsigned long hello_deadline;
	unsigned long look_next;
	bool left;
	unsigned long left_at;
	u32 err;
	bool force;
	bool dry_run;
	bool checked;
	bool helloed;
	bool look_put_off;
	bool asked;
	bool killed;
	bool pinned;
	bool dev_gone;
	bool unplug;
	u8 auto_tries;
	bool auto_any;
	struct completion *settled;
	char reason[REPATH_REASON_MAX];
	char dev_name[IB_DEVICE_NAME_MAX];
};

int repath_op_init(void);
void repath_op_exit(void);

/* SUSPEND, RESUME, ABORT (administrator), REPLY (shim), OP_GET: op_cmd.c. None waits. */
int repath_op_suspend_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_op_resume_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_op_abort_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_op_reply_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_op_get_doit(struct sk_buff *skb, struct genl_info *info);
int repath_op_dump(struct sk_buff *skb, struct netlink_callback *cb);

/* What makes operations go on. The first two take no lock and do not sleep; the others do. */
void repath_op_ctx_gone(struct repath_device *dev);
void repath_op_conn_changed(void);
void repath_op_device_removed(struct repath_device *dev);
void repath_op_proc_left(struct repath_proc *proc);

/* The operation that the device is in, 0 for none: DEVICE_GET. Takes the mutex. */
u32 repath_op_of_device(struct repath_device *dev);

/* The machine itself (op_run.c): under repath_op_mutex but repath_op_wake(). */
unsigned long repath_op_run(void);
void repath_op_wake(void);
void repath_op_refuse(struct repath_op *op);
void repath_op_go_back(struct repath_op *op);

/* What is asked, and what happens (op.c): under repath_op_mutex. */
struct repath_op *repath_op_start(struct repath_device *dev, struct net *net,
				  struct pid_namespace *ns, u32 timeout_ms, bool force, bool dry_run);
int repath_op_resume(struct repath_op *op, struct repath_device *dev, u32 timeout_ms);
int repath_op_abort(struct repath_op *op);
void repath_op_reply(struct repath_op *op, struct repath_op_proc *p, u8 stage, u32 err,
		     const char *reason, const struct repath_counters *counters);
struct repath_op *repath_op_find(u32 id);
struct repath_op *repath_op_next(u32 after);
struct repath_op *repath_op_on(const struct repath_device *dev);
bool repath_op_between(const struct net *net, const struct repath_device *dev, u64 cookie);
struct repath_op_proc *repath_op_proc_find(struct repath_op *op, const struct repath_proc *proc);
struct repath_op_proc *repath_op_proc_add(struct repath_op *op, struct repath_proc *proc);

/* What it has to do with whom (op_list.c). */
struct repath_op *repath_op_new(struct repath_device *dev, struct net *net,
				struct pid_namespace *ns);
void repath_op_for_each(void (*fn)(struct repath_op *op, void *arg), void *arg);
void repath_op_proc_free(struct repath_op *op, struct repath_op_proc *p);
void repath_op_forget_old(void);
void repath_op_free_all(void);
void repath_op_net_gone(struct net *net);
int repath_op_list_init(void);
void repath_op_list_exit(void);

/* The numbers of queue pairs that are not there (op_kept.c). */
void repath_op_keep(struct repath_op *op, struct repath_op_proc *p);
void repath_op_unkeep(struct repath_op_proc *p);
bool repath_op_keeps(const struct repath_device *dev, u32 qpn, const struct repath_proc *asker);
bool repath_op_keeps_of(const struct repath_proc *proc, u8 type, u32 qpn);
bool repath_op_keeps_at(const struct repath_device *dev, const u8 gid[16], u8 type, u32 qpn,
			u64 cookie, const struct repath_proc *owner,
			const struct repath_qp *named);

/* Its state (op_state.c). */
bool repath_op_is_final(const struct repath_op *op);
const char *repath_op_stage_name(u8 stage);
void repath_op_set_state(struct repath_op *op, u8 state);
void repath_op_unpin(struct repath_op *op);
void repath_op_unsay(struct repath_op *op);
void repath_op_say(struct repath_op *op, u32 err, const char *fmt, ...) __printf(3, 4);

/* What it asks (op_check.c): 0, -EAGAIN: not yet known, or why not, said in @op. */
int repath_op_check_device(struct repath_op *op);
int repath_op_check_conns(struct repath_op *op);
int repath_op_check_again(struct repath_op *op);
bool repath_op_is_released(struct repath_op *op);
void repath_op_kill_foreign(struct repath_op *op);

/* What it says (op_event.c). */
int repath_op_tell(struct repath_op *op, struct repath_op_proc *p, u8 cmd);
void repath_op_event(struct repath_op *op);
int repath_op_fill(struct sk_buff *skb, struct repath_op *op, struct pid_namespace *ns,
		   bool as_fits);
size_t repath_op_fill_size(const struct repath_op *op);

#endif /* REPATH_OP_H */
