// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * floor: what a move costs at the least. The cycle that one would write by hand for one program:
 * stop, drain, close everything, make it again, tell the new addresses, connect, post what there is to
 * send. It knows its own traffic, its peer and its objects, and does nothing else. Says how long each step took.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../apps/endpoint.h"
#include "../apps/oob.h"

#define MESSAGE 256

static const char usage[] =
"usage: floor [options]          the peer: keeps its objects, resets and connects its queue pairs\n"
"       floor [options] HOST     the mover; what is marked * is told to the peer\n"
"  -d NAME   RDMA device (the first one)\n"
"  -p N      TCP port (18700)\n"
"  -q N    * RC queue pairs, one region each (1)\n"
"  -c N    * completion queues, for as many queue pairs each (1)\n"
"  -S N    * send requests of each (20)\n"
"  -R N    * receives of each, all posted (24)\n"
"  -n N    * SENDs under way on each, both ways, when it stops (2)\n"
"  -s BYTES  of each region (65536)\n"
"  -M BYTES  of one region more (0)\n"
"  -r N      rounds, a line of JSON each (1)\n"
"  -w        says when it is ready to stop, and when it has closed, and waits for a line each time\n";

enum step { DRAIN, RELEASE, OPEN, RECREATE, CONNECT, REPLAY, STEPS };

static const char *const step_names[STEPS] = {
	"drain", "release", "open", "recreate", "connect", "replay",
};

/* What the mover tells the peer at first. */
struct shape {
	uint32_t qps, sends, recvs, depth, cqs;
};

/* What each end tells of each queue pair. */
struct row {
	uint32_t qpn, psn, rkey;
};

struct floor {
	const char *device;
	struct shape shape;
	size_t bytes, more;
	unsigned int rounds;
	bool wait;
	int oob;
	char *memory, *more_memory;
	struct endpoint ep;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq **cq;
	struct ibv_qp **qp;
	struct ibv_mr **mr, *more_mr;
	struct row *own, *theirs;
	struct rc_address at;		/* the other end's port */
	double took[STEPS], since;
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

	f->took[step] = t - f->since;
	f->since = t;
}

static void check(int bad, const char *what)
{
	if (bad)
		err(1, "%s", what);
}

static void tell(struct floor *f, const void *data, size_t len)
{
	if (!oob_write(f->oob, data, len))
		errx(1, "the other end has gone");
}

static void hear(struct floor *f, void *data, size_t len)
{
	if (!oob_read(f->oob, data, len))
		errx(1, "the other end has gone");
}

static void say(struct floor *f, char word)
{
	tell(f, &word, 1);
}

static void expect(struct floor *f, char word)
{
	char heard;

	hear(f, &heard, 1);
	if (heard != word)
		errx(1, "'%c' instead of '%c'", heard, word);
}

static void tell_addresses(struct floor *f)
{
	struct rc_address at = endpoint_address(&f->ep, f->qp[0], 0);

	tell(f, &at, sizeof(at));
	tell(f, f->own, f->shape.qps * sizeof(*f->own));
}

static void hear_addresses(struct floor *f)
{
	hear(f, &f->at, sizeof(f->at));
	hear(f, f->theirs, f->shape.qps * sizeof(*f->theirs));
}

static void connect_all(struct floor *f)
{
	uint32_t i;

	for (i = 0; i < f->shape.qps; i++) {
		struct rc_address self = endpoint_address(&f->ep, f->qp[i], f->own[i].psn);
		struct rc_address to = f->at;

		to.qpn = f->theirs[i].qpn;
		to.psn = f->theirs[i].psn;
		errno = rc_connect(f->qp[i], &f->ep, &self, &to, NULL);
		check(errno, "connect");
	}
}

/* Queue pairs in RESET become ready to be connected. */
static void init_all(struct floor *f)
{
	struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;
	struct ibv_sge sge = { .length = MESSAGE };
	uint32_t i, k;

	wr.sg_list = &sge;
	for (i = 0; i < f->shape.qps; i++) {
		f->own[i] = (struct row){ f->qp[i]->qp_num, lrand48() & 0xffffff, f->mr[i]->rkey };
		errno = rc_init(f->qp[i], &f->ep);
		check(errno, "to INIT");
		sge.addr = (uintptr_t)f->mr[i]->addr;
		sge.lkey = f->mr[i]->lkey;
		for (k = 0; k < f->shape.recvs; k++) {
			errno = ibv_post_recv(f->qp[i], &wr, &bad);
			check(errno, "post_recv");
		}
	}
}

