// SPDX-License-Identifier: GPL-2.0
/*
 * The system has slept. No clock that this module or a shim looks at has run meanwhile: deadlines and leases
 * go on where they were, so that a peer which is there has its time to say so. Others were awake. What they
 * have given up meanwhile they say until they are heard (gone.c, watch.c); what a subnet manager has said
 * it does not say again, so it is asked.
 */
#include <linux/ktime.h>
#include <linux/suspend.h>

#include "conn.h"
#include "device.h"
#include "sa.h"
#include "sleep.h"

/**
 * struct before - what was when the system went to sleep; the PM core's, one sleep after the other
 * @slept_ns: how long it had slept at all
 * @conns: connections of this host
 * @moving: how many of them were on a move
 */
static struct before {
	u64 slept_ns;
	unsigned int conns;
	unsigned int moving;
} before;

/* CLOCK_MONOTONIC, and jiffies, stand still when the system sleeps. */
static u64 slept_ns(void)
{
	return ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_BOOT));
}

static int count(struct repath_conn *conn, void *arg)
{
	before.conns += conn->state == REPATH_CONN_READY;
	before.moving += conn->state == REPATH_CONN_READY && conn->moving;
	return 0;
}

static void falls_asleep(void)
{
	before = (struct before){ .slept_ns = slept_ns() };
	mutex_lock(&repath_conn_mutex);
	repath_conn_for_each(count, NULL);
	mutex_unlock(&repath_conn_mutex);
}

static void wakes(void)
{
	u64 ns = slept_ns() - before.slept_ns;
	struct repath_device *dev;

	if (before.conns)
		pr_info("repath: the system has slept for %llu s, with %u connections, %u of them on a move: their peers may have given them up\n",
			DIV_ROUND_CLOSEST_ULL(ns, NSEC_PER_SEC), before.conns, before.moving);
	repath_device_for_each(dev, NULL)
		repath_sa_woken(dev);
}

static int sleep_event(struct notifier_block *block, unsigned long event, void *unused)
{
	switch (event) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
		falls_asleep();
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
		wakes();
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block sleep_block = { .notifier_call = sleep_event };

int repath_sleep_init(void)
{
	return register_pm_notifier(&sleep_block);
}

void repath_sleep_exit(void)
{
	unregister_pm_notifier(&sleep_block);
}
