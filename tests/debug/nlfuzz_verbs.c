// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs of the fuzzer's own, so that there are connections it may speak for. */
#include <err.h>

#include "endpoint.h"
#include "nlfuzz.h"

static struct ibv_qp *new_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ibv_create_qp(pd, &attr);
}

void have_queue_pairs(const char *device, unsigned int n)
{
	static struct endpoint ep;
	struct rc_address here, there;
	struct ibv_qp *one, *other;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	endpoint_open(&ep, device, -1);
	pd = ibv_alloc_pd(ep.ctx);
	cq = pd ? ibv_create_cq(ep.ctx, 64, NULL, NULL, 0) : NULL;
	while (cq && n--) {
		one = new_qp(pd, cq);
		other = new_qp(pd, cq);
		if (!one || !other)
			break;
		here = endpoint_address(&ep, one, 1);
		there = endpoint_address(&ep, other, 1);
		if (rc_init(one, &ep) || rc_init(other, &ep) ||
		    rc_connect(one, &ep, &here, &there, NULL) ||
		    rc_connect(other, &ep, &there, &here, NULL))
			errx(1, "%s: can not connect two queue pairs", device);
	}
	if (!cq || n != (unsigned int)-1)
		errx(1, "%s: can not create queue pairs", device);
}
