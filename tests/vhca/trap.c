// SPDX-License-Identifier: GPL-2.0
#include <rdma/ib_cache.h>

#include "trap.h"

#define TRIES 8
#define REPEAT_MS 500

/* Notice attribute (13.4.8.2) of a generic trap, as bytes. */
enum {
	N_TYPE = 0,		/* IsGeneric, Type, then ProducerType in 24 bits */
	N_TRAP = 4,
	N_ISSUER = 6,
	N_DETAILS = 10,
};

#define GENERIC BIT(7)
#define TYPE_SECURITY 2
#define TYPE_INFO 4

static void make(struct vhca_port *port, u8 *notice, u8 type, __be16 trap)
{
	memset(notice, 0, 64);
	notice[N_TYPE] = GENERIC | type;
	notice[N_TYPE + 3] = 1;		/* a channel adapter */
	memcpy(notice + N_TRAP, &trap, 2);
	put_unaligned_be16(port->lid, notice + N_ISSUER);
}

static void queue(struct vhca_port *port, const u8 *notice)
{
	struct vhca_trap *t = NULL;
	unsigned long flags;
	unsigned int i;

	if (port->dev->function)	/* its QP0 leads nowhere */
		return;
	spin_lock_irqsave(&port->trap_lock, flags);
	/* The same news twice is once; more than there is room for is lost, as 14.3.9 allows. */
	for (i = 0; i < port->ntraps; i++)
		if (!memcmp(port->traps[i].notice, notice, 64))
			goto out;
	if (port->ntraps < VHCA_MAX_TRAPS && !port->traps_stopped) {
		t = &port->traps[port->ntraps++];
		memcpy(t->notice, notice, 64);
		t->tid = ++port->ibp.tid;
		t->tries = TRIES;
	}
out:
	spin_unlock_irqrestore(&port->trap_lock, flags);
	if (t)
		mod_delayed_work(port->dev->wq, &port->trap_work, 0);
}

void vhca_trap_bad_key(struct vhca_port *port, __be16 trap, u32 key, const struct vhca_rx *rx,
		       u32 qpn)
{
	u8 notice[64], *d = notice + N_DETAILS;
	u16 *violations = trap == IB_NOTICE_TRAP_BAD_PKEY ? &port->ibp.pkey_violations :
		&port->ibp.qkey_violations;

	if (*violations != U16_MAX)
		(*violations)++;
	make(port, notice, TYPE_SECURITY, trap);
	/* LID1, LID2, key, SL, QP1, QP2, GIDs (table 134); the sender is 1, we are 2. */
	put_unaligned_be16(rx->slid, d + 2);
	put_unaligned_be16(rx->dlid, d + 4);
	put_unaligned_be32(key, d + 6);
	d[10] = rx->sl << 4;
	/* Only datagrams say which queue pair sends. */
	if ((rx->bth.opcode & 0xe0) == IB_OPCODE_UD)
		put_unaligned_be24(get_unaligned_be32(rx->ext + 4) & IB_QPN_MASK, d + 11);
	put_unaligned_be24(qpn, d + 15);
	if (rx->grh) {
		memcpy(d + 18, &rx->grh->sgid, 16);
		memcpy(d + 34, &rx->grh->dgid, 16);
	}
	queue(port, notice);
}

void vhca_trap_bad_mkey(struct vhca_port *port, u16 slid, const struct ib_smp *smp)
{
	u8 notice[64], *d = notice + N_DETAILS;
	bool dr = smp->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
	unsigned int hops = min_t(unsigned int, smp->hop_cnt, 30);

	make(port, notice, TYPE_SECURITY, IB_NOTICE_TRAP_BAD_MKEY);
	put_unaligned_be16(slid, d + 2);
	memcpy(d + 4, &smp->dr_slid, 2);
	d[6] = smp->method;
	memcpy(d + 8, &smp->attr_id, 2);
	memcpy(d + 10, &smp->attr_mod, 4);
	memcpy(d + 14, &smp->mkey, 8);
	if (dr) {
		d[23] = IB_NOTICE_TRAP_DR_NOTICE | hops |
			(smp->hop_cnt > hops ? IB_NOTICE_TRAP_DR_TRUNC : 0);
		memcpy(d + 24, smp->return_path, hops);
	}
	queue(port, notice);
}

void vhca_trap_cap_mask(struct rvt_dev_info *rdi, u32 num)
{
	struct vhca_port *port = vhca_port(container_of(rdi, struct vhca_dev, rdi), num);
	u8 notice[64];

	make(port, notice, TYPE_INFO, IB_NOTICE_TRAP_CAP_MASK_CHG);
	put_unaligned_be16(port->lid, notice + N_DETAILS + 2);
	put_unaligned_be32(port->ibp.port_cap_flags, notice + N_DETAILS + 6);
	queue(port, notice);
}

