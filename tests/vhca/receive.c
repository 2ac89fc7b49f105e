// SPDX-License-Identifier: GPL-2.0
#include "qp.h"
#include "rc.h"
#include "receive.h"
#include "trap.h"
#include "uc.h"
#include "ud.h"

static void remember(struct vhca_batch *batch, struct rvt_qp *qp)
{
	unsigned int i;

	for (i = 0; i < batch->count; i++)
		if (batch->qp[i] == qp)
			return;
	if (batch->count == VHCA_BATCH) {
		vhca_qp_schedule(qp);
		return;
	}
	rvt_get_qp(qp);
	batch->qp[batch->count++] = qp;
}

void vhca_batch_run(struct vhca_batch *batch)
{
	while (batch->count) {
		struct rvt_qp *qp = batch->qp[--batch->count];

		vhca_qp_engine(qp);
		rvt_put_qp(qp);
	}
}

static void drop(struct vhca_port *port)
{
	port->ibp.n_pkt_drops++;
}

/* Whether the partition is right: QP1 is in all of the port's, others are in one (10.9.8). */
static bool pkey_ok(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx)
{
	unsigned int i;

	if (!qp->ibqp.qp_num)
		return true;
	if (qp->ibqp.qp_num == 1) {
		for (i = 0; i < VHCA_PKEYS; i++)
			if (vhca_pkey_match(port->pkeys[i], rx->bth.pkey))
				return true;
	} else if (vhca_pkey_match(rvt_get_pkey(&port->dev->rdi, port->num - 1, qp->s_pkey_index),
				   rx->bth.pkey)) {
		return true;
	}
	vhca_trap_bad_key(port, IB_NOTICE_TRAP_BAD_PKEY, rx->bth.pkey, rx, qp->ibqp.qp_num);
	return false;
}

static void give(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx,
		 struct vhca_batch *batch)
{
	unsigned long flags = vhca_qp_lock(qp);

	if (!(ib_rvt_state_ops[qp->state] & RVT_PROCESS_RECV_OK) || !pkey_ok(port, qp, rx)) {
		drop(port);
		goto unlock;
	}
	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
		if ((rx->bth.opcode & 0xe0) == IB_OPCODE_RC) {
			vhca_rc_receive(port, qp, rx);
			remember(batch, qp);
		}
		break;
	case IB_QPT_UC:
		if ((rx->bth.opcode & 0xe0) == IB_OPCODE_UC)
			vhca_uc_receive(port, qp, rx);
		break;
	default:
		if ((rx->bth.opcode & 0xe0) == IB_OPCODE_UD && qp->port_num == port->num)
			vhca_ud_receive(port, qp, rx);
		break;
	}
unlock:
	vhca_qp_unlock(qp, flags);
}

static void multicast(struct vhca_port *port, const struct vhca_rx *rx, struct vhca_batch *batch)
{
	struct rvt_mcast *group;
	struct rvt_mcast_qp *member;

	if (!rx->grh || rx->bth.qpn != IB_MULTICAST_QPN)
		return;
	group = rvt_mcast_find(&port->ibp, &rx->grh->dgid, rx->dlid);
	if (!group)
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(member, &group->qp_list, list)
		give(port, member->qp, rx, batch);
	rcu_read_unlock();
	if (atomic_dec_return(&group->refcount) <= 1)
		wake_up(&group->wait);
}

static void unicast(struct vhca_port *port, const struct vhca_rx *rx, struct vhca_batch *batch)
{
	struct rvt_qp *qp;

	rcu_read_lock();
	qp = rvt_lookup_qpn(&port->dev->rdi, &port->ibp, rx->bth.qpn);
	if (qp)
		give(port, qp, rx, batch);
	else
		drop(port);
	rcu_read_unlock();
}

/* VL15 is QP0's alone, and QP0 has no other (IBA 1.2.1 vol 1, 3.5.8, 14.2.1). */
static bool lane_ok(struct vhca_port *port, const struct vhca_rx *rx)
{
	if (rx->loop)
		return true;
	if (rx->vl == 15 || !rx->bth.qpn)
		return rx->vl == 15 && !rx->bth.qpn;
	/* The first data packet says that the other end is active: so are we (7.2.7). */
	if (port->state == IB_PORT_ARMED)
		vhca_port_set_state(port, IB_PORT_ACTIVE);
	return port->state == IB_PORT_ACTIVE;
}

void vhca_receive(struct vhca_port *port, u8 *bytes, size_t size, bool loop,
		  struct vhca_batch *batch)
{
	struct vhca_counters *c = &port->counters;
	struct vhca_rx rx;
	bool mcast;

	if (!vhca_packet_parse(&rx, bytes, size, !loop)) {
		c->rcv_errors++;
		return;
	}
	rx.loop = loop;
	mcast = rx.dlid >= VHCA_LID_MULTICAST && rx.dlid != VHCA_LID_PERMISSIVE;
	if (!loop) {
		c->rcv_pkts++;
		c->rcv_data += size / 4;
		if (mcast)
			c->multicast_rcv++;
		else
			c->unicast_rcv++;
	}
	if (!lane_ok(port, &rx))
		drop(port);
	else if (mcast)
		multicast(port, &rx, batch);
	else if (vhca_is_my_lid(port, rx.dlid) ||
		 (rx.dlid == VHCA_LID_PERMISSIVE && !rx.bth.qpn))
		unicast(port, &rx, batch);
	else
		drop(port);
}
