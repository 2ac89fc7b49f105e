// SPDX-License-Identifier: GPL-2.0
#include <linux/slab.h>

#include "apm.h"
#include "function.h"
#include "lane.h"
#include "qp.h"
#include "rc.h"
#include "trap.h"
#include "uc.h"
#include "ud.h"

#define BURST 16	/* packets before other queue pairs get their turn */

unsigned long vhca_qp_lock(struct rvt_qp *qp)
	__acquires(&qp->r_lock)
	__acquires(&qp->s_lock)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->r_lock, flags);
	spin_lock(&qp->s_lock);
	return flags;
}

static void raise(struct rvt_qp *qp, unsigned long events)
{
	struct ib_event event = { .device = qp->ibqp.device, .element.qp = &qp->ibqp };
	unsigned int bit;

	for_each_set_bit(bit, &events, BITS_PER_LONG) {
		event.event = bit;
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
	}
}

void vhca_qp_unlock(struct rvt_qp *qp, unsigned long flags)
	__releases(&qp->s_lock)
	__releases(&qp->r_lock)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	unsigned long events = vqp->events;

	vqp->events = 0;
	spin_unlock(&qp->s_lock);
	spin_unlock_irqrestore(&qp->r_lock, flags);
	if (events)
		raise(qp, events);
}

u8 vhca_part_opcode(const struct rvt_swqe *wqe, bool first, bool last)
{
	bool imm = wqe->wr.opcode == IB_WR_SEND_WITH_IMM ||
		   wqe->wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM;

	if (wqe->wr.opcode == IB_WR_SEND || wqe->wr.opcode == IB_WR_SEND_WITH_IMM) {
		if (first && last)
			return imm ? IB_OPCODE_SEND_ONLY_WITH_IMMEDIATE : IB_OPCODE_SEND_ONLY;
		if (last)
			return imm ? IB_OPCODE_SEND_LAST_WITH_IMMEDIATE : IB_OPCODE_SEND_LAST;
		return first ? IB_OPCODE_SEND_FIRST : IB_OPCODE_SEND_MIDDLE;
	}
	if (first && last)
		return imm ? IB_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE :
			IB_OPCODE_RDMA_WRITE_ONLY;
	if (last)
		return imm ? IB_OPCODE_RDMA_WRITE_LAST_WITH_IMMEDIATE :
			IB_OPCODE_RDMA_WRITE_LAST;
	return first ? IB_OPCODE_RDMA_WRITE_FIRST : IB_OPCODE_RDMA_WRITE_MIDDLE;
}

void vhca_qp_event(struct rvt_qp *qp, enum ib_event_type event)
{
	lockdep_assert_held(&qp->s_lock);
	to_vhca_qp(qp)->events |= BIT(event);
	/* Where rdmavt holds the locks it is the engine that lets go of them next. */
	vhca_qp_schedule(qp);
}

void vhca_qp_error(struct rvt_qp *qp, enum ib_wc_status status)
{
	if (rvt_error_qp(qp, status))
		vhca_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

/* One request of a queue pair in ERR ends, unsent or unacknowledged as it is. */
static enum vhca_step flush(struct rvt_qp *qp)
{
	if (qp->s_last == READ_ONCE(qp->s_head))
		return VHCA_IDLE;
	rvt_send_complete(qp, rvt_get_swqe_ptr(qp, qp->s_last), IB_WC_WR_FLUSH_ERR);
	return VHCA_BUSY;
}

static enum vhca_step step(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	int can = ib_rvt_state_ops[qp->state];
	enum vhca_step done = VHCA_IDLE;

	if (can & RVT_FLUSH_SEND)
		return flush(qp);
	if (!list_empty_careful(&vqp->waiting))
		return VHCA_IDLE;
	qp->s_flags &= ~RVT_S_WAIT_PIO;
	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
		if (can & RVT_PROCESS_RECV_OK)
			done = vhca_rc_reply(qp);
		if (done == VHCA_IDLE && can & RVT_PROCESS_SEND_OK)
			done = vhca_rc_request(qp);
		break;
	case IB_QPT_UC:
		if (can & RVT_PROCESS_SEND_OK)
			done = vhca_uc_request(qp);
		break;
	default:
		if (can & RVT_PROCESS_NEXT_SEND_OK)
			done = vhca_ud_request(qp);
		break;
	}
	return done;
}