void vhca_trap_node_desc(struct vhca_port *port)
{
	u8 notice[64];

	make(port, notice, TYPE_INFO, IB_NOTICE_TRAP_CAP_MASK_CHG);
	put_unaligned_be16(port->lid, notice + N_DETAILS + 2);
	put_unaligned_be32(port->ibp.port_cap_flags, notice + N_DETAILS + 6);
	notice[N_DETAILS + 5] = 1;			/* OtherLocalChanges */
	notice[N_DETAILS + 11] = IB_NOTICE_TRAP_NODE_DESC_CHG;
	queue(port, notice);
}

void vhca_trap_repress(struct vhca_port *port, const struct ib_smp *smp)
{
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&port->trap_lock, flags);
	for (i = 0; i < port->ntraps; i++)
		if (cpu_to_be64(port->traps[i].tid) == smp->tid) {
			port->traps[i] = port->traps[--port->ntraps];
			break;
		}
	spin_unlock_irqrestore(&port->trap_lock, flags);
}

/* The SM's address, kept as long as it is the same: what is queued refers to it. */
static struct ib_ah *sm_ah(struct vhca_port *port)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB };
	struct ib_mad_agent *agent = port->ibp.send_agent;
	struct rvt_ah *known = port->ibp.sm_ah;
	struct ib_ah *ah;

	if (known && rdma_ah_get_dlid(&known->attr) == port->ibp.sm_lid &&
	    rdma_ah_get_sl(&known->attr) == port->ibp.sm_sl)
		return &known->ibah;
	rdma_ah_set_dlid(&attr, port->ibp.sm_lid);
	rdma_ah_set_sl(&attr, port->ibp.sm_sl);
	rdma_ah_set_port_num(&attr, port->num);
	ah = rdma_create_ah(agent->qp->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	if (IS_ERR(ah))
		return ah;
	if (known)
		rdma_destroy_ah(&known->ibah, RDMA_DESTROY_AH_SLEEPABLE);
	port->ibp.sm_ah = ibah_to_rvtah(ah);
	return ah;
}

static void send_one(struct vhca_port *port, const struct vhca_trap *trap)
{
	struct ib_mad_agent *agent = port->ibp.send_agent;
	struct ib_ah *ah = sm_ah(port);
	struct ib_mad_send_buf *buf;
	struct ib_smp *smp;

	if (IS_ERR(ah))
		return;
	buf = ib_create_send_mad(agent, 0, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, GFP_KERNEL,
				 IB_MGMT_BASE_VERSION);
	if (IS_ERR(buf))
		return;
	smp = buf->mad;
	ib_init_query_mad(smp);
	smp->method = IB_MGMT_METHOD_TRAP;
	smp->attr_id = IB_SMP_ATTR_NOTICE;
	smp->tid = cpu_to_be64(trap->tid);
	smp->mkey = port->ibp.mkey;
	memcpy(smp->data, trap->notice, sizeof(smp->data));
	buf->ah = ah;
	if (ib_post_send_mad(buf, NULL))
		ib_free_send_mad(buf);
}

static void trap_work(struct work_struct *work)
{
	struct vhca_port *port = container_of(work, struct vhca_port, trap_work.work);
	bool can = port->state == IB_PORT_ACTIVE && port->ibp.sm_lid && port->ibp.send_agent;
	struct vhca_trap now[VHCA_MAX_TRAPS];
	unsigned int i, n;
	unsigned long flags;

	spin_lock_irqsave(&port->trap_lock, flags);
	n = port->ntraps;
	memcpy(now, port->traps, n * sizeof(*now));
	for (i = port->ntraps; can && i-- > 0;)
		if (!--port->traps[i].tries)
			port->traps[i] = port->traps[--port->ntraps];
	spin_unlock_irqrestore(&port->trap_lock, flags);
	for (i = 0; can && i < n; i++)
		send_one(port, &now[i]);
	if (n)
		queue_delayed_work(port->dev->wq, &port->trap_work, msecs_to_jiffies(REPEAT_MS));
}

void vhca_traps_init(struct vhca_port *port)
{
	spin_lock_init(&port->trap_lock);
	INIT_DELAYED_WORK(&port->trap_work, trap_work);
}

void vhca_traps_stop(struct vhca_port *port)
{
	unsigned long flags;

	spin_lock_irqsave(&port->trap_lock, flags);
	port->ntraps = 0;
	port->traps_stopped = true;
	spin_unlock_irqrestore(&port->trap_lock, flags);
	cancel_delayed_work_sync(&port->trap_work);
}

void vhca_traps_again(struct vhca_port *port)
{
	unsigned long flags;

	spin_lock_irqsave(&port->trap_lock, flags);
	port->traps_stopped = false;
	spin_unlock_irqrestore(&port->trap_lock, flags);
}
