// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work queues, whose receives nothing ever comes for, and tables of them. */
#include "mock_state.h"

struct mock_wq {
	struct ibv_wq wq;
	int users;
	uint32_t posted, room;
};

struct mock_table {
	struct ibv_rwq_ind_table table;
	struct mock_wq *wqs[16];
	unsigned int n;
};

static int post_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct mock_wq *wq = (struct mock_wq *)ibwq;
	int ret = 0;

	mock_lock();
	for (; wr && !ret; wr = ret ? wr : wr->next) {
		ret = wq->posted == wq->room ? ENOMEM : 0;
		wq->posted += !ret;
	}
	mock_unlock();
	if (ret)
		*bad = wr;
	return ret;
}

struct ibv_wq *mock_create_wq(struct ibv_context *c, struct ibv_wq_init_attr *attr)
{
	struct mock_wq *wq;

	if (attr->wq_type != IBV_WQT_RQ || attr->pd->context != c || attr->cq->context != c) {
		errno = EINVAL;
		return NULL;
	}
	wq = mock_zalloc(sizeof(*wq));
	wq->wq.context = c;
	wq->wq.pd = attr->pd;
	wq->wq.cq = attr->cq;
	wq->wq.wq_type = attr->wq_type;
	wq->wq.state = IBV_WQS_RESET;
	wq->wq.post_recv = post_recv;
	wq->room = attr->max_wr;
	mock_lock();
	((struct mock_pd *)attr->pd)->users++;
	((struct mock_cq *)attr->cq)->users++;
	mock.live[MOCK_FIXED]++;
	mock_unlock();
	return &wq->wq;
}

int mock_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	if (attr->attr_mask & IBV_WQ_ATTR_STATE)
		wq->state = attr->wq_state;
	return 0;
}

int mock_destroy_wq(struct ibv_wq *ibwq)
{
	struct mock_wq *wq = (struct mock_wq *)ibwq;
	int ret;

	mock_lock();
	ret = wq->users ? EBUSY : 0;
	if (!ret) {
		((struct mock_pd *)ibwq->pd)->users--;
		((struct mock_cq *)ibwq->cq)->users--;
		mock.live[MOCK_FIXED]--;
	}
	mock_unlock();
	if (!ret)
		free(wq);
	return ret;
}

struct ibv_rwq_ind_table *mock_create_rwq_ind_table(struct ibv_context *c,
						    struct ibv_rwq_ind_table_init_attr *attr)
{
	struct mock_table *t;
	unsigned int i;

	if (attr->log_ind_tbl_size > 4) {
		errno = EINVAL;
		return NULL;
	}
	t = mock_zalloc(sizeof(*t));
	t->table.context = c;
	t->n = 1u << attr->log_ind_tbl_size;
	mock_lock();
	for (i = 0; i < t->n; i++) {
		t->wqs[i] = (struct mock_wq *)attr->ind_tbl[i];
		if (t->wqs[i]->wq.context != c)
			abort();
		t->wqs[i]->users++;
	}
	mock.live[MOCK_FIXED]++;
	mock_unlock();
	return &t->table;
}

int mock_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	struct mock_table *t = (struct mock_table *)table;
	unsigned int i;

	mock_lock();
	for (i = 0; i < t->n; i++)
		t->wqs[i]->users--;
	mock.live[MOCK_FIXED]--;
	mock_unlock();
	free(t);
	return 0;
}