void vhca_qp_engine(struct rvt_qp *qp)
{
	enum vhca_step done;
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < BURST; i++) {
		flags = vhca_qp_lock(qp);
		done = step(qp);
		vhca_lane_done(to_vhca_qp(qp));
		if (done == VHCA_IDLE)
			vhca_lane_pass(to_vhca_qp(qp));
		vhca_qp_unlock(qp, flags);
		if (done == VHCA_IDLE)
			return;
	}
	vhca_qp_schedule(qp);
}

static void engine_work(struct work_struct *work)
{
	vhca_qp_engine(container_of(work, struct vhca_qp, work)->qp);
}

bool vhca_qp_schedule(struct rvt_qp *qp)
{
	return queue_work(to_vhca(qp->ibqp.device)->wq, &to_vhca_qp(qp)->work);
}

void vhca_address_of(struct vhca_port *port, const struct rdma_ah_attr *attr, bool smp,
		     struct vhca_address *to, struct ib_grh *grh)
{
	const struct ib_global_route *route = rdma_ah_read_grh(attr);

	to->dlid = rdma_ah_get_dlid(attr);
	to->slid = vhca_path_lid(port, attr);
	if (to->dlid == VHCA_LID_PERMISSIVE && !port->lid)
		to->slid = VHCA_LID_PERMISSIVE;
	to->sl = rdma_ah_get_sl(attr);
	to->vl = smp ? 15 : vhca_sl_to_vl(port, to->sl);
	to->grh = NULL;
	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
		return;
	memset(grh, 0, sizeof(*grh));
	grh->version_tclass_flow = cpu_to_be32((u32)IB_GRH_VERSION << IB_GRH_VERSION_SHIFT |
					       route->traffic_class << IB_GRH_TCLASS_SHIFT |
					       (route->flow_label & IB_GRH_FLOW_MASK));
	grh->next_hdr = IB_GRH_NEXT_HDR;
	grh->hop_limit = route->hop_limit;
	grh->sgid.global.subnet_prefix = port->ibp.gid_prefix;
	grh->sgid.global.interface_id = port->guids[route->sgid_index % VHCA_GUIDS];
	grh->dgid = route->dgid;
	to->grh = grh;
}

u8 vhca_lane_of(const struct vhca_port *port, const struct vhca_address *to)
{
	return vhca_loops(port, to->dlid, to->vl) ? VHCA_LANE_LOOP : to->vl;
}

bool vhca_qp_room(struct rvt_qp *qp)
{
	struct vhca_port *port = vhca_qp_port(qp);
	const struct rdma_ah_attr *attr = &qp->remote_ah_attr;
	u8 vl = vhca_sl_to_vl(port, rdma_ah_get_sl(attr));

	return vhca_lane_room(port, vhca_loops(port, rdma_ah_get_dlid(attr), vl) ?
			      VHCA_LANE_LOOP : vl, to_vhca_qp(qp));
}

struct vhca_packet *vhca_qp_packet(struct rvt_qp *qp, struct vhca_bth *bth, u32 payload, u8 **ext)
{
	struct vhca_port *port = vhca_qp_port(qp);
	struct vhca_packet *packet;
	struct vhca_address to;
	struct ib_grh grh;

	vhca_address_of(port, &qp->remote_ah_attr, false, &to, &grh);
	bth->pkey = rvt_get_pkey(ib_to_rvt(qp->ibqp.device), port->num - 1, qp->s_pkey_index);
	bth->qpn = qp->remote_qpn;
	bth->migreq = qp->s_mig_state == IB_MIG_MIGRATED;
	packet = vhca_packet_new(&to, bth, payload, ext);
	if (packet)
		packet->lane = vhca_lane_of(port, &to);
	return packet;
}

