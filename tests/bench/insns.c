// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * insns [cycles] WAY COUNT: COUNT calls of one data path function on the mock's null device. insns.py runs
 * it under callgrind, which counts the instructions inside call_WAY() only. insns bytes 0: under the
 * shim, what it keeps of a send request, and of a receive. With cycles: what a call takes with what comes before and after it
 * here, a completion for each request, in cycles of the time stamp counter; the least of COUNT times of ROUNDS.
 */
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "../apps/endpoint.h"
#include "../../libshim/shim.h"

#define NOINLINE __attribute__((noinline, noclone))
#define ROUNDS 64
#define BATCH 16	/* completions that wait for each counted poll_batch */

static struct ibv_qp *qp;
static struct ibv_qp_ex *qpx;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char buffer[4096];
static struct ibv_sge sge;
static struct ibv_send_wr send_wr;
static struct ibv_recv_wr recv_wr;
static struct ibv_wc wc[BATCH];

int call_post_send(void);
int call_post_recv(void);
int call_wr_send(void);
int call_poll_one(void);
int call_poll_batch(void);
int call_poll_empty(void);

NOINLINE int call_post_send(void)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(qp, &send_wr, &bad);
}

NOINLINE int call_post_recv(void)
{
	struct ibv_recv_wr *bad;

	return ibv_post_recv(qp, &recv_wr, &bad);
}

NOINLINE int call_wr_send(void)
{
	ibv_wr_start(qpx);
	qpx->wr_id = 1;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, sge.lkey, sge.addr, sge.length);
	return ibv_wr_complete(qpx);
}

NOINLINE int call_poll_one(void)
{
	return ibv_poll_cq(cq, 1, wc) - 1;
}

NOINLINE int call_poll_batch(void)
{
	return ibv_poll_cq(cq, BATCH, wc) - BATCH;
}

NOINLINE int call_poll_empty(void)
{
	return ibv_poll_cq(cq, 1, wc);
}

/* What the shim keeps of a request, as its rings say: one with one element, of a send and of a receive. */
static void say_bytes(void)
{
	printf("%u %u\n", to_rp_qp(qp)->sq.stride, to_rp_qp(qp)->rq.stride);
}

static void check(int bad, const char *what)
{
	if (bad)
		errx(1, "%s", what);
}

static void set_up(void)
{
	void (*null_mode)(_Bool on) = (void (*)(_Bool))dlsym(RTLD_DEFAULT, "mock_null_mode");
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_init_attr_ex ex_attr = {
		.cap = attr.cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *second;
	struct rc_address self;
	struct endpoint ep;
	struct ibv_pd *pd;

	check(!null_mode, "not on the mock: LD_LIBRARY_PATH must name its directory");
	null_mode(1);
	endpoint_open(&ep, "mock0", 0);
	pd = ibv_alloc_pd(ep.ctx);
	cq = ibv_create_cq(ep.ctx, 256, NULL, NULL, 0);
	check(!pd || !cq, "objects");
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(pd, &attr);
	check(!mr || !qp, "queue pair");
	self = endpoint_address(&ep, qp, 1);
	check(rc_init(qp, &ep) || rc_connect(qp, &ep, &self, &self, NULL), "connect");
	ex_attr.pd = pd;
	ex_attr.send_cq = ex_attr.recv_cq = cq;
	second = ibv_create_qp_ex(ep.ctx, &ex_attr);
	qpx = second ? ibv_qp_to_qp_ex(second) : NULL;
	check(!qpx, "queue pair with ibv_wr_*");
	self = endpoint_address(&ep, second, 1);
	check(rc_init(second, &ep) || rc_connect(second, &ep, &self, &self, NULL), "connect");
	sge = (struct ibv_sge){ (uintptr_t)buffer, 64, mr->lkey };
	send_wr = (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1,
					.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	recv_wr = (struct ibv_recv_wr){ .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
}

static int once(const char *way)
{
	struct ibv_send_wr *bad;
	int i;

	if (!strcmp(way, "post_send"))
		return call_post_send() || ibv_poll_cq(cq, 1, wc) != 1;
	if (!strcmp(way, "wr_send"))
		return call_wr_send() || ibv_poll_cq(cq, 1, wc) != 1;
	if (!strcmp(way, "post_recv"))
		return call_post_recv() || ibv_poll_cq(cq, 1, wc) != 1;
	if (!strcmp(way, "poll_one"))
		return ibv_post_send(qp, &send_wr, &bad) || call_poll_one();
	if (!strcmp(way, "poll_empty"))
		return call_poll_empty();
	if (!strcmp(way, "poll_batch")) {
		for (i = 0; i < BATCH; i++)
			if (ibv_post_send(qp, &send_wr, &bad))
				return 1;
		return call_poll_batch();
	}
	errx(2, "%s: no such way", way);
}

/* Nobody else may have run meanwhile: then it took least. */
static double cycles(const char *way, unsigned long count)
{
	uint64_t least = UINT64_MAX, took;
	unsigned int i, aux;

	while (count--) {
		took = __rdtscp(&aux);
		for (i = 0; i < ROUNDS; i++)
			check(once(way), "the call failed");
		took = __rdtscp(&aux) - took;
		if (took < least)
			least = took;
	}
	return (double)least / ROUNDS;
}

int main(int argc, char **argv)
{
	bool timed = argc == 4 && !strcmp(argv[1], "cycles");
	unsigned long i, n;

	argv += timed;
	if (argc != 3 + timed)
		errx(2, "usage: insns [cycles] post_send|wr_send|post_recv|poll_one|poll_batch|poll_empty|bytes COUNT");
	n = strtoul(argv[2], NULL, 0);
	set_up();
	if (!strcmp(argv[1], "bytes")) {
		say_bytes();
		return 0;
	}
	if (timed) {
		printf("%.2f\n", cycles(argv[1], n));
		return 0;
	}
	for (i = 0; i < n; i++)
		check(once(argv[1]), "the call failed");
	printf("%lu\n", n);
	return 0;
}
