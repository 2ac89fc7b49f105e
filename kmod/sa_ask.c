// SPDX-License-Identifier: GPL-2.0
/*
 * MADs to the subnet administration. Each is repeated for longer than a packet can live in the
 * subnet, and goes on the service level that PortInfo says for the subnet manager: so it gets
 * through when data has come to a stop.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/ktime.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sa.h>
#include <repath_sm.h>

#include "device.h"
#include "sa.h"
#include "sa_ask.h"

#define RECORD_MAX	128	/* bytes: the longest record that is read */
#define ALL_TRAP_TYPES	0xffff
#define RESPONSE_TIME	18	/* of ours, as 4.096 us << n: a second */

/* Why a question found no record, which is no error (15.2.3.1.2, table 186). */
#define SA_STATUS_NO_RECORDS	0x0300

static void way_release(struct kref *kref)
{
	struct repath_sa_way *way = container_of(kref, struct repath_sa_way, kref);

	rdma_destroy_ah(way->ah, 0);
	kfree(way);
}

/**
 * repath_sa_way_put - drop a reference
 * @way: way
 *
 * Context: any in which the device can be called.
 */
void repath_sa_way_put(struct repath_sa_way *way)
{
	kref_put(&way->kref, way_release);
}

/**
 * repath_sa_way_new - an address handle for a subnet manager
 * @agent: that will send
 * @port: own port
 * @sm_lid: of the subnet manager
 * @sm_sl: service level to it
 * @grh: the port sends nothing without one
 * @prefix: of the subnet
 *
 * Return: with a reference, or ERR_PTR.
 */
struct repath_sa_way *repath_sa_way_new(struct ib_mad_agent *agent, u32 port, u16 sm_lid, u8 sm_sl,
					bool grh, __be64 prefix)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB };
	struct repath_sa_way *way;

	way = kzalloc(sizeof(*way), GFP_KERNEL);
	if (!way)
		return ERR_PTR(-ENOMEM);
	kref_init(&way->kref);
	way->lid = sm_lid;
	if (ib_find_pkey(agent->device, port, IB_DEFAULT_PKEY_FULL, &way->pkey_index))
		way->pkey_index = 0;
	rdma_ah_set_dlid(&attr, sm_lid);
	rdma_ah_set_sl(&attr, sm_sl);
	rdma_ah_set_port_num(&attr, port);
	if (grh) {
		rdma_ah_set_ah_flags(&attr, IB_AH_GRH);
		rdma_ah_set_subnet_prefix(&attr, prefix);
		rdma_ah_set_interface_id(&attr, cpu_to_be64(IB_SA_WELL_KNOWN_GUID));
	}
	way->ah = rdma_create_ah(agent->qp->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	if (IS_ERR(way->ah)) {
		int err = PTR_ERR(way->ah);

		kfree(way);
		return ERR_PTR(err);
	}
	return way;
}

static struct ib_mad_send_buf *mad_new(struct repath_sa_port *sp, u8 method, u16 attr)
{
	struct ib_mad_send_buf *buf;
	struct ib_sa_mad *mad;

	buf = ib_create_send_mad(sp->agent, 1, sp->way->pkey_index, 0, IB_MGMT_SA_HDR,
				 IB_MGMT_SA_DATA, GFP_KERNEL, IB_MGMT_BASE_VERSION);
	if (IS_ERR(buf))
		return buf;
	mad = buf->mad;
	mad->mad_hdr.base_version = IB_MGMT_BASE_VERSION;
	mad->mad_hdr.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
	mad->mad_hdr.class_version = IB_SA_CLASS_VERSION;
	mad->mad_hdr.method = method;
	mad->mad_hdr.attr_id = cpu_to_be16(attr);
	buf->ah = sp->way->ah;
	return buf;
}

/**
 * repath_sa_ask_free - the answer has been read
 * @ask: question, on no list
 */
void repath_sa_ask_free(struct repath_sa_ask *ask)
{
	if (ask->answer)
		ib_free_recv_mad(ask->answer);
	repath_sa_way_put(ask->way);
	kfree(ask);
}

/* @buf is given away. */
static int post(struct repath_sa_port *sp, struct ib_mad_send_buf *buf, u8 kind, u16 number)
{
	struct ib_mad_hdr *hdr = buf->mad;
	struct repath_sa_ask *ask;
	int err;

	ask = kzalloc(sizeof(*ask), GFP_KERNEL);
	if (!ask) {
		ib_free_send_mad(buf);
		return -ENOMEM;
	}
	kref_get(&sp->way->kref);
	ask->way = sp->way;
	ask->sp = sp;
	ask->buf = buf;
	ask->kind = kind;
	ask->number = number;
	ask->started_ns = ktime_get_boottime_ns();
	/* The low half must not be guessed: who can may answer before the subnet manager does. */
	hdr->tid = cpu_to_be64((u64)sp->agent->hi_tid << 32 | get_random_u32());
	buf->context[0] = ask;
	buf->timeout_ms = sp->timeout_ms;
	buf->retries = REPATH_SA_TRIES - 1;
	/* Somebody waits for it. */
	if (kind == REPATH_SA_UNSUBSCRIBE)
		buf->timeout_ms = REPATH_SA_LEAVE_MS / REPATH_SA_TRIES;

	spin_lock_irq(&sp->lock);
	list_add_tail(&ask->node, &sp->asked);
	spin_unlock_irq(&sp->lock);
	err = ib_post_send_mad(buf, NULL);
	if (!err)
		return 0;
	spin_lock_irq(&sp->lock);
	list_del(&ask->node);
	spin_unlock_irq(&sp->lock);
	ib_free_send_mad(buf);
	repath_sa_ask_free(ask);
	return err;
}

