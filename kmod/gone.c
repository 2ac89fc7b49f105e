// SPDX-License-Identifier: GPL-2.0
/*
 * GONE. Nobody says it again when the process has ended, and a peer that is suspended and does not hear it
 * stays so until its lease ends. So it is said until the peer has heard it, as long as a lease lasts: its
 * host may be cut off, or asleep. A peer that is not suspended could not be moved with whom it takes for being
 * there: it is told for some seconds. A few at a time, and where a port is known not to answer one:
 * nothing else waits behind it.
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "gone.h"
#include "op.h"
#include "silent.h"
#include "xprt.h"

#define TRIES		5	/* so often in a row, then seldom */
#define TRIES_TIME	(20 * HZ)	/* or so long, where its port does not answer others, either */
#define REFUSED_TRIES	3	/* it may have been damaged, or have nobody who waits for it */
#define BATCH		16
#define SELDOM_MAX	16384
#define LOOKED_MAX	16384	/* at a time, of those whose port does not answer */
#define GONE_MAX	65536	/* of all */
#define PERIOD		HZ
#define SELDOM		(10 * HZ)

/**
 * struct gone - a GONE that was not answered yet
 * @node: in @soon or @seldom between two tries; in @under_way, if @again
 * @dev: from where; holds a reference
 * @to: the peer's port
 * @waited_for: its peer is suspended
 * @again: it is one of those that are sent again
 * @rare: in @seldom, or it was before
 * @tries: how often it was sent, and has ended
 * @since: jiffies, when it had ended for the first time, sent or not
 * @next: jiffies, when it is sent again
 * @len: bytes of @data
 * @data: the message
 */
struct gone {
	struct list_head node;
	struct repath_device *dev;
	struct repath_addr to;
	bool waited_for;
	bool again;
	bool rare;
	unsigned int tries;
	unsigned long since;
	unsigned long next;
	u32 len;
	u8 data[];
};

/* Protects all of these. */
static DEFINE_SPINLOCK(gone_lock);
static LIST_HEAD(soon);		/* each in the order in which they are sent again */
static LIST_HEAD(seldom);
static unsigned int seldom_count;
static LIST_HEAD(under_way);	/* of those that are sent again */
static unsigned int again;	/* in it */
static bool heard;		/* one of them was: there may be others that will be */
static unsigned long planned;	/* jiffies, when @again_work runs; valid while it is pending */

static atomic_t alive = ATOMIC_INIT(0);

static void say_again(struct work_struct *work);
static DECLARE_DELAYED_WORK(again_work, say_again);

static void gone_free(struct gone *gone)
{
	repath_device_put(gone->dev);
	kfree_sensitive(gone);		/* it has tokens */
	atomic_dec(&alive);
}

static bool is_young(const struct gone *gone)
{
	return gone->tries < TRIES && time_before(jiffies, gone->since + TRIES_TIME);
}

/* Is it worth another try? */
static bool is_said_again(const struct gone *gone, int err, u8 status)
{
	if (!err && status == REPATH_PEER_OK)
		return false;
	/* A device that goes away has no other one. */
	if (err == -ESHUTDOWN)
		return false;
	if (!err && status != REPATH_PEER_BUSY)
		return gone->tries < REFUSED_TRIES;
	return is_young(gone) || (gone->waited_for && !repath_conn_lease_is_over(gone->since));
}

static struct gone *first_of(struct list_head *list)
{
	return list_first_entry_or_null(list, struct gone, node);
}

/*
 * For another try. Of those that were said often, or for long, there may be so many only: the one
 * that was said longest ago has to go, and is returned. The others, some of which were not sent
 * yet, are all kept: there are not more of them than are let in.
 */
static struct gone *keep(struct gone *gone)
{
	struct gone *out = NULL;

	lockdep_assert_held(&gone_lock);
	gone->rare = !is_young(gone);
	gone->next = jiffies + (gone->rare ? SELDOM : PERIOD);
	list_add_tail(&gone->node, gone->rare ? &seldom : &soon);
	if (gone->rare && ++seldom_count > SELDOM_MAX) {
		out = first_of(&seldom);
		list_del(&out->node);
		seldom_count--;
	}
	return out;
}

/* The one that is sent next. */
static struct gone *next_one(void)
{
	struct gone *a = first_of(&soon), *b = first_of(&seldom);

	lockdep_assert_held(&gone_lock);
	return !a || (b && time_before(b->next, a->next)) ? b : a;
}

/*
 * With a pause in which nothing is under way, as long as none is heard: a suspend waits for that.
 * Others end all the time: what is planned is not put off for them.
 */
static void plan(void)
{
	struct gone *gone = next_one();
	long delay;

	if (!gone || (again && !heard))
		return;
	delay = max_t(long, gone->next - jiffies, heard ? 0 : PERIOD);
	heard = false;
	if (delayed_work_pending(&again_work) && !time_after(planned, jiffies + delay))
		return;
	planned = jiffies + delay;
	mod_delayed_work(system_power_efficient_wq, &again_work, delay);
}

