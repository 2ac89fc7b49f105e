// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One process, several devices ("rails"), an RC queue pair over each to the other end. Numbered SENDs
 * go both ways on every rail; each must arrive once, in order and whole. What one rail's device
 * suffers must not be seen on the others.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"
#include "oob.h"

#define RAILS	4
#define DEPTH	8
#define WORDS	32

static const char usage[] =
"usage: rails -d DEVICE... [-p PORT] [-w MS] [HOST]\n"
"  -d NAME   a device; once for each rail, in the same order at both ends\n"
"  -p N      TCP port of the out-of-band connection (18650)\n"
"  -w MS     wait so long between two rounds of posting and polling (2 if there was nothing to do, else 0)\n"
"Runs until SIGTERM at the client. A line of JSON twice a second. SIGUSR1: registers memory on the\n"
"first device, and frees it. Exit status: 0 all was right, 1 something was not, 2 could not run.\n";

struct message {
	uint64_t word[WORDS];
};

struct rail {
	struct endpoint ep;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct message *out, *in;	/* DEPTH of each */
	uint64_t posted, sent, received;
};

static volatile sig_atomic_t stop, new_region;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		new_region = 1;
	else
		stop = 1;
}

static void fail(unsigned int rail, const char *what, long long a, long long b)
{
	printf("{\"ok\":false,\"error\":\"rail %u: %s %lld, not %lld\"}\n", rail, what, a, b);
	exit(1);
}

