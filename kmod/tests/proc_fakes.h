/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices, processes and queue pairs that are only structs of a suite: a reference is a number, by which the
 * suite sees what was kept, and nothing is freed.
 */
#ifndef REPATH_TESTS_PROC_FAKES_H
#define REPATH_TESTS_PROC_FAKES_H

#include "../device.h"
#include "../proc.h"
#include "../track.h"

void repath_device_put(struct repath_device *dev)
{
	refcount_dec(&dev->kref.refcount);
}

struct repath_proc *repath_proc_get(struct repath_proc *proc)
{
	kref_get(&proc->kref);
	return proc;
}

void repath_proc_put(struct repath_proc *proc)
{
	if (proc)
		refcount_dec(&proc->kref.refcount);
}

void repath_qp_snapshot(struct repath_qp *rqp, u8 *state, struct repath_path *path)
{
	*state = rqp->state;
	*path = rqp->path;
}

#endif /* REPATH_TESTS_PROC_FAKES_H */
