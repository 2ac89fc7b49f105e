// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory windows can be had, but not bound. */
#include "mock_state.h"

struct ibv_mw *mock_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = mock_zalloc(sizeof(*mw));

	mock_lock();
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	mw->rkey = mock_context(pd->context)->device->next_key;
	mock_context(pd->context)->device->next_key += 0x100;
	((struct mock_pd *)pd)->users++;
	mock.live[MOCK_MW]++;
	mock_unlock();
	return mw;
}

int mock_dealloc_mw(struct ibv_mw *mw)
{
	mock_lock();
	((struct mock_pd *)mw->pd)->users--;
	mock.live[MOCK_MW]--;
	mock_unlock();
	free(mw);
	return 0;
}

int mock_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	(void)qp;
	(void)mw;
	(void)bind;
	return EOPNOTSUPP;
}
