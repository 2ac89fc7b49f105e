// SPDX-License-Identifier: GPL-2.0
/*
 * Draining a send queue (IBA 1.2.1 vol 1, 10.3.1.5). In SQD what was begun goes on, resends
 * included, and nothing new begins; s_tail is the first request that was not begun. rdmavt knows
 * the state and refuses what is not allowed in it; here is when it is drained, and telling so.
 */
#include "qp.h"

void vhca_sqd_check(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	lockdep_assert_held(&qp->s_lock);
	if (qp->state != IB_QPS_SQD || !vqp->draining)
		return;
	/* rvt_send_complete() clears s_draining by a measure of its own. */
	vqp->draining = qp->s_last != qp->s_tail;
	qp->s_draining = vqp->draining;
	if (!vqp->draining && vqp->drain_notify) {
		vqp->drain_notify = false;
		vhca_qp_event(qp, IB_EVENT_SQ_DRAINED);
	}
}
