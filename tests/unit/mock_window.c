// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory windows: those of type 2 belong to the queue pair that bound them (2B). */
#include "mock_state.h"

struct ibv_mw *mock_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct mock_device *d = mock_context(pd->context)->device;
	struct mock_mw *mw = mock_zalloc(sizeof(*mw));

	mock_lock();
	mw->mw.context = pd->context;
	mw->mw.pd = pd;
	mw->mw.type = type;
	mw->mw.handle = ++mock.handles;
	/* Any tag */
	mw->mw.rkey = mock_new_key(d) + (mock.tags++ * 7 & 0xff);
	mw->key = mw->mw.rkey;
	mw->next = mock.windows;
	mock.windows = mw;
	((struct mock_pd *)pd)->users++;
	mock.live[MOCK_MW]++;
	mock_unlock();
	return &mw->mw;
}

static void unbind(struct mock_mw *mw)
{
	if (mw->mr)
		mw->mr->windows--;
	mw->mr = NULL;
	mw->qp = NULL;
}

int mock_dealloc_mw(struct ibv_mw *ibmw)
{
	struct mock_mw *mw = (struct mock_mw *)ibmw, **at;

	mock_lock();
	unbind(mw);
	for (at = &mock.windows; *at != mw; at = &(*at)->next)
		;
	*at = mw->next;
	((struct mock_pd *)ibmw->pd)->users--;
	mock.live[MOCK_MW]--;
	mock_unlock();
	free(mw);
	return 0;
}

int mock_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info,
		},
	};
	struct ibv_send_wr *bad;
	int ret;

	if (mw->type != IBV_MW_TYPE_1)
		return EINVAL;
	ret = mock_post_send(qp, &wr, &bad);
	if (!ret)
		mw->rkey = wr.bind_mw.rkey;
	return ret;
}

/* @handle_key: what the handle said when it was posted */
bool mock_bind_window(struct mock_qp *qp, const struct ibv_send_wr *wr, uint32_t handle_key)
{
	struct mock_mw *mw = (struct mock_mw *)wr->bind_mw.mw;
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct mock_mr *mr = (struct mock_mr *)info->mr;
	bool type2 = mw->mw.type == IBV_MW_TYPE_2;

	if (!mock_same_pd(mw->mw.pd, qp->qp.pd) || handle_key != mw->key ||
	    (wr->bind_mw.rkey ^ mw->key) >> 8)
		return false;
	if (type2 && (mw->mr || !((wr->bind_mw.rkey ^ mw->key) & 0xff)))
		return false;
	if (info->length && (!mr || !mock_same_pd(mr->mr.pd, mw->mw.pd) ||
			     !(mr->access & IBV_ACCESS_MW_BIND) || info->addr < mr->iova ||
			     info->length > mr->mr.length ||
			     info->addr - mr->iova > mr->mr.length - info->length))
		return false;
	unbind(mw);
	mw->key = wr->bind_mw.rkey;
	if (!info->length)
		return true;
	mw->mr = mr;
	mr->windows++;
	mw->qp = type2 ? qp : NULL;
	mw->addr = info->addr;
	mw->length = info->length;
	mw->access = info->mw_access_flags;
	return true;
}

bool mock_invalidate_window(struct mock_qp *qp, uint32_t key)
{
	struct mock_mw *mw;

	for (mw = mock.windows; mw; mw = mw->next)
		if (mw->mr && mw->key == key && mw->qp == qp) {
			unbind(mw);
			return true;
		}
	return false;
}

char *mock_window_at(struct mock_qp *qp, uint32_t key, uint64_t addr, uint64_t len,
		     unsigned int access)
{
	struct mock_mw *mw;

	for (mw = mock.windows; mw; mw = mw->next)
		if (mw->mr && mw->key == key)
			break;
	if (!mw || (mw->qp && mw->qp != qp) || !mock_same_pd(mw->mw.pd, qp->qp.pd) ||
	    (mw->access & access) != access || addr < mw->addr || len > mw->length ||
	    addr - mw->addr > mw->length - len)
		return NULL;
	return (char *)mw->mr->mr.addr + (addr - mw->mr->iova);
}
