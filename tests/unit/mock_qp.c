// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <unistd.h>

#include "mock_state.h"

struct mock_qp *mock_find_qp(uint32_t qpn)
{
	struct mock_qp *qp;

	for (qp = mock.qps; qp; qp = qp->next)
		if (qp->qp.qp_num == qpn)
			return qp;
	return NULL;
}

static int check_init(struct ibv_context *c, const struct ibv_qp_init_attr *a)
{
	struct mock_device *d = mock_context(c)->device;

	switch (a->qp_type) {
	case IBV_QPT_XRC_RECV:
		return a->send_cq || a->recv_cq || a->srq ? EINVAL : 0;
	case IBV_QPT_XRC_SEND:
		if (a->recv_cq || a->srq)
			return EINVAL;
		break;
	default:
		if (!a->recv_cq)
			return EINVAL;
	}
	if (!a->send_cq)
		return EINVAL;
	if (a->cap.max_send_wr > (uint32_t)d->takes_wr ||
	    a->cap.max_recv_wr > (uint32_t)d->max_qp_wr ||
	    a->cap.max_send_sge > MOCK_SGE || a->cap.max_recv_sge > MOCK_SGE ||
	    a->cap.max_inline_data > MOCK_INLINE)
		return EINVAL;
	return 0;
}

/* Numbers are unique over all devices: that is how queue pairs find each other. */
static uint32_t new_qpn(struct mock_device *d)
{
	uint32_t qpn;

	do {
		qpn = d->next_qpn++ & 0xffffff;
	} while (qpn < 2 || mock_find_qp(qpn));
	return qpn;
}

/* It has begun or ceased to use what it is made of; not all kinds have everything. */
static void uses(struct mock_qp *qp, int n)
{
	if (qp->qp.pd)
		((struct mock_pd *)qp->qp.pd)->users += n;
	if (qp->qp.send_cq)
		((struct mock_cq *)qp->qp.send_cq)->users += n;
	if (qp->qp.recv_cq)
		((struct mock_cq *)qp->qp.recv_cq)->users += n;
	if (qp->qp.srq)
		((struct mock_srq *)qp->qp.srq)->users += n;
	if (qp->xrcd)
		qp->xrcd->users += n;
}

struct mock_qp *mock_new_qp(struct ibv_context *c, struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct mock_qp *qp;
	int err;

	mock_lock();
	mock.asked_send_wr = a->cap.max_send_wr;
	err = mock_failing("ibv_create_qp");
	if (!err)
		err = check_init(c, a);
	if (err) {
		mock_unlock();
		errno = err;
		return NULL;
	}
	qp = mock_zalloc(sizeof(*qp));
	qp->init = *a;
	qp->qp.context = c;
	qp->qp.qp_context = a->qp_context;
	qp->qp.pd = pd;
	qp->qp.send_cq = a->send_cq;
	qp->qp.recv_cq = a->recv_cq;
	qp->qp.srq = a->srq;
	qp->qp.handle = ++mock.handles;
	qp->qp.qp_num = new_qpn(mock_context(c)->device);
	qp->qp.state = IBV_QPS_RESET;
	qp->qp.qp_type = a->qp_type;
	pthread_mutex_init(&qp->qp.mutex, NULL);
	pthread_cond_init(&qp->qp.cond, NULL);
	qp->sq.size = a->cap.max_send_wr;
	qp->sq.ring = mock_zalloc((qp->sq.size + 1) * sizeof(*qp->sq.ring));
	qp->rq.size = a->srq ? 0 : a->cap.max_recv_wr;
	qp->rq.max_sge = a->cap.max_recv_sge;
	qp->rq.ring = mock_zalloc((qp->rq.size + 1) * sizeof(*qp->rq.ring));
	qp->next = mock.qps;
	mock.qps = qp;
	uses(qp, 1);
	mock.live[MOCK_QP]++;
	mock_unlock();
	return qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct mock_qp *qp = mock_new_qp(pd->context, pd, a);

	return qp ? &qp->qp : NULL;
}

struct ibv_qp *mock_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *a)
{
	bool in_domain = a->qp_type == IBV_QPT_XRC_RECV;
	uint32_t need = in_domain ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
	struct mock_qp *qp;

	if (a->comp_mask & ~(need | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER) ||
	    !(a->comp_mask & need) || !mock_wr_has(a) ||
	    (in_domain ? a->xrcd->context : a->pd->context) != c) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	/* The first members are those of the plain struct. */
	qp = mock_new_qp(c, in_domain ? NULL : a->pd, (struct ibv_qp_init_attr *)a);
	if (!qp)
		return NULL;
	if (in_domain) {
		mock_lock();
		qp->xrcd = (struct mock_xrcd *)a->xrcd;
		qp->xrcd->users++;
		mock_unlock();
	}
	if (a->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER)
		qp->max_header = a->max_tso_header;
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp->has_ops = true;
		mock_wr_init(qp);
	}
	return &qp->qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibqp)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;

	return qp->has_ops ? &qp->ex : NULL;
}

