// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* XRC domains, and queue pairs that somebody else made in one. */
#include "mock_state.h"

struct ibv_xrcd *mock_open_xrcd(struct ibv_context *c, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t need = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct mock_xrcd *x;

	if ((attr->comp_mask & need) != need) {
		errno = EINVAL;
		return NULL;
	}
	x = mock_zalloc(sizeof(*x));
	x->xrcd.context = c;
	mock_lock();
	mock.live[MOCK_FIXED]++;
	mock_unlock();
	return &x->xrcd;
}

int mock_close_xrcd(struct ibv_xrcd *xrcd)
{
	struct mock_xrcd *x = (struct mock_xrcd *)xrcd;
	int ret;

	mock_lock();
	ret = x->users ? EBUSY : 0;
	mock.live[MOCK_FIXED] -= !ret;
	mock_unlock();
	if (!ret)
		free(x);
	return ret;
}

struct ibv_qp *mock_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *attr)
{
	const uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_XRC_RECV };
	struct mock_qp *made, *qp;
	bool known;

	if ((attr->comp_mask & need) != need || attr->xrcd->context != c) {
		errno = EINVAL;
		return NULL;
	}
	init.qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;
	mock_lock();
	made = mock_find_qp(attr->qp_num);
	known = made && made->xrcd == (struct mock_xrcd *)attr->xrcd &&
		attr->qp_type == IBV_QPT_XRC_RECV;
	mock_unlock();
	if (!known) {
		errno = EINVAL;
		return NULL;
	}
	qp = mock_new_qp(c, NULL, &init);
	if (!qp)
		return NULL;
	mock_lock();
	qp->qp.qp_num = attr->qp_num;
	qp->xrcd = (struct mock_xrcd *)attr->xrcd;
	qp->xrcd->users++;
	mock_unlock();
	return &qp->qp;
}