/**
 * repath_sa_ask_subscription - InformInfo
 * @sp: port, which has a way
 * @trap: number
 * @subscribe: or the opposite
 *
 * The answer comes to repath_sa_subscribe_answered().
 */
int repath_sa_ask_subscription(struct repath_sa_port *sp, u16 trap, bool subscribe)
{
	struct ib_mad_send_buf *buf = mad_new(sp, IB_MGMT_METHOD_SET, IB_SA_ATTR_INFORM_INFO);
	struct repath_inform_info *info;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	info = (void *)((struct ib_sa_mad *)buf->mad)->data;
	info->lid_range_begin = cpu_to_be16(0xffff);
	info->is_generic = 1;
	info->subscribe = subscribe;
	info->trap_type = cpu_to_be16(ALL_TRAP_TYPES);
	info->trap_num = cpu_to_be16(trap);
	info->qpn_resp_time = cpu_to_be32(1 << 8 | RESPONSE_TIME);
	info->producer = cpu_to_be32(REPATH_SM_PRODUCER);
	return post(sp, buf, subscribe ? REPATH_SA_SUBSCRIBE : REPATH_SA_UNSUBSCRIBE, trap);
}

/**
 * repath_sa_ask_paths - PathRecords of the port
 * @sp: port, which has a way
 * @dlid: to there; 0: to everywhere
 *
 * The answer comes to repath_sa_query_answered().
 */
int repath_sa_ask_paths(struct repath_sa_port *sp, u16 dlid)
{
	struct ib_mad_send_buf *buf = mad_new(sp, IB_SA_METHOD_GET_TABLE, IB_SA_ATTR_PATH_REC);
	struct repath_sm_path *path;
	struct ib_sa_mad *mad;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	mad = buf->mad;
	path = (void *)mad->data;
	/* By GID, so that all LIDs of the port are meant. */
	mad->sa_hdr.comp_mask = IB_SA_PATH_REC_SGID;
	memcpy(path->sgid, sp->gid.raw, sizeof(path->sgid));
	if (dlid) {
		mad->sa_hdr.comp_mask |= IB_SA_PATH_REC_DLID;
		path->dlid = cpu_to_be16(dlid);
	}
	return post(sp, buf, REPATH_SA_PATHS, dlid);
}

/**
 * repath_sa_cancel - give up all questions; what is said goodbye to is told so all the same
 * @sp: port
 *
 * They end soon, with -ECANCELED.
 */
void repath_sa_cancel(struct repath_sa_port *sp)
{
	struct repath_sa_ask *ask;
	unsigned long flags;

	spin_lock_irqsave(&sp->lock, flags);
	list_for_each_entry(ask, &sp->asked, node)
		if (ask->kind != REPATH_SA_UNSUBSCRIBE)
			ib_cancel_mad(ask->buf);
	spin_unlock_irqrestore(&sp->lock, flags);
}

/**
 * repath_sa_ask_status - how the subnet administration has answered
 * @ask: question that is over
 *
 * Return: 0, also if it found nothing; -EAGAIN: it is busy; -EACCES: it refuses; or @ask's error.
 */
int repath_sa_ask_status(const struct repath_sa_ask *ask)
{
	u16 status;

	if (ask->err)
		return ask->err;
	status = be16_to_cpu(ask->answer->recv_buf.mad->mad_hdr.status);
	if (!status || status == SA_STATUS_NO_RECORDS)
		return 0;
	return status & IB_MGMT_MAD_STATUS_BUSY ? -EAGAIN : -EACCES;
}

/* All segments that hold @len bytes of records are there, in their order. */
static bool is_whole(const struct ib_mad_recv_wc *answer, size_t len)
{
	const struct ib_mad_recv_buf *buf;
	u32 n = 0;

	list_for_each_entry(buf, &answer->rmpp_list, list) {
		const struct ib_sa_mad *mad = (void *)buf->mad;

		/* What is a single MAD may have no number. */
		if (n++ && be32_to_cpu(mad->rmpp_hdr.seg_num) != n)
			return false;
	}
	return n >= DIV_ROUND_UP(len, IB_MGMT_SA_DATA);
}

