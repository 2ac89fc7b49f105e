// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* librdmacm, as far as the shim knows it: by the name of the file that calls. */
#include <infiniband/verbs.h>

struct ibv_qp *fake_rdma_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

static int made;

struct ibv_qp *fake_rdma_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = ibv_create_qp(pd, attr);

	made += !!qp;	/* so that the verb returns to here */
	return qp;
}