void vhca_qp_put(struct rvt_qp *qp, struct vhca_packet *packet, struct vhca_qp *owner)
{
	/* VL15 is for SMPs: a service level without a VL discards (7.6.6). */
	if (packet->lane == 15) {
		vhca_qp_port(qp)->counters.xmit_discards++;
		kfree(packet);
		return;
	}
	vhca_lane_put(vhca_qp_port(qp), packet, owner);
}

void vhca_copy_from(struct rvt_sge_state *ss, u8 *to, u32 length)
{
	while (length) {
		u32 n = rvt_get_sge_length(&ss->sge, length);

		if (WARN_ON_ONCE(!n))
			return;
		memcpy(to, ss->sge.vaddr, n);
		rvt_update_sge(ss, n, false);
		to += n;
		length -= n;
	}
}

/* From here on: what rdmavt calls. */

static struct pci_dev *get_pci_dev(struct rvt_dev_info *rdi)
{
	return container_of(rdi, struct vhca_dev, rdi)->pci;
}

static void *priv_alloc(struct rvt_dev_info *rdi, struct rvt_qp *qp)
{
	struct vhca_qp *vqp = kzalloc(sizeof(*vqp), GFP_KERNEL);

	if (!vqp)
		return ERR_PTR(-ENOMEM);
	vqp->qp = qp;
	INIT_WORK(&vqp->work, engine_work);
	INIT_LIST_HEAD(&vqp->waiting);
	return vqp;
}

static void priv_free(struct rvt_dev_info *rdi, struct rvt_qp *qp)
{
	/* An event noted at the end may have scheduled the engine once more. */
	cancel_work_sync(&to_vhca_qp(qp)->work);
	vhca_function_free_special(rdi, qp);
	kfree(qp->priv);
	qp->priv = NULL;
}

static unsigned int free_all_qps(struct rvt_dev_info *rdi)
{
	return 0;
}

/* rdmavt leaves them where they are; a queue pair in RESET has none (IBA 1.2.1 vol 1, 10.3.1.1). */
static void forget_receives(struct rvt_rq *rq)
{
	if (rq->wq) {
		RDMA_WRITE_UAPI_ATOMIC(rq->wq->head, 0);
		RDMA_WRITE_UAPI_ATOMIC(rq->wq->tail, 0);
	}
	if (rq->kwq) {
		rq->kwq->head = 0;
		rq->kwq->tail = 0;
		rq->kwq->count = 0;
	}
}

static void reset(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);
	u32 i;

	forget_receives(&qp->r_rq);
	for (i = 0; qp->s_ack_queue && i < rvt_max_atomic(ib_to_rvt(qp->ibqp.device)); i++)
		qp->s_ack_queue[i].opcode = 0;
	/* rdmavt leaves it where it was; connected anew, the queue pair has none until one is loaded. */
	rdma_ah_set_port_num(&qp->alt_ah_attr, 0);
	vhca_apm_changed(qp);
	vqp->events = 0;
	vqp->next_new = 0;
	vqp->sge_valid = false;
	vqp->read_valid = false;
	vqp->implied_nak = false;
	vqp->drain_notify = false;
	vqp->draining = false;
	vqp->ack_pending = false;
	vqp->nak_sent = false;
	vqp->ack_syndrome = 0;
	vqp->refusing = false;
	vqp->reply_active = false;
}

static void leave_lane(struct rvt_qp *qp)
{
	vhca_lane_leave(to_vhca_qp(qp));
	vhca_rc_last_ack(qp);
}

static void stop_send_queue(struct rvt_qp *qp)
{
	cancel_work_sync(&to_vhca_qp(qp)->work);
}

/* Called without locks when a queue pair is reset: no packet that knows of it remains anywhere. */
static void quiesce(struct rvt_qp *qp)
{
	vhca_lane_forget(to_vhca(qp->ibqp.device), to_vhca_qp(qp));
}

/* rdmavt has stopped the timers and is about to schedule us, to flush. */
static void error(struct rvt_qp *qp)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	vhca_lane_leave(vqp);
	vhca_rc_last_ack(qp);
	vqp->reply_active = false;
	vqp->refusing = false;
	qp->s_flags &= ~RVT_S_WAIT_PIO;
	hrtimer_try_to_cancel(&qp->s_rnr_timer);
	vhca_qp_schedule(qp);
}

