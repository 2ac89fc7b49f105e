// SPDX-License-Identifier: GPL-2.0
/*
 * Probes on exported functions of ib_core. They see outcomes, not attempts:
 *
 *   rdma_restrack_add()         a queue pair or context exists; current has made it
 *   rdma_restrack_commit_del()  a queue pair does not exist any more; its destruction did not fail
 *   rdma_restrack_del()         the same for a context, whose closing can not fail; and for a
 *                               queue pair where there is no rdma_restrack_commit_del()
 *   ib_modify_qp(), ib_modify_qp_with_udata(), on return: a modification has succeeded
 *
 * Handlers run with preemption off: they neither sleep nor wait, and what they can not do is
 * counted and made good by adoption.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "adopt.h"
#include "hooks.h"
#include "range.h"
#include "stat.h"
#include "track.h"

static unsigned int watch_ms = 1000;
REPATH_RANGE_PARAM(watch_ms, 10, 3600000, 0444);
MODULE_PARM_DESC(watch_ms, "how often to look for probes that were missed, in ms (1000; 10 to 3600000)");

static int on_restrack_add(struct kprobe *kp, struct pt_regs *regs)
{
	struct rdma_restrack_entry *res = (void *)regs_get_kernel_argument(regs, 0);
	struct repath_qp *rqp;

	switch (res->type) {
	case RDMA_RESTRACK_QP:
		rqp = repath_track_qp_add(container_of(res, struct ib_qp, res),
					  rdma_is_kernel_res(res) ? NULL : res->task,
					  res->kern_name, GFP_NOWAIT | __GFP_NOWARN, 0);
		if (rqp)
			repath_qp_put(rqp);
		break;
	case RDMA_RESTRACK_CTX:
		if (res->task)
			repath_track_ctx_add(container_of(res, struct ib_ucontext, res), res->task,
					     GFP_NOWAIT | __GFP_NOWARN, 0);
		break;
	default:
		break;
	}
	return 0;
}
NOKPROBE_SYMBOL(on_restrack_add);

static int on_restrack_del(struct kprobe *kp, struct pt_regs *regs)
{
	struct rdma_restrack_entry *res = (void *)regs_get_kernel_argument(regs, 0);

	if (res->type == RDMA_RESTRACK_QP)
		repath_track_qp_gone(container_of(res, struct ib_qp, res));
	else if (res->type == RDMA_RESTRACK_CTX)
		repath_track_ctx_gone(container_of(res, struct ib_ucontext, res));
	return 0;
}
NOKPROBE_SYMBOL(on_restrack_del);

/* What a modification was called with; @attr is the caller's, who waits for the return. */
struct modify_call {
	struct ib_qp *qp;
	const struct ib_qp_attr *attr;
	int mask;
};

static int on_modify_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct modify_call *call = (struct modify_call *)ri->data;
	struct ib_qp *qp = (void *)regs_get_kernel_argument(regs, 0);

	call->qp = qp->real_qp;
	call->attr = (void *)regs_get_kernel_argument(regs, 1);
	call->mask = (int)regs_get_kernel_argument(regs, 2);
	return 0;
}
NOKPROBE_SYMBOL(on_modify_entry);

static int on_modify_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const struct modify_call *call = (const struct modify_call *)ri->data;

	if (!(int)regs_return_value(regs))
		repath_track_qp_modified(call->qp, call->attr, call->mask);
	return 0;
}
NOKPROBE_SYMBOL(on_modify_return);

static struct kprobe probe_add = {
	.symbol_name = "rdma_restrack_add",
	.pre_handler = on_restrack_add,
};

static struct kprobe probes_del[] = {
	{ .symbol_name = "rdma_restrack_del", .pre_handler = on_restrack_del },
#ifdef REPATH_HAVE_RESTRACK_COMMIT_DEL
	{ .symbol_name = "rdma_restrack_commit_del", .pre_handler = on_restrack_del },
#endif
};

/*
 * How many modifications may be under way at once. A driver can sleep in them for milliseconds, and on
 * RoCE ib_core waits up to a second for a neighbour's MAC address.
 */
#define MODIFY_AT_ONCE 4096

#define MODIFY_PROBE(symbol) {				\
	.kp.symbol_name	= symbol,			\
	.entry_handler	= on_modify_entry,		\
	.handler	= on_modify_return,		\
	.data_size	= sizeof(struct modify_call),	\
	.maxactive	= MODIFY_AT_ONCE,		\
}

static struct kretprobe modify_probes[] = {
	MODIFY_PROBE("ib_modify_qp"),
	MODIFY_PROBE("ib_modify_qp_with_udata"),
};

static unsigned long missed_ends, missed_others;
static struct repath_rest rest;
static bool has_settled;

static void watch_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(watch, watch_fn);

static void watch_later(void)
{
	schedule_delayed_work(&watch, msecs_to_jiffies(watch_ms));
}

static void watch_fn(struct work_struct *work)
{
	unsigned long others = probe_add.nmissed;
	unsigned long ends = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(probes_del); i++)
		ends += probes_del[i].nmissed;
	for (i = 0; i < ARRAY_SIZE(modify_probes); i++)
		others += modify_probes[i].nmissed + modify_probes[i].kp.nmissed;

	/* Who has so much under way that probes are missed again and again does not keep us busy with it. */
	if (repath_rest_over(&rest, ends != missed_ends || others != missed_others)) {
		repath_stat_add(NULL, REPATH_STAT_PROBE_MISSED,
				ends - missed_ends + others - missed_others);
		repath_adopt_rescan_all(ends != missed_ends);
		missed_ends = ends;
		missed_others = others;
	}
	/* What was under way when the hooks came has ended by now, and they did not see that. */
	if (!has_settled) {
		has_settled = true;
		repath_adopt_rescan_all(false);
	}
	repath_adopt_watch();
	watch_later();
}

/* The first @ndel probes at ends and @nmodify return probes are placed: away with them. */
static void unregister_first(int ndel, int nmodify)
{
	while (nmodify--)
		unregister_kretprobe(&modify_probes[nmodify]);
	while (ndel--)
		unregister_kprobe(&probes_del[ndel]);
	unregister_kprobe(&probe_add);
}

/**
 * repath_hooks_init - place all hooks
 *
 * Return: 0, or an error after saying which hook could not be placed; then none is.
 */
int __init repath_hooks_init(void)
{
	int i, k, err;

	err = register_kprobe(&probe_add);
	if (err) {
		pr_err("repath: no probe on %s (%d)\n", probe_add.symbol_name, err);
		return err;
	}
	for (i = 0; i < ARRAY_SIZE(probes_del); i++) {
		err = register_kprobe(&probes_del[i]);
		if (err) {
			pr_err("repath: no probe on %s (%d)\n", probes_del[i].symbol_name, err);
			unregister_first(i, 0);
			return err;
		}
	}
	for (k = 0; k < ARRAY_SIZE(modify_probes); k++) {
		err = register_kretprobe(&modify_probes[k]);
		if (err) {
			pr_err("repath: no return probe on %s (%d)\n",
			       modify_probes[k].kp.symbol_name, err);
			unregister_first(i, k);
			return err;
		}
	}
	watch_later();
	return 0;
}

/**
 * repath_hooks_exit - take all hooks away; no handler runs when this returns
 */
void repath_hooks_exit(void)
{
	cancel_delayed_work_sync(&watch);
	unregister_first(ARRAY_SIZE(probes_del), ARRAY_SIZE(modify_probes));
}