/**
 * repath_sa_records - go through the records of an answer
 * @answer: of one segment or more
 * @size: of a record as this module knows it; the sender's may be longer
 * @fn: told each of them
 * @arg: for @fn
 *
 * What is between two segments is put together.
 *
 * Return: how many, or -EBADMSG: the answer does not add up, and @fn was told nothing.
 */
int repath_sa_records(const struct ib_mad_recv_wc *answer, size_t size,
		      void (*fn)(const void *record, void *arg), void *arg)
{
	const struct ib_sa_mad *first = (void *)answer->recv_buf.mad;
	size_t step = be16_to_cpu(first->sa_hdr.attr_offset) * 8;
	const struct ib_mad_recv_buf *buf;
	u8 record[RECORD_MAX];
	size_t left, have = 0;
	int n = 0;

	if (first->mad_hdr.status)
		return 0;
	if (answer->mad_len < IB_MGMT_SA_HDR)
		return -EBADMSG;
	left = answer->mad_len - IB_MGMT_SA_HDR;
	/* Of none the offset does not matter. */
	if (!left)
		return 0;
	if (step < size || step > sizeof(record) || !is_whole(answer, left))
		return -EBADMSG;
	/* The last record may come without its padding. */
	if (left % step && left % step < size)
		return -EBADMSG;
	list_for_each_entry(buf, &answer->rmpp_list, list) {
		const struct ib_sa_mad *mad = (void *)buf->mad;
		size_t at = 0, end = min_t(size_t, left, sizeof(mad->data));

		while (at < end) {
			size_t part = min(step - have, end - at);

			memcpy(record + have, mad->data + at, part);
			have += part;
			at += part;
			if (have < step)
				break;
			fn(record, arg);
			have = 0;
			n++;
		}
		left -= end;
	}
	if (have) {
		fn(record, arg);
		n++;
	}
	return n;
}

/**
 * repath_sa_report_resp - answer a Report, so that it is not repeated
 * @sp: port, which has a way
 * @report: as it has come
 *
 * One that is lost is made good by the next repetition.
 */
void repath_sa_report_resp(struct repath_sa_port *sp, const struct ib_mad *report)
{
	struct ib_mad_send_buf *buf;
	struct ib_mad_hdr *hdr;

	buf = mad_new(sp, IB_MGMT_METHOD_REPORT_RESP, IB_SA_ATTR_NOTICE);
	if (IS_ERR(buf))
		return;
	memcpy(buf->mad, report, sizeof(*report));
	hdr = buf->mad;
	hdr->method = IB_MGMT_METHOD_REPORT_RESP;
	hdr->status = 0;
	kref_get(&sp->way->kref);
	buf->context[1] = sp->way;
	if (ib_post_send_mad(buf, NULL)) {
		repath_sa_way_put(sp->way);
		ib_free_send_mad(buf);
	}
}

/**
 * repath_sa_sent - a MAD of ours is over
 * @agent: whose it was
 * @wc: how it ended; an answer has come before
 *
 * Context: a work of ib_mad's.
 */
void repath_sa_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	struct ib_mad_send_buf *buf = wc->send_buf;
	struct repath_sa_ask *ask = buf->context[0];
	struct repath_sa_port *sp = agent->context;
	unsigned long flags;

	if (!ask) {
		repath_sa_way_put(buf->context[1]);
		ib_free_send_mad(buf);
		return;
	}
	switch (wc->status) {
	case IB_WC_SUCCESS:
		ask->err = ask->answer ? 0 : -EIO;
		break;
	case IB_WC_RESP_TIMEOUT_ERR:
		ask->err = -ETIMEDOUT;
		break;
	case IB_WC_WR_FLUSH_ERR:
		ask->err = -ECANCELED;
		break;
	default:
		ask->err = -EIO;
	}
	spin_lock_irqsave(&sp->lock, flags);
	ask->buf = NULL;
	list_move_tail(&ask->node, &sp->answered);
	if (list_empty(&sp->asked))
		wake_up(&sp->wait);
	spin_unlock_irqrestore(&sp->lock, flags);
	ib_free_send_mad(buf);
	repath_sa_kick(sp);
}

/**
 * repath_sa_answer - the answer to a question
 * @buf: the question; repath_sa_sent() comes after this
 * @wc: the answer, given away
 *
 * ib_mad compares the transaction, but not who has sent it: without a GRH it believes any LID.
 */
void repath_sa_answer(struct ib_mad_send_buf *buf, struct ib_mad_recv_wc *wc)
{
	struct repath_sa_ask *ask = buf->context[0];
	const struct ib_mad_hdr *asked = buf->mad, *hdr = &wc->recv_buf.mad->mad_hdr;

	if (!ask || ask->answer || wc->wc->slid != ask->way->lid || wc->wc->src_qp != 1 ||
	    hdr->attr_id != asked->attr_id) {
		if (ask)
			repath_stat_inc(ask->sp->dev, REPATH_STAT_NOTICE_FORGED);
		ib_free_recv_mad(wc);
		return;
	}
	ask->answer = wc;
}