static int pmtu_of(struct rvt_dev_info *rdi, struct rvt_qp *qp, struct ib_qp_attr *attr)
{
	return attr->path_mtu >= IB_MTU_256 && attr->path_mtu <= IB_MTU_4096 ?
		attr->path_mtu : -EINVAL;
}

static u32 mtu_of_qp(struct rvt_dev_info *rdi, struct rvt_qp *qp, u32 pmtu)
{
	return ib_mtu_enum_to_int(pmtu);
}

static int mtu_to_enum(u32 mtu)
{
	return ib_mtu_int_to_enum(mtu);
}

static int get_guid(struct rvt_dev_info *rdi, struct rvt_ibport *ibp, int index, __be64 *guid)
{
	struct vhca_port *port = container_of(ibp, struct vhca_port, ibp);

	if (index < 0 || index >= VHCA_GUIDS)
		return -EINVAL;
	*guid = READ_ONCE(port->guids[index]);
	return 0;
}

static int shut_down_port(struct rvt_dev_info *rdi, u32 num)
{
	return -EOPNOTSUPP;
}

static int check_ah(struct ib_device *device, struct rdma_ah_attr *attr)
{
	u32 dlid = rdma_ah_get_dlid(attr);

	if (!dlid || dlid > VHCA_LID_PERMISSIVE || rdma_ah_get_sl(attr) > 15)
		return -EINVAL;
	if (dlid >= VHCA_LID_MULTICAST && dlid != VHCA_LID_PERMISSIVE &&
	    !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
		return -EINVAL;
	return 0;
}

static void new_ah(struct ib_device *device, struct rdma_ah_attr *attr, struct rvt_ah *ah)
{
	struct vhca_port *port = vhca_port(to_vhca(device), rdma_ah_get_port_num(attr));

	ah->vl = vhca_sl_to_vl(port, rdma_ah_get_sl(attr));
	ah->log_pmtu = ilog2(ib_mtu_enum_to_int(port->neighbor_mtu));
}

static int setup_wqe(struct rvt_qp *qp, struct rvt_swqe *wqe, bool *call_send)
{
	if (qp->ibqp.qp_type == IB_QPT_RC || qp->ibqp.qp_type == IB_QPT_UC)
		return wqe->length > 0x80000000u ? -EINVAL : 0;
	return wqe->length > 1u << rvt_get_swqe_ah(wqe)->log_pmtu ? -EINVAL : 0;
}

static int check_modify(struct rvt_qp *qp, struct ib_qp_attr *attr, int mask,
			struct ib_udata *udata)
{
	if (!vhca_with_apm && (mask & IB_QP_ALT_PATH ||
			       (mask & IB_QP_PATH_MIG_STATE &&
				attr->path_mig_state != IB_MIG_MIGRATED)))
		return -EINVAL;
	if (!vhca_with_sqd && mask & IB_QP_STATE && attr->qp_state == IB_QPS_SQD)
		return -EINVAL;
	if (mask & IB_QP_PATH_MIG_STATE && attr->path_mig_state == IB_MIG_MIGRATED &&
	    qp->s_mig_state == IB_MIG_ARMED) {
		if (mask & IB_QP_AV)
			return -EINVAL;
		vhca_apm_prepare(qp);
	}
	if (mask & IB_QP_ALT_PATH &&
	    (attr->alt_port_num < 1 || attr->alt_port_num > qp->ibqp.device->phys_port_cnt))
		return -EINVAL;
	return 0;
}

/* All locks held; rdmavt has set what it knows of. */
static void modify(struct rvt_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct vhca_qp *vqp = to_vhca_qp(qp);

	if (mask & IB_QP_SQ_PSN) {
		vqp->next_new = qp->s_next_psn;
		vqp->sge_valid = false;
	}
	if (mask & IB_QP_TIMEOUT)
		qp->timeout = attr->timeout;
	if (mask & IB_QP_ALT_PATH) {
		qp->alt_timeout = attr->alt_timeout;
		rdma_ah_set_port_num(&qp->alt_ah_attr, attr->alt_port_num);
	}
	if (mask & (IB_QP_AV | IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE))
		vhca_apm_changed(qp);
	if (mask & IB_QP_AV)
		vhca_lane_moved(to_vhca(qp->ibqp.device), vqp);
	if (mask & IB_QP_PATH_MIG_STATE && attr->path_mig_state == IB_MIG_MIGRATED)
		vhca_apm_ordered(qp);
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_SQD) {
		if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
			vqp->drain_notify = attr->en_sqd_async_notify;
		/* rdmavt looks at what is being sent; what was begun is meant. */
		vqp->draining = true;
		vhca_sqd_check(qp);
	}
	if (ib_rvt_state_ops[qp->state] & (RVT_PROCESS_SEND_OK | RVT_PROCESS_RECV_OK))
		vhca_qp_schedule(qp);
}

