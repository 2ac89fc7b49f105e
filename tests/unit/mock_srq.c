// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues and address handles. */
#include <stdio.h>

#include "mock_state.h"

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct mock_srq *srq;
	uint32_t handle = 0;
	int err;

	mock_lock();
	err = mock_failing("ibv_create_srq");
	if (!err && (a->attr.max_wr > 4096 || a->attr.max_sge > MOCK_SGE || !a->attr.max_wr))
		err = EINVAL;
	if (!err) {
		handle = ++mock.handles;
		mock.live[MOCK_SRQ]++;
		((struct mock_pd *)pd)->users++;
	}
	mock_unlock();
	if (err) {
		errno = err;
		return NULL;
	}
	srq = mock_zalloc(sizeof(*srq));
	srq->srq.context = pd->context;
	srq->srq.srq_context = a->srq_context;
	srq->srq.pd = pd;
	srq->srq.handle = handle;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	srq->rq.size = a->attr.max_wr;
	srq->rq.max_sge = a->attr.max_sge;
	srq->rq.ring = mock_zalloc(srq->rq.size * sizeof(*srq->rq.ring));
	return &srq->srq;
}

struct ibv_srq *mock_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *a)
{
	bool xrc = a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a->srq_type == IBV_SRQT_XRC;
	const uint32_t need = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct ibv_srq *srq;

	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || a->pd->context != c ||
	    (xrc && ((a->comp_mask & need) != need || a->xrcd->context != c ||
		     a->cq->context != c))) {
		errno = EINVAL;
		return NULL;
	}
	/* The first members are those of the plain struct. */
	srq = ibv_create_srq(a->pd, (struct ibv_srq_init_attr *)a);
	if (srq && xrc) {
		mock_lock();
		((struct mock_srq *)srq)->xrcd = (struct mock_xrcd *)a->xrcd;
		((struct mock_srq *)srq)->xrcd->users++;
		mock_unlock();
	}
	return srq;
}

int mock_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	(void)srq;
	*num = 7;
	return 0;
}

int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *a, int mask)
{
	struct mock_srq *srq = (struct mock_srq *)ibsrq;

	if (mask & IBV_SRQ_MAX_WR)
		return EOPNOTSUPP;
	mock_lock();
	if (mask & IBV_SRQ_LIMIT)
		srq->limit = a->srq_limit;
	mock_unlock();
	return 0;
}

int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *a)
{
	struct mock_srq *srq = (struct mock_srq *)ibsrq;

	mock_lock();
	a->max_wr = srq->rq.size;
	a->max_sge = srq->rq.max_sge;
	a->srq_limit = srq->limit;
	mock_unlock();
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct mock_srq *srq = (struct mock_srq *)ibsrq;
	struct mock_cq *cq;
	unsigned int i;
	int ret;

	mock_lock();
	ret = srq->users ? EBUSY : 0;
	if (!ret) {
		((struct mock_pd *)ibsrq->pd)->users--;
		if (srq->xrcd)
			srq->xrcd->users--;
		mock.live[MOCK_SRQ]--;
		mock_async_drop(ibsrq->context, srq);
		for (cq = mock.cqs; cq; cq = cq->next)
			for (i = 0; i < cq->n; i++)
				if (cq->ring[(cq->head + i) % cq->size].srq == srq)
					cq->ring[(cq->head + i) % cq->size].srq = NULL;
	}
	mock_unlock();
	if (ret)
		return ret;
	free(srq->rq.ring);
	free(srq);
	return 0;
}

int mock_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct mock_srq *srq = (struct mock_srq *)ibsrq;
	int ret;

	mock_lock();
	ret = mock_rq_post(&srq->rq, srq->given, wr, bad);
	mock_unlock();
	return ret;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct mock_ah *ah;
	int err;

	mock_lock();
	err = mock_failing("ibv_create_ah");
	mock_unlock();
	if (err) {
		errno = err;
		return NULL;
	}
	ah = mock_zalloc(sizeof(*ah));
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	ah->attr = *attr;
	mock_lock();
	((struct mock_pd *)pd)->users++;
	mock.live[MOCK_AH]++;
	mock_unlock();
	return &ah->ah;
}

int ibv_init_ah_from_wc(struct ibv_context *c, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const struct mock_device *d = mock_context(c)->device;
	int i, ret = -1;

	memset(attr, 0, sizeof(*attr));
	attr->port_num = port;
	attr->sl = wc->sl;
	attr->is_global = 1;
	attr->grh.dgid = grh->sgid;
	/* By which of the port's it came. */
	mock_lock();
	for (i = 0; i < d->ngids && ret; i++)
		if (d->gids[i].port_num == port && !memcmp(&d->gids[i].gid, &grh->dgid, sizeof(grh->dgid))) {
			attr->grh.sgid_index = d->gids[i].gid_index;
			ret = 0;
		}
	mock_unlock();
	return ret;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port)
{
	struct ibv_ah_attr attr;

	/* Both are in libibverbs too, which reaches them through the PLT. */
	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

int ibv_destroy_ah(struct ibv_ah *ibah)
{
	struct mock_qp *qp;
	uint64_t i;

	mock_lock();
	for (qp = mock.qps; qp; qp = qp->next)
		for (i = qp->sq.exec; i < qp->sq.head; i++)
			if (qp->sq.ring[i % qp->sq.size].ah == (struct mock_ah *)ibah) {
				fprintf(stderr, "an address handle is destroyed that a request names\n");
				abort();
			}
	((struct mock_pd *)ibah->pd)->users--;
	mock.live[MOCK_AH]--;
	mock_unlock();
	free(ibah);
	return 0;
}

bool mock_in_group(const struct mock_qp *qp, const union ibv_gid *gid)
{
	struct mock_group *g;

	for (g = qp->groups; g; g = g->next)
		if (!memcmp(&g->gid, gid, sizeof(*gid)))
			return true;
	return false;
}

int ibv_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;
	struct mock_group *g;
	int ret;

	(void)lid;
	mock_lock();
	ret = mock_failing("ibv_attach_mcast");
	if (!ret && (ibqp->qp_type != IBV_QPT_UD || gid->raw[0] != 0xff))
		ret = EINVAL;
	if (!ret) {
		g = mock_zalloc(sizeof(*g));
		g->gid = *gid;
		g->next = qp->groups;
		qp->groups = g;
		mock.live[MOCK_GROUP]++;
	}
	mock_unlock();
	return ret;
}

int ibv_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	struct mock_group **at, *g;
	int ret = EINVAL;

	(void)lid;
	mock_lock();
	for (at = &((struct mock_qp *)ibqp)->groups; (g = *at); at = &g->next)
		if (!memcmp(&g->gid, gid, sizeof(*gid))) {
			*at = g->next;
			free(g);
			mock.live[MOCK_GROUP]--;
			ret = 0;
			break;
		}
	mock_unlock();
	return ret;
}