int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp, **at;
	int err;

	mock_lock();
	err = mock_failing("ibv_destroy_qp");
	if (!err && qp->groups)
		err = EBUSY;
	if (err) {
		mock_unlock();
		return err;
	}
	for (at = &mock.qps; *at != qp; at = &(*at)->next)
		;
	*at = qp->next;
	uses(qp, -1);
	mock_async_drop(ibqp->context, qp);
	mock.live[MOCK_QP]--;
	mock_unlock();
	free(qp->sq.ring);
	free(qp->rq.ring);
	free(qp->batch);
	free(qp);
	return 0;
}

/* Attributes that a transition must have (IBA 1.2.1 vol 1, 11.2.4.2, table 91); -1: no such one. */
static int required(const struct mock_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	bool rc = qp->qp.qp_type == IBV_QPT_RC, ud = qp->qp.qp_type == IBV_QPT_UD;

	/* ERR from all but RESET, as ib_modify_qp_is_ok() has it. */
	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return 0;
	if ((from == IBV_QPS_RESET || from == IBV_QPS_INIT) && to == IBV_QPS_INIT)
		return from == IBV_QPS_INIT ? 0 : IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		return ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
	if ((from == IBV_QPS_RTS || from == IBV_QPS_SQD) &&
	    (to == IBV_QPS_RTS || to == IBV_QPS_SQD))
		return 0;
	return from == IBV_QPS_SQE && to == IBV_QPS_RTS ? 0 : -1;
}

static void take(struct mock_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *to = &qp->attr;

#define TAKE(bit, field) do { if (mask & (bit)) to->field = a->field; } while (0)
	TAKE(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_QKEY, qkey);
	TAKE(IBV_QP_AV, ah_attr);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_RQ_PSN, rq_psn);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_SQ_PSN, sq_psn);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_ALT_PATH, alt_ah_attr);
	TAKE(IBV_QP_ALT_PATH, alt_pkey_index);
	TAKE(IBV_QP_ALT_PATH, alt_port_num);
	TAKE(IBV_QP_ALT_PATH, alt_timeout);
	TAKE(IBV_QP_PATH_MIG_STATE, path_mig_state);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
#undef TAKE
}

