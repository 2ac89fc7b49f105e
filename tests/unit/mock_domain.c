// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Thread domains, parent domains, and memory that is not there. */
#include "mock_state.h"

struct ibv_td *mock_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr)
{
	struct mock_td *td;
	int err;

	mock_lock();
	err = attr->comp_mask ? EINVAL : mock_failing("ibv_alloc_td");
	mock.live[MOCK_TD] += !err;
	mock_unlock();
	if (err) {
		errno = err;
		return NULL;
	}
	td = mock_zalloc(sizeof(*td));
	td->td.context = c;
	return &td->td;
}

int mock_dealloc_td(struct ibv_td *ibtd)
{
	struct mock_td *td = (struct mock_td *)ibtd;
	int ret;

	mock_lock();
	ret = td->users ? EBUSY : 0;
	mock.live[MOCK_TD] -= !ret;
	mock_unlock();
	if (!ret)
		free(td);
	return ret;
}

struct ibv_pd *mock_alloc_parent_domain(struct ibv_context *c,
					struct ibv_parent_domain_init_attr *a)
{
	struct mock_pd *pd, *of = (struct mock_pd *)a->pd;

	if (a->pd->context != c || of->parent_of || (a->td && a->td->context != c)) {
		errno = EINVAL;
		return NULL;
	}
	pd = mock_zalloc(sizeof(*pd));
	mock_lock();
	pd->pd.context = c;
	pd->pd.handle = of->pd.handle;	/* the kernel knows no other */
	pd->parent_of = of;
	of->users++;
	pd->td = (struct mock_td *)a->td;
	if (pd->td)
		pd->td->users++;
	mock.live[MOCK_PD]++;
	mock_unlock();
	return &pd->pd;
}

static const struct mock_pd *plain(const struct ibv_pd *ibpd)
{
	const struct mock_pd *pd = (const struct mock_pd *)ibpd;

	return pd->parent_of ? pd->parent_of : pd;
}

bool mock_same_pd(const struct ibv_pd *a, const struct ibv_pd *b)
{
	return plain(a) == plain(b);
}

#define MOCK_NULL_KEY 0x77	/* no other key ends so */

/* All have the device's one key, and none for others, as with mlx5. */
struct ibv_mr *mock_alloc_null_mr(struct ibv_pd *pd)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, NULL, SIZE_MAX / 2, IBV_ACCESS_LOCAL_WRITE);

	if (!mr)
		return NULL;
	mock_lock();
	mr->lkey = MOCK_NULL_KEY;
	mr->rkey = 0;
	((struct mock_mr *)mr)->null = true;
	mock_unlock();
	return mr;
}
