// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * floor: what a blackout costs at the least. Closes and makes again the verbs objects that a
 * process has, in the device's order, and says how long each step took.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../apps/endpoint.h"

static const char usage[] =
"usage: floor [-d DEVICE] [-q QPS] [-S SENDS] [-R RECVS] [-s BYTES] [-r ROUNDS]\n"
"  -q N      RC queue pairs, connected to themselves, one region each, one queue for all (1)\n"
"  -S N      send requests of each (20)\n"
"  -R N      receives of each, all posted (24)\n"
"  -s BYTES  of each region (65536)\n"
"  -r N      rounds, a line of JSON each (1)\n";

enum step {
	DESTROY_QPS, DESTROY_CQ, DEREG_MRS, DEALLOC_PD, CLOSE,
	OPEN, ALLOC_PD, REG_MRS, CREATE_CQ, CREATE_QPS, POST_RECVS, CONNECT, STEPS,
};

static const char *const step_names[STEPS] = {
	"destroy_qps", "destroy_cq", "dereg_mrs", "dealloc_pd", "close",
	"open", "alloc_pd", "reg_mrs", "create_cq", "create_qps", "post_recvs", "connect",
};

struct floor {
	const char *device;
	unsigned int qps, sends, recvs, rounds;
	size_t bytes;
	char *memory;
	struct endpoint ep;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp **qp;
	struct ibv_mr **mr;
	double took[STEPS], at;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static void lap(struct floor *f, enum step step)
{
	double t = now();

	f->took[step] = t - f->at;
	f->at = t;
}

static void check(int bad, const char *what)
{
	if (bad)
		err(1, "%s", what);
}

static void connect_qp(struct floor *f, struct ibv_qp *qp)
{
	struct rc_address self = endpoint_address(&f->ep, qp, 1);

	errno = rc_connect(qp, &f->ep, &self, &self, NULL);
	check(errno, "connect");
}

static void post_recvs(struct floor *f, unsigned int i)
{
	struct ibv_sge sge = { (uintptr_t)f->mr[i]->addr, 64, f->mr[i]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	unsigned int k;

	errno = rc_init(f->qp[i], &f->ep);
	check(errno, "to INIT");
	for (k = 0; k < f->recvs; k++) {
		errno = ibv_post_recv(f->qp[i], &wr, &bad);
		check(errno, "post_recv");
	}
}

static void make(struct floor *f)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = f->sends, .max_recv_wr = f->recvs, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	unsigned int i;

	endpoint_open(&f->ep, f->device, -1);
	lap(f, OPEN);
	f->pd = ibv_alloc_pd(f->ep.ctx);
	check(!f->pd, "alloc_pd");
	lap(f, ALLOC_PD);
	for (i = 0; i < f->qps; i++) {
		f->mr[i] = ibv_reg_mr(f->pd, f->memory + i * f->bytes, f->bytes,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
		check(!f->mr[i], "reg_mr");
	}
	lap(f, REG_MRS);
	f->channel = ibv_create_comp_channel(f->ep.ctx);
	check(!f->channel, "create_comp_channel");
	f->cq = ibv_create_cq(f->ep.ctx, f->qps * (f->sends + f->recvs), NULL, f->channel, 0);
	check(!f->cq, "create_cq");
	check(ibv_req_notify_cq(f->cq, 0), "req_notify_cq");
	lap(f, CREATE_CQ);
	attr.send_cq = attr.recv_cq = f->cq;
	for (i = 0; i < f->qps; i++) {
		f->qp[i] = ibv_create_qp(f->pd, &attr);
		check(!f->qp[i], "create_qp");
	}
	lap(f, CREATE_QPS);
	for (i = 0; i < f->qps; i++)
		post_recvs(f, i);
	lap(f, POST_RECVS);
	for (i = 0; i < f->qps; i++)
		connect_qp(f, f->qp[i]);
	lap(f, CONNECT);
}

static void unmake(struct floor *f)
{
	unsigned int i;

	f->at = now();
	for (i = 0; i < f->qps; i++)
		check(ibv_destroy_qp(f->qp[i]), "destroy_qp");
	lap(f, DESTROY_QPS);
	check(ibv_destroy_cq(f->cq), "destroy_cq");
	check(ibv_destroy_comp_channel(f->channel), "destroy_comp_channel");
	lap(f, DESTROY_CQ);
	for (i = 0; i < f->qps; i++)
		check(ibv_dereg_mr(f->mr[i]), "dereg_mr");
	lap(f, DEREG_MRS);
	check(ibv_dealloc_pd(f->pd), "dealloc_pd");
	lap(f, DEALLOC_PD);
	check(ibv_close_device(f->ep.ctx), "close_device");
	lap(f, CLOSE);
}

static void report(const struct floor *f)
{
	double total = 0;
	int i;

	printf("{\"qps\":%u,\"bytes\":%zu,\"ms\":{", f->qps, f->bytes * f->qps);
	for (i = 0; i < STEPS; i++) {
		printf("\"%s\":%.3f,", step_names[i], f->took[i]);
		total += f->took[i];
	}
	printf("\"total\":%.3f}}\n", total);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct floor f = { .qps = 1, .sends = 20, .recvs = 24, .bytes = 65536, .rounds = 1 };
	unsigned int round;
	int o;

	while ((o = getopt(argc, argv, "d:q:S:R:s:r:h")) >= 0) {
		switch (o) {
		case 'd': f.device = optarg; break;
		case 'q': f.qps = strtoul(optarg, NULL, 0); break;
		case 'S': f.sends = strtoul(optarg, NULL, 0); break;
		case 'R': f.recvs = strtoul(optarg, NULL, 0); break;
		case 's': f.bytes = strtoul(optarg, NULL, 0); break;
		case 'r': f.rounds = strtoul(optarg, NULL, 0); break;
		default:
			fputs(usage, o == 'h' ? stdout : stderr);
			return o == 'h' ? 0 : 2;
		}
	}
	if (!f.qps || !f.bytes)
		errx(2, "at least one queue pair, at least one byte");
	f.qp = calloc(f.qps, sizeof(struct ibv_qp *));
	f.mr = calloc(f.qps, sizeof(struct ibv_mr *));
	f.memory = mmap(NULL, f.bytes * f.qps, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	check(!f.qp || !f.mr || f.memory == MAP_FAILED, "memory");
	f.at = now();
	make(&f);
	for (round = 0; round < f.rounds; round++) {
		unmake(&f);
		make(&f);
		report(&f);
	}
	unmake(&f);
	return 0;
}
