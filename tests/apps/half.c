// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two ends of one connection, the client's of which is connected later: at SIGUSR1. From then on a number goes to and
 * fro, and is one more each time, until the client gets SIGTERM.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"
#include "oob.h"

#define DEPTH	4

struct half {
	struct endpoint ep;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct rc_address own, peer;
	uint64_t room[2];	/* what is sent, what is received */
};

static volatile sig_atomic_t go, stop;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		go = 1;
	else
		stop = 1;
}

static void make(struct half *h, const char *device)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	endpoint_open(&h->ep, device, -1);
	h->pd = ibv_alloc_pd(h->ep.ctx);
	h->cq = ibv_create_cq(h->ep.ctx, 2 * DEPTH, NULL, NULL, 0);
	if (!h->pd || !h->cq)
		err(2, "PD, CQ");
	h->mr = ibv_reg_mr(h->pd, h->room, sizeof(h->room), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = h->cq;
	h->qp = h->mr ? ibv_create_qp(h->pd, &init) : NULL;
	if (!h->qp || rc_init(h->qp, &h->ep))
		err(2, "QP");
	h->own = endpoint_address(&h->ep, h->qp, getpid());
}

static void post_recv(struct half *h)
{
	struct ibv_sge sge = { (uintptr_t)&h->room[1], sizeof(h->room[1]), h->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(h->qp, &wr, &bad))
		err(1, "post_recv");
}

static void post_send(struct half *h, uint64_t number)
{
	struct ibv_sge sge = { (uintptr_t)&h->room[0], sizeof(h->room[0]), h->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	h->room[0] = number;
	if (ibv_post_send(h->qp, &wr, &bad))
		err(1, "post_send");
}

/* Until what was posted is done: @sent and @received of them. */
static void wait_done(struct half *h, int sent, int received)
{
	struct ibv_wc wc;

	while (sent || received) {
		if (!ibv_poll_cq(h->cq, 1, &wc)) {
			usleep(1000);
			continue;
		}
		if (wc.status)
			errx(1, "%s: %s", wc.wr_id ? "receive" : "send", ibv_wc_status_str(wc.status));
		if (wc.wr_id)
			received--;
		else
			sent--;
	}
}

/* The client's number is odd, the answer even; 0 is the last. */
static uint64_t run(struct half *h, bool client)
{
	uint64_t number = 1, last;

	for (;;) {
		if (client) {
			last = stop ? 0 : number;
			post_send(h, last);
			wait_done(h, 1, 1);
		} else {
			wait_done(h, 0, 1);
			last = h->room[1];
		}
		if (h->room[1] != (!last ? 0 : client ? number + 1 : number))
			errx(1, "not what was written: %lu after %lu", (long)h->room[1], (long)number);
		post_recv(h);
		if (!client) {
			post_send(h, last ? number + 1 : 0);
			wait_done(h, 1, 0);
		}
		if (!last)
			return number / 2;
		number += 2;
		if (number / 2 % 10 == 0) {
			printf("{\"rounds\":%lu}\n", (long)number / 2);
			fflush(stdout);
		}
		usleep(10000);
	}
}

int main(int argc, char **argv)
{
	const char *server = NULL, *device = NULL;
	struct half h = { 0 };
	uint64_t rounds;
	int opt, oob;
	char c = 0;

	while ((opt = getopt(argc, argv, "d:")) != -1) {
		if (opt != 'd')
			errx(2, "usage: half [-d DEVICE] [SERVER]");
		device = optarg;
	}
	server = argv[optind];
	signal(SIGUSR1, on_signal);
	signal(SIGTERM, on_signal);
	oob = server ? oob_connect(server, 18800, 60) : oob_listen(18800);
	make(&h, device);
	post_recv(&h);
	if (!oob_write(oob, &h.own, sizeof(h.own)) || !oob_read(oob, &h.peer, sizeof(h.peer)))
		errx(2, "the other end has gone");
	if (server) {
		/* The other end is connected. */
		if (!oob_read(oob, &c, 1))
			errx(2, "the other end has gone");
		puts("half");
		fflush(stdout);
		while (!go)
			usleep(10000);
	}
	if (rc_connect(h.qp, &h.ep, &h.own, &h.peer, NULL))
		err(1, "connect");
	if (!server && !oob_write(oob, &c, 1))
		errx(2, "the other end has gone");
	rounds = run(&h, server);
	printf("{\"rounds\":%lu,\"ok\":true}\n", (long)rounds);
	return 0;
}
