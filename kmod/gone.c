// SPDX-License-Identifier: GPL-2.0
/*
 * GONE. Nobody says it again when the process has ended, and a peer that is suspended and does not hear it
 * stays so until its lease ends. So it is said until the peer has heard it, as long as a lease lasts: its
 * host may be cut off, or asleep. A peer that is not suspended could not be moved with whom it takes for being
 * there: it is told a few times. A few at a time: nothing else waits behind a host that does not answer.
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
#include "xprt.h"

#define TRIES		5	/* so often in a row, then seldom */
#define REFUSED_TRIES	3	/* it may have been damaged, or have nobody who waits for it */
#define BATCH		16
#define UNHEARD_MAX	4096
#define GONE_MAX	65536	/* with those that are under way */
#define PERIOD		HZ
#define SELDOM		(10 * HZ)

/**
 * struct gone - a GONE that was not answered yet
 * @node: in @soon or @seldom between two tries
 * @dev: from where; holds a reference
 * @to: the peer's port
 * @waited_for: its peer is suspended
 * @tries: how often it was sent
 * @since: jiffies, the first time
 * @next: jiffies, when it is sent again
 * @len: bytes of @data
 * @data: the message
 */
struct gone {
	struct list_head node;
	struct repath_device *dev;
	struct repath_addr to;
	bool waited_for;
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
static unsigned int unheard_count;	/* in both */
static unsigned int again;	/* under way, of those that are sent again */
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
	return gone->tries < TRIES || (gone->waited_for && !repath_conn_lease_is_over(gone->since));
}

/*
 * For another try. Where there are too many, one has to go that nobody waits for, was said often, or was said longest ago:
 * it is returned.
 */
static struct gone *keep(struct gone *gone)
{
	bool few = gone->tries < TRIES;
	struct gone *out = NULL;

	spin_lock(&gone_lock);
	if (unheard_count < UNHEARD_MAX) {
		unheard_count++;
	} else if (gone->waited_for) {
		out = list_first_entry(list_empty(&seldom) ? &soon : &seldom, struct gone, node);
		list_del(&out->node);
	} else {
		out = gone;
	}
	if (out != gone) {
		gone->next = jiffies + (few ? PERIOD : SELDOM);
		list_add_tail(&gone->node, few ? &soon : &seldom);
	}
	spin_unlock(&gone_lock);
	return out;
}

static struct gone *first_of(struct list_head *list)
{
	return list_first_entry_or_null(list, struct gone, node);
}

/* The one that is sent next. */
static struct gone *next_one(void)
{
	struct gone *a = first_of(&soon), *b = first_of(&seldom);

	lockdep_assert_held(&gone_lock);
	return !a || (b && time_before(b->next, a->next)) ? b : a;
}

/*
 * With a pause in which nothing is under way: a suspend waits for that. Others end all the time: what is planned is not put
 * off for them.
 */
static void plan(void)
{
	struct gone *gone = next_one();
	long delay;

	if (!gone || again)
		return;
	delay = max_t(long, gone->next - jiffies, PERIOD);
	if (delayed_work_pending(&again_work) && !time_after(planned, jiffies + delay))
		return;
	planned = jiffies + delay;
	mod_delayed_work(system_power_efficient_wq, &again_work, delay);
}

static void answered(void *arg, int err, u8 status)
{
	struct gone *gone = arg;
	bool first = gone->tries == 1;

	if (is_said_again(gone, err, status))
		gone = keep(gone);
	if (gone)
		gone_free(gone);
	spin_lock(&gone_lock);
	if (!first)
		again--;
	plan();
	spin_unlock(&gone_lock);
	repath_op_conn_changed();
}

static int gone_send(struct gone *gone)
{
	void *data = kmemdup(gone->data, gone->len, GFP_KERNEL);

	gone->tries++;
	if (!data)
		return -ENOMEM;
	return repath_xprt_send(gone->dev, &gone->to, 0, REPATH_MSG_GONE, data, gone->len, answered,
				gone);
}

/* As if it had been answered: without memory it is tried again, without the device it can not be. */
static void gone_send_or_end(struct gone *gone)
{
	int err = gone_send(gone);

	if (err)
		answered(gone, err == -ENOMEM ? err : -ESHUTDOWN, 0);
}

static void say_again(struct work_struct *work)
{
	struct gone *gone;
	LIST_HEAD(batch);

	spin_lock(&gone_lock);
	while (again < BATCH && (gone = next_one()) && !time_before(jiffies, gone->next)) {
		list_move_tail(&gone->node, &batch);
		unheard_count--;
		again++;
	}
	plan();
	spin_unlock(&gone_lock);
	while ((gone = first_of(&batch))) {
		list_del(&gone->node);
		gone_send_or_end(gone);
	}
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
	gone->since = jiffies;
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
	unheard_count = 0;
}
