// SPDX-License-Identifier: GPL-2.0
/*
 * GONE. What a shim says it repeats itself; this is said when there is no shim any more, and a peer
 * that is suspended and does not hear it stays so until its lease ends. So it is said again for half
 * a minute, a few at a time: nothing else waits behind a host that does not answer.
 */
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <repath_peer.h>

#include "device.h"
#include "gone.h"
#include "op.h"
#include "xprt.h"

#define TRIES		10
#define REFUSED_TRIES	3	/* it may have been damaged, or have nobody who waits for it */
#define BATCH		16
#define UNHEARD_MAX	4096
#define PERIOD		HZ

/**
 * struct gone - a GONE that was not answered yet
 * @node: in @unheard between two tries
 * @dev: from where; holds a reference
 * @to: the peer's port
 * @waited_for: its peer is suspended
 * @tries: how often it was sent
 * @len: bytes of @data
 * @data: the message
 */
struct gone {
	struct list_head node;
	struct repath_device *dev;
	struct repath_addr to;
	bool waited_for;
	unsigned int tries;
	u32 len;
	u8 data[];
};

/* Protects all of these. */
static DEFINE_SPINLOCK(gone_lock);
static LIST_HEAD(unheard);
static unsigned int unheard_count;
static unsigned int again;	/* under way, of those that are sent again */

static void say_again(struct work_struct *work);
static DECLARE_DELAYED_WORK(again_work, say_again);

static void gone_free(struct gone *gone)
{
	repath_device_put(gone->dev);
	kfree_sensitive(gone);		/* it has tokens */
}

/* For another try; false: there has been enough of it. */
static bool keep(struct gone *gone, int err, u8 status)
{
	unsigned int tries = TRIES;
	bool kept = false;

	if (!err && status == REPATH_PEER_OK)
		return false;
	if (!err && status != REPATH_PEER_BUSY)
		tries = REFUSED_TRIES;
	/* A device that goes away has no other one. */
	if (err == -ESHUTDOWN || !gone->waited_for || gone->tries >= tries)
		return false;
	spin_lock(&gone_lock);
	if (unheard_count < UNHEARD_MAX) {
		list_add_tail(&gone->node, &unheard);
		unheard_count++;
		kept = true;
	}
	spin_unlock(&gone_lock);
	return kept;
}

static void answered(void *arg, int err, u8 status)
{
	struct gone *gone = arg;
	bool first = gone->tries == 1;

	if (!keep(gone, err, status))
		gone_free(gone);
	spin_lock(&gone_lock);
	if (!first)
		again--;
	/* With a pause in which nothing is under way: a suspend waits for that. */
	if (!again && unheard_count)
		queue_delayed_work(system_power_efficient_wq, &again_work, PERIOD);
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

static void say_again(struct work_struct *work)
{
	LIST_HEAD(batch);
	struct gone *gone;

	spin_lock(&gone_lock);
	while (again < BATCH && unheard_count) {
		list_move_tail(unheard.next, &batch);
		unheard_count--;
		again++;
	}
	spin_unlock(&gone_lock);
	while ((gone = list_first_entry_or_null(&batch, struct gone, node))) {
		list_del(&gone->node);
		if (gone_send(gone))	/* its device is no more */
			answered(gone, -ESHUTDOWN, 0);
	}
}

void repath_gone_say(struct repath_device *dev, const struct repath_addr *to, const void *data,
		     u32 len, bool waited_for)
{
	struct gone *gone = kzalloc(struct_size(gone, data, len), GFP_KERNEL);

	if (!gone)
		return;
	gone->dev = repath_device_get(dev);
	gone->to = *to;
	gone->waited_for = waited_for;
	gone->len = len;
	memcpy(gone->data, data, len);
	if (gone_send(gone))
		gone_free(gone);
}

/*
 * The devices are gone, and with them what was under way: nothing is answered any more, and nothing
 * is kept but what waits for its next try.
 */
void repath_gone_exit(void)
{
	struct gone *gone, *next;

	cancel_delayed_work_sync(&again_work);
	list_for_each_entry_safe(gone, next, &unheard, node)
		gone_free(gone);
	INIT_LIST_HEAD(&unheard);
	unheard_count = 0;
}