const struct rvt_driver_provided vhca_driver_functions = {
	.get_pci_dev = get_pci_dev,
	.check_ah = check_ah,
	.notify_new_ah = new_ah,
	.setup_wqe = setup_wqe,
	.qp_priv_alloc = priv_alloc,
	.qp_priv_free = priv_free,
	.free_all_qps = free_all_qps,
	.notify_qp_reset = reset,
	.do_send = vhca_qp_engine,
	.schedule_send = vhca_qp_schedule,
	.schedule_send_no_lock = vhca_qp_schedule,
	.quiesce_qp = quiesce,
	.stop_send_queue = stop_send_queue,
	.flush_qp_waiters = leave_lane,
	.notify_error_qp = error,
	.notify_restart_rc = vhca_rc_timeout,
	.mtu_to_path_mtu = mtu_to_enum,
	.mtu_from_qp = mtu_of_qp,
	.get_pmtu_from_attr = pmtu_of,
	.query_port_state = vhca_port_query,
	.shut_down_port = shut_down_port,
	.cap_mask_chg = vhca_trap_cap_mask,
	.get_guid_be = get_guid,
	.check_modify_qp = check_modify,
	.modify_qp = modify,
};

#define CONNECTED (BIT(IB_QPT_RC) | BIT(IB_QPT_UC))
#define ANY (CONNECTED | BIT(IB_QPT_UD) | BIT(IB_QPT_SMI) | BIT(IB_QPT_GSI))

const struct rvt_operation_params vhca_post_parms[RVT_OPERATION_MAX] = {
	[IB_WR_SEND] = { sizeof(struct ib_send_wr), ANY },
	[IB_WR_SEND_WITH_IMM] = { sizeof(struct ib_send_wr), ANY },
	[IB_WR_RDMA_WRITE] = { sizeof(struct ib_rdma_wr), CONNECTED },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { sizeof(struct ib_rdma_wr), CONNECTED },
	[IB_WR_RDMA_READ] = { sizeof(struct ib_rdma_wr), BIT(IB_QPT_RC), RVT_OPERATION_ATOMIC },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { sizeof(struct ib_atomic_wr), BIT(IB_QPT_RC),
		RVT_OPERATION_ATOMIC | RVT_OPERATION_ATOMIC_SGE },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { sizeof(struct ib_atomic_wr), BIT(IB_QPT_RC),
		RVT_OPERATION_ATOMIC | RVT_OPERATION_ATOMIC_SGE },
};

const enum ib_wc_opcode vhca_wc_opcode[] = {
	[IB_WR_RDMA_WRITE] = IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM] = IB_WC_RDMA_WRITE,
	[IB_WR_SEND] = IB_WC_SEND,
	[IB_WR_SEND_WITH_IMM] = IB_WC_SEND,
	[IB_WR_RDMA_READ] = IB_WC_RDMA_READ,
	[IB_WR_ATOMIC_CMP_AND_SWP] = IB_WC_COMP_SWAP,
	[IB_WR_ATOMIC_FETCH_AND_ADD] = IB_WC_FETCH_ADD,
};