bool mock_has_gid(const struct mock_device *d, const union ibv_gid *gid)
{
	int i;

	for (i = 0; i < d->ngids; i++)
		if (!memcmp(&d->gids[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

/* Does a port that is there have the address? The kernel looks for its MAC, on RoCE. */
static bool somebody_has(const union ibv_gid *gid)
{
	struct mock_device *d;

	for (d = mock.devices; d; d = d->next)
		if (d->plugged && mock_has_gid(d, gid))
			return true;
	return false;
}

static bool has_index(const struct mock_device *d, const struct ibv_ah_attr *av)
{
	int i;

	for (i = 0; i < d->ngids; i++)
		if (d->gids[i].gid_index == av->grh.sgid_index && d->gids[i].port_num == av->port_num)
			return true;
	return false;
}

/* IBA 1.2.1 vol 1, 17.2.8.1: what may be set when; ARMED is what the device makes of REARM. */
static int check_alternate(struct mock_qp *qp, enum ibv_qp_state to, const struct ibv_qp_attr *a, int mask)
{
	struct mock_device *d = mock_context(qp->qp.context)->device;
	bool state = mask & IBV_QP_PATH_MIG_STATE, path = mask & IBV_QP_ALT_PATH;

	if ((state || path) && (to < IBV_QPS_RTR || qp->qp.qp_type == IBV_QPT_UD))
		return EINVAL;
	if (state && (to == IBV_QPS_RTR || a->path_mig_state == IBV_MIG_ARMED))
		return EINVAL;
	if (state && a->path_mig_state == IBV_MIG_REARM && !path && !qp->attr.alt_port_num)
		return EINVAL;
	if (!path)
		return 0;
	if (d->no_apm || a->alt_port_num < 1 || a->alt_port_num > d->ports ||
	    a->alt_ah_attr.port_num != a->alt_port_num || !has_index(d, &a->alt_ah_attr) ||
	    a->alt_pkey_index >= MOCK_PKEYS || !d->pkeys[a->alt_pkey_index])
		return EINVAL;
	return somebody_has(&a->alt_ah_attr.grh.dgid) ? 0 : ETIMEDOUT;
}

static int check_values(struct mock_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct mock_device *d = mock_context(qp->qp.context)->device;
	int i;

	if (mask & IBV_QP_PORT && (a->port_num < 1 || a->port_num > d->ports))
		return EINVAL;
	if (mask & IBV_QP_PKEY_INDEX && (a->pkey_index >= MOCK_PKEYS || !d->pkeys[a->pkey_index]))
		return EINVAL;
	if (mask & IBV_QP_CUR_STATE && a->cur_qp_state != qp->qp.state)
		return EINVAL;
	if (!(mask & IBV_QP_AV))
		return 0;
	if (!a->ah_attr.is_global)
		return EINVAL;
	for (i = 0; i < d->ngids; i++)
		if (d->gids[i].gid_index == a->ah_attr.grh.sgid_index)
			break;
	if (i == d->ngids)
		return EINVAL;
	d->last_grh = a->ah_attr.grh;
	return somebody_has(&a->ah_attr.grh.dgid) ? 0 : ETIMEDOUT;
}

static void reset(struct mock_qp *qp)
{
	qp->sq.head = qp->sq.exec = qp->sq.acked = qp->sq.tail = 0;
	qp->sq.blocked_ns = 0;
	qp->rq.head = qp->rq.next = qp->rq.tail = 0;
	qp->life++;
	qp->migrated = false;
	qp->rate = 0;
	memset(&qp->attr, 0, sizeof(qp->attr));
}

int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *a, int mask)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;
	enum ibv_qp_state from, to;
	unsigned int us;
	int need, ret;

	mock_lock();
	us = mask & IBV_QP_STATE && a->qp_state == IBV_QPS_RESET ? mock.reset_us : 0;
	if (us) {
		mock_unlock();
		usleep(us);
		mock_lock();
	}
	from = ibqp->state;
	to = mask & IBV_QP_STATE ? a->qp_state : from;
	need = required(qp, from, to);
	ret = mock_failing("ibv_modify_qp");
	if (!ret && (need < 0 || (mask & need) != need))
		ret = EINVAL;
	if (!ret && to == IBV_QPS_RTR)
		ret = mock_failing("ibv_modify_qp_rtr");
	if (!ret)
		ret = check_values(qp, a, mask);
	if (!ret)
		ret = check_alternate(qp, to, a, mask);
	if (ret)
		goto out;
	if (to == IBV_QPS_RESET) {
		reset(qp);
	} else {
		take(qp, a, mask);
		if (mask & IBV_QP_RQ_PSN)
			qp->rq_psn = a->rq_psn & 0xffffff;
		if (mask & IBV_QP_SQ_PSN)
			qp->sq_psn = a->sq_psn & 0xffffff;
	}
	if (to == IBV_QPS_SQD && from != to)
		qp->tells_drained = mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && a->en_sqd_async_notify;
	ibqp->state = to;
	mock_tell_drained(qp);
	if (to == IBV_QPS_ERR)
		mock_to_error(qp);
	pthread_cond_signal(&mock.wake);
out:
	mock_unlock();
	return ret;
}

/* The alternate path becomes the one that it sends by. */
void mock_migrate(struct mock_qp *qp)
{
	struct ibv_qp_attr *a = &qp->attr;

	a->ah_attr = a->alt_ah_attr;
	a->port_num = a->alt_port_num;
	a->pkey_index = a->alt_pkey_index;
	a->timeout = a->alt_timeout;
	a->path_mig_state = IBV_MIG_MIGRATED;
	qp->migrated = true;
	mock_async(qp->qp.context, IBV_EVENT_PATH_MIG, qp);
}

unsigned int mock_cut(const char *device)
{
	struct mock_qp *qp;
	unsigned int n = 0;

	mock_lock();
	for (qp = mock.qps; qp; qp = qp->next)
		if (mock_context(qp->qp.context)->device == mock_find_device(device) &&
		    qp->attr.path_mig_state == IBV_MIG_ARMED) {
			mock_migrate(qp);
			n++;
		}
	mock_unlock();
	return n;
}

void mock_reroute(uint32_t qpn, uint8_t sl)
{
	struct mock_qp *qp;

	mock_lock();
	for (qp = mock.qps; qp; qp = qp->next) {
		if (qp->qp.qp_num != qpn)
			continue;
		qp->attr.alt_ah_attr = qp->attr.ah_attr;
		qp->attr.alt_ah_attr.sl = sl;
		qp->attr.alt_port_num = qp->attr.port_num;
		qp->attr.alt_pkey_index = qp->attr.pkey_index;
		qp->attr.alt_timeout = qp->attr.timeout;
		mock_migrate(qp);
	}
	mock_unlock();
}

int mock_modify_qp_rate_limit(struct ibv_qp *ibqp, struct ibv_qp_rate_limit_attr *attr)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;
	uint32_t max = mock_context(ibqp->context)->device->max_rate;
	int ret = EINVAL;

	mock_lock();
	if (ibqp->state == IBV_QPS_RTS && !attr->comp_mask && (!max || attr->rate_limit <= max)) {
		qp->rate = attr->rate_limit + attr->max_burst_sz;
		ret = 0;
	}
	mock_unlock();
	return ret;
}

uint64_t mock_rates(const char *device)
{
	struct mock_qp *qp;
	uint64_t sum = 0;

	mock_lock();
	for (qp = mock.qps; qp; qp = qp->next)
		if (mock_context(qp->qp.context)->device == mock_find_device(device))
			sum += qp->rate;
	mock_unlock();
	return sum;
}

int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *a, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;
	int ret;

	(void)mask;
	mock_lock();
	ret = mock_failing("ibv_query_qp");
	if (!ret) {
		*a = qp->attr;
		a->qp_state = a->cur_qp_state = ibqp->state;
		a->cap = qp->init.cap;
		a->sq_draining = mock_draining(qp);
		*init = qp->init;
	}
	mock_unlock();
	return ret;
}