static void post_recv(struct rail *r, uint64_t n)
{
	struct message *m = &r->in[n % DEPTH];
	struct ibv_sge sge = { (uintptr_t)m, sizeof(*m), r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(r->qp, &wr, &bad);
	if (errno)
		err(1, "post_recv");
}

static void post_send(struct rail *r)
{
	uint64_t n = r->posted, i;
	struct message *m = &r->out[n % DEPTH];
	struct ibv_sge sge = { (uintptr_t)m, sizeof(*m), r->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	for (i = 0; i < WORDS; i++)
		m->word[i] = n * WORDS + i;
	errno = ibv_post_send(r->qp, &wr, &bad);
	if (errno)
		err(1, "post_send");
	r->posted++;
}

static void rail_open(struct rail *r, const char *device)
{
	size_t bytes = 2 * DEPTH * sizeof(struct message);
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	uint64_t i;

	endpoint_open(&r->ep, device, -1);
	r->out = aligned_alloc(4096, bytes);
	r->pd = ibv_alloc_pd(r->ep.ctx);
	r->mr = r->out && r->pd ? ibv_reg_mr(r->pd, r->out, bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
	r->cq = ibv_create_cq(r->ep.ctx, 2 * DEPTH, NULL, NULL, 0);
	init.send_cq = init.recv_cq = r->cq;
	r->qp = r->mr && r->cq ? ibv_create_qp(r->pd, &init) : NULL;
	if (!r->qp)
		err(2, "%s", device);
	memset(r->out, 0, bytes);
	r->in = r->out + DEPTH;
	errno = rc_init(r->qp, &r->ep);
	if (errno)
		err(2, "%s", device);
	for (i = 0; i < DEPTH; i++)
		post_recv(r, i);
}

static void rail_connect(struct rail *r, int oob)
{
	struct rc_address mine = endpoint_address(&r->ep, r->qp, 1), theirs;

	if (!oob_write(oob, &mine, sizeof(mine)) || !oob_read(oob, &theirs, sizeof(theirs)))
		errx(2, "the other end has gone");
	errno = rc_connect(r->qp, &r->ep, &mine, &theirs, NULL);
	if (errno)
		err(2, "connect");
}

static void take(struct rail *r, unsigned int number, const struct ibv_wc *wc)
{
	uint64_t i;

	if (wc->status)
		fail(number, "completion with status", wc->status, 0);
	if (wc->qp_num != r->qp->qp_num)
		fail(number, "completion of queue pair", wc->qp_num, r->qp->qp_num);
	if (!(wc->opcode & IBV_WC_RECV)) {
		if (wc->wr_id != r->sent)
			fail(number, "completion of send", wc->wr_id, r->sent);
		r->sent++;
		return;
	}
	if (wc->wr_id != r->received || wc->byte_len != sizeof(struct message))
		fail(number, "completion of receive", wc->wr_id, r->received);
	for (i = 0; i < WORDS; i++)
		if (r->in[r->received % DEPTH].word[i] != r->received * WORDS + i)
			fail(number, "message", r->in[r->received % DEPTH].word[i] / WORDS,
			     r->received);
	post_recv(r, r->received + DEPTH);
	r->received++;
}

static void report(const struct rail *rails, unsigned int n)
{
	unsigned int i;

	printf("{\"rails\":[");
	for (i = 0; i < n; i++)
		printf("%s%llu", i ? "," : "", (unsigned long long)rails[i].received);
	printf("]}\n");
}

static void register_more(struct rail *r)
{
	struct ibv_mr *mr;

	new_region = 0;		/* a signal that comes from here on means another one */
	mr = ibv_reg_mr(r->pd, r->out, sizeof(*r->out), IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		err(1, "reg_mr");
	printf("{\"registered\":%u}\n", mr->rkey);
	if (ibv_dereg_mr(mr))
		err(1, "dereg_mr");
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void run(struct rail *rails, unsigned int n, int oob, unsigned int wait_ms)
{
	double last = 0, ending = 0;
	uint64_t theirs[RAILS];
	unsigned int i;
	bool done = false;

	while (!done) {
		bool quiet = true;

		for (i = 0; i < n; i++) {
			struct rail *r = &rails[i];
			struct ibv_wc wc;
			int got = 0;

			/* Half the depth: the other end has the receives for it. */
			while (!stop && r->posted - r->sent < DEPTH / 2)
				post_send(r);
			while ((got = ibv_poll_cq(r->cq, 1, &wc)) > 0) {
				take(r, i, &wc);
				quiet = false;
			}
			if (got < 0)
				fail(i, "poll_cq says", got, 0);
		}
		if (new_region)
			register_more(&rails[0]);
		if (seconds() - last > 0.5) {
			report(rails, n);
			last = seconds();
		}
		if (!stop && oob_ready(oob))
			stop = 1;	/* the other end has told how much it sent, or has gone */
		if (stop && !ending) {
			uint64_t mine[RAILS] = { 0 };

			for (i = 0; i < n; i++)
				mine[i] = rails[i].posted;
			ending = seconds();
			if (!oob_write(oob, mine, sizeof(mine)) ||
			    !oob_read(oob, theirs, sizeof(theirs)))
				errx(1, "the other end has gone");
		}
		done = stop;
		for (i = 0; i < n && ending; i++)
			done &= rails[i].sent == rails[i].posted &&
				rails[i].received == theirs[i];
		if (ending && seconds() - ending > 60)
			fail(0, "messages at the end", rails[0].received, theirs[0]);
		if (quiet || wait_ms)
			usleep((wait_ms ? wait_ms : 2) * 1000);
	}
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct rail rails[RAILS] = { 0 };
	const char *devices[RAILS];
	unsigned int i, n = 0, wait_ms = 0;
	int o, oob, port = 18650;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGUSR1, &act, NULL);
	while ((o = getopt(argc, argv, "d:p:w:h")) >= 0) {
		if (o == 'd' && n < RAILS)
			devices[n++] = optarg;
		else if (o == 'p')
			port = atoi(optarg);
		else if (o == 'w')
			wait_ms = atoi(optarg);
		else
			errx(o == 'h' ? 0 : 2, "%s", usage);
	}
	if (!n || argc - optind > 1)
		errx(2, "%s", usage);
	oob = optind < argc ? oob_connect(argv[optind], port, 60) : oob_listen(port);
	for (i = 0; i < n; i++)
		rail_open(&rails[i], devices[i]);
	for (i = 0; i < n; i++)
		rail_connect(&rails[i], oob);
	run(rails, n, oob, wait_ms);
	for (i = 0; i < n; i++) {
		if (ibv_destroy_qp(rails[i].qp) || ibv_destroy_cq(rails[i].cq) ||
		    ibv_dereg_mr(rails[i].mr) || ibv_dealloc_pd(rails[i].pd) ||
		    ibv_close_device(rails[i].ep.ctx))
			fail(i, "destroyed", 0, 1);
		free(rails[i].out);
	}
	report(rails, n);
	printf("{\"ok\":true}\n");
	return 0;
}