static void end_try(struct gone *gone, int err, u8 status)
{
	struct gone *out = gone;

	spin_lock(&gone_lock);
	if (gone->again) {
		list_del(&gone->node);
		again--;
		heard |= !err;
	} else {
		/* It may have waited for long in the carrier. */
		gone->since = jiffies;
	}
	if (is_said_again(gone, err, status))
		out = keep(gone);
	plan();
	spin_unlock(&gone_lock);
	if (out)
		gone_free(out);
}

static void answered(void *arg, int err, u8 status)
{
	struct gone *gone = arg;

	/* Else it was not sent. */
	if (err != -EHOSTDOWN)
		gone->tries++;
	mutex_lock(&repath_conn_mutex);
	if (err)
		repath_silent_add(gone->dev, &gone->to, err);
	else
		repath_silent_answered(gone->dev, &gone->to);
	mutex_unlock(&repath_conn_mutex);
	end_try(gone, err, status);
	repath_op_conn_changed();
}

/* Is another one sent to its port again at the moment? */
static bool is_behind(const struct gone *gone)
{
	const struct gone *other;
	bool behind = false;

	spin_lock(&gone_lock);
	list_for_each_entry(other, &under_way, node)
		behind |= other != gone && other->dev == gone->dev &&
			  other->to.port == gone->to.port &&
			  repath_addr_is_same_place(&other->to, &gone->to);
	spin_unlock(&gone_lock);
	return behind;
}

/*
 * Of a thousand whose peers were at one host that does not answer, some are sent. Those that are
 * sent again one by one: the first is under way for longer than the pause.
 */
static int is_of_use(void *arg)
{
	const struct gone *gone = arg;
	unsigned long age = is_behind(gone) ? MAX_JIFFY_OFFSET : PERIOD;
	bool silent;

	mutex_lock(&repath_conn_mutex);
	silent = repath_silent_was(gone->dev, &gone->to, age);
	mutex_unlock(&repath_conn_mutex);
	return silent ? -EHOSTDOWN : 0;
}

static int gone_send(struct gone *gone)
{
	void *data = kmemdup(gone->data, gone->len, GFP_KERNEL);

	if (!data)
		return -ENOMEM;
	return repath_xprt_send(gone->dev, &(struct repath_xprt_send){
		.to = &gone->to, .type = REPATH_MSG_GONE, .data = data, .len = gone->len,
		.check = is_of_use, .done = answered, .arg = gone,
	});
}

/* As if it had been answered: without memory it is tried again, without the device it can not be. */
static void gone_send_or_end(struct gone *gone)
{
	int err = gone_send(gone);

	if (err)
		end_try(gone, err == -ENOMEM ? err : -ESHUTDOWN, 0);
}

/* One whose time has come; it counts as under way. */
static struct gone *take_due(void)
{
	struct gone *gone;

	spin_lock(&gone_lock);
	gone = again < BATCH ? next_one() : NULL;
	if (gone && time_before(jiffies, gone->next))
		gone = NULL;
	if (gone) {
		list_move_tail(&gone->node, &under_way);
		seldom_count -= gone->rare;
		again++;
		gone->again = true;
	}
	spin_unlock(&gone_lock);
	return gone;
}

static void say_again(struct work_struct *work)
{
	unsigned int looked;
	struct gone *gone;

	for (looked = 0; looked < LOOKED_MAX && (gone = take_due()); looked++) {
		if (is_of_use(gone))
			end_try(gone, -EHOSTDOWN, 0);
		else
			gone_send_or_end(gone);
		cond_resched();
	}
	spin_lock(&gone_lock);
	plan();
	spin_unlock(&gone_lock);
}

void repath_gone_say(struct repath_device *dev, const struct repath_addr *to, const void *data,
		     u32 len, bool waited_for)
{
	struct gone *gone;

	if (atomic_inc_return(&alive) > GONE_MAX)
		goto drop;
	gone = kzalloc(struct_size(gone, data, len), GFP_KERNEL);
	if (!gone)
		goto drop;
	gone->dev = repath_device_get(dev);
	gone->to = *to;
	gone->waited_for = waited_for;
	gone->len = len;
	memcpy(gone->data, data, len);
	gone_send_or_end(gone);
	return;
drop:
	atomic_dec(&alive);
	pr_warn_ratelimited("repath: a peer is not told that a connection has ended: %s\n",
			    atomic_read(&alive) >= GONE_MAX ? "too many are" : "no memory");
}

/*
 * The devices are gone, and with them what was under way: nothing is answered any more, and nothing
 * is kept but what waits for its next try.
 */
void repath_gone_exit(void)
{
	struct gone *gone, *next;

	cancel_delayed_work_sync(&again_work);
	list_splice_init(&seldom, &soon);
	list_for_each_entry_safe(gone, next, &soon, node)
		gone_free(gone);
	INIT_LIST_HEAD(&soon);
	seldom_count = 0;
}