static void post_traffic(struct floor *f)
{
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_sge sge = { .length = MESSAGE };
	uint32_t i, k;

	wr.sg_list = &sge;
	for (i = 0; i < f->shape.qps; i++) {
		sge.addr = (uintptr_t)f->mr[i]->addr;
		sge.lkey = f->mr[i]->lkey;
		for (k = 0; k < f->shape.depth; k++) {
			errno = ibv_post_send(f->qp[i], &wr, &bad);
			check(errno, "post_send");
		}
	}
}

/* How many sends have completed. */
static unsigned long poll_sends(struct ibv_cq *cq)
{
	unsigned long sends = 0;
	struct ibv_wc wc[32];
	int n, i;

	n = ibv_poll_cq(cq, 32, wc);
	check(n < 0, "poll_cq");
	for (i = 0; i < n; i++) {
		if (wc[i].status)
			errx(1, "completion: %s", ibv_wc_status_str(wc[i].status));
		sends += wc[i].opcode == IBV_WC_SEND;
	}
	return sends;
}

/* Until every send of this end has completed. */
static void drain(struct floor *f)
{
	unsigned long left = (unsigned long)f->shape.qps * f->shape.depth;
	uint32_t i;

	while (left)
		for (i = 0; i < f->shape.cqs; i++)
			left -= poll_sends(f->cq[i]);
}

static void create_objects(struct floor *f)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = f->shape.sends, .max_recv_wr = f->shape.recvs,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	uint32_t i, users = (f->shape.qps + f->shape.cqs - 1) / f->shape.cqs;

	f->pd = ibv_alloc_pd(f->ep.ctx);
	check(!f->pd, "alloc_pd");
	for (i = 0; i < f->shape.qps; i++) {
		f->mr[i] = ibv_reg_mr(f->pd, f->memory + i * f->bytes, f->bytes, access);
		check(!f->mr[i], "reg_mr");
	}
	if (f->more) {
		f->more_mr = ibv_reg_mr(f->pd, f->more_memory, f->more, access);
		check(!f->more_mr, "reg_mr");
	}
	f->channel = ibv_create_comp_channel(f->ep.ctx);
	check(!f->channel, "create_comp_channel");
	for (i = 0; i < f->shape.cqs; i++) {
		f->cq[i] = ibv_create_cq(f->ep.ctx, users * (f->shape.sends + f->shape.recvs), NULL,
					 f->channel, 0);
		check(!f->cq[i], "create_cq");
		check(ibv_req_notify_cq(f->cq[i], 0), "req_notify_cq");
	}
	for (i = 0; i < f->shape.qps; i++) {
		attr.send_cq = attr.recv_cq = f->cq[i % f->shape.cqs];
		f->qp[i] = ibv_create_qp(f->pd, &attr);
		check(!f->qp[i], "create_qp");
	}
	init_all(f);
}

static void unmake(struct floor *f)
{
	uint32_t i;

	for (i = 0; i < f->shape.qps; i++)
		check(ibv_destroy_qp(f->qp[i]), "destroy_qp");
	for (i = 0; i < f->shape.cqs; i++)
		check(ibv_destroy_cq(f->cq[i]), "destroy_cq");
	check(ibv_destroy_comp_channel(f->channel), "destroy_comp_channel");
	for (i = 0; i < f->shape.qps; i++)
		check(ibv_dereg_mr(f->mr[i]), "dereg_mr");
	if (f->more)
		check(ibv_dereg_mr(f->more_mr), "dereg_mr");
	check(ibv_dealloc_pd(f->pd), "dealloc_pd");
	check(ibv_close_device(f->ep.ctx), "close_device");
}

/* What comes between close and open, such as a migration, is for who runs us. */
static void wait_at(struct floor *f, const char *where)
{
	int c;

	if (!f->wait)
		return;
	puts(where);
	fflush(stdout);
	do
		c = getchar();
	while (c != '\n' && c != EOF);
	f->since = now();
}

static void mover_round(struct floor *f)
{
	wait_at(f, "ready");
	say(f, 't');
	expect(f, 't');

	f->since = now();
	drain(f);
	say(f, 's');
	expect(f, 's');
	hear_addresses(f);
	lap(f, DRAIN);
	unmake(f);
	lap(f, RELEASE);
	wait_at(f, "closed");
	endpoint_open(&f->ep, f->device, -1);
	lap(f, OPEN);
	create_objects(f);
	lap(f, RECREATE);
	tell_addresses(f);
	connect_all(f);
	expect(f, 'c');
	lap(f, CONNECT);
	post_traffic(f);
	lap(f, REPLAY);
}

static void reset_all(struct floor *f)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc[32];
	uint32_t i;

	for (i = 0; i < f->shape.cqs; i++)
		while (ibv_poll_cq(f->cq[i], 32, wc) > 0)
			;
	for (i = 0; i < f->shape.qps; i++) {
		errno = ibv_modify_qp(f->qp[i], &attr, IBV_QP_STATE);
		check(errno, "to RESET");
	}
}

/* false: the mover has ended. */
static bool peer_round(struct floor *f)
{
	char word;

	hear(f, &word, 1);
	if (word != 't')
		return false;
	say(f, 't');
	expect(f, 's');
	drain(f);
	say(f, 's');
	reset_all(f);
	init_all(f);
	tell_addresses(f);
	hear_addresses(f);
	connect_all(f);
	say(f, 'c');
	post_traffic(f);
	return true;
}

static void report(const struct floor *f)
{
	double total = 0;
	int i;

	printf("{\"qps\":%u,\"bytes\":%zu,\"ms\":{", f->shape.qps,
	       f->bytes * f->shape.qps + f->more);
	for (i = 0; i < STEPS; i++) {
		printf("\"%s\":%.3f,", step_names[i], f->took[i]);
		total += f->took[i];
	}
	printf("\"total\":%.3f}}\n", total);
	fflush(stdout);
}

static char *memory(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	check(p == MAP_FAILED, "memory");
	return p;
}

static void set_up(struct floor *f)
{
	f->qp = calloc(f->shape.qps, sizeof(struct ibv_qp *));
	f->mr = calloc(f->shape.qps, sizeof(struct ibv_mr *));
	f->cq = calloc(f->shape.cqs, sizeof(struct ibv_cq *));
	f->own = calloc(f->shape.qps, sizeof(*f->own));
	f->theirs = calloc(f->shape.qps, sizeof(*f->theirs));
	check(!f->qp || !f->mr || !f->cq || !f->own || !f->theirs, "memory");
	f->memory = memory(f->bytes * f->shape.qps);
	if (f->more)
		f->more_memory = memory(f->more);
	endpoint_open(&f->ep, f->device, -1);
	create_objects(f);
	tell_addresses(f);
	hear_addresses(f);
	connect_all(f);
	say(f, 'r');
	expect(f, 'r');
	post_traffic(f);
}

int main(int argc, char **argv)
{
	struct floor f = { .shape = { 1, 20, 24, 2, 1 }, .bytes = 65536, .rounds = 1 };
	uint16_t port = 18700;
	unsigned int round;
	int o;

	while ((o = getopt(argc, argv, "d:p:q:c:S:R:n:s:M:r:wh")) >= 0) {
		switch (o) {
		case 'd': f.device = optarg; break;
		case 'p': port = strtoul(optarg, NULL, 0); break;
		case 'q': f.shape.qps = strtoul(optarg, NULL, 0); break;
		case 'c': f.shape.cqs = strtoul(optarg, NULL, 0); break;
		case 'S': f.shape.sends = strtoul(optarg, NULL, 0); break;
		case 'R': f.shape.recvs = strtoul(optarg, NULL, 0); break;
		case 'n': f.shape.depth = strtoul(optarg, NULL, 0); break;
		case 's': f.bytes = strtoul(optarg, NULL, 0); break;
		case 'M': f.more = strtoul(optarg, NULL, 0); break;
		case 'r': f.rounds = strtoul(optarg, NULL, 0); break;
		case 'w': f.wait = true; break;
		default:
			fputs(usage, o == 'h' ? stdout : stderr);
			return o == 'h' ? 0 : 2;
		}
	}
	srand48(time(NULL));
	if (optind == argc) {
		f.oob = oob_listen(port);
		hear(&f, &f.shape, sizeof(f.shape));
	} else {
		f.oob = oob_connect(argv[optind], port, 10);
		tell(&f, &f.shape, sizeof(f.shape));
	}
	if (!f.shape.qps || !f.shape.cqs || f.bytes < MESSAGE || f.shape.depth > f.shape.sends ||
	    f.shape.depth > f.shape.recvs)
		errx(2, "at least one queue pair, %d bytes, requests for -n", MESSAGE);
	set_up(&f);
	if (optind == argc) {
		while (peer_round(&f))
			;
		return 0;
	}
	for (round = 0; round < f.rounds; round++) {
		mover_round(&f);
		report(&f);
	}
	say(&f, 'e');
	return 0;
}
