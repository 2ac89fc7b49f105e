// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dialog: does verbs as it is told on its standard input, one line a command, and answers each with
 * one line. So a test decides who connects to whom, when, by which number, and with which key.
 *
 *	address			-> address ADDRESS, as it was when the program began
 *	qp			-> qp NUMBER QPN		in INIT
 *	connect NUMBER ADDRESS QPN -> connect ERRNO		RTR and RTS
 *	reset NUMBER		-> reset ERRNO			RESET and INIT
 *	key			-> key NUMBER RKEY ADDRESS	a region, the same memory each time
 *	unkey NUMBER		-> unkey ERRNO
 *	write NUMBER RKEY ADDRESS TEXT -> write STATUS		RDMA WRITE; enum ibv_wc_status
 *	text			-> text TEXT			what was written to the memory
 *	load COUNT		-> load COUNT			so many regions more, of no use but to be told of
 *	ud			-> ud NUMBER QPN		in RTS, with receives
 *	tell NUMBER ADDRESS QPN TEXT -> tell STATUS		a datagram; one address handle an ADDRESS
 *	heard NUMBER		-> heard TEXT			in the last datagram that has come
 *
 * An ADDRESS is GID on RoCE, GID@LID on InfiniBand, or @LID: by the LID alone, without a GRH.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"

#define MANY	64
#define BYTES	4096
#define PSN	0x100
#define QKEY	0x1234
#define GRH	40
#define LETTERS	8	/* receives of a UD queue pair */
#define LETTER	256

struct handle {
	char address[64];
	struct ibv_ah *ah;
};

static struct endpoint ep;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qps[MANY];
static struct ibv_mr *mrs[MANY], *own, *post;
static struct handle handles[MANY];
static unsigned int nqps, nmrs, nhandles;
static char *memory, *text, *letters;	/* LETTERS of each queue pair */

static void need(const void *what, const char *name)
{
	if (what)
		return;
	fprintf(stderr, "dialog: %s: %s\n", name, strerror(errno));
	exit(1);
}

static int new_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	need(nqps < MANY ? &ep : NULL, "too many queue pairs");
	qps[nqps] = ibv_create_qp(pd, &init);
	need(qps[nqps], "ibv_create_qp");
	errno = rc_init(qps[nqps], &ep);
	need(errno ? NULL : &ep, "INIT");
	return nqps++;
}

static char *letter(unsigned int qp, unsigned int i)
{
	return letters + (qp * LETTERS + i) * LETTER;
}

static void post_letter(unsigned int qp, unsigned int i)
{
	struct ibv_sge sge = { (uintptr_t)letter(qp, i), LETTER, post->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(qps[qp], &wr, &bad);
	need(errno ? NULL : &ep, "ibv_post_recv");
}

static int new_ud(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = LETTERS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = ep.port, .qkey = QKEY };
	unsigned int i;

	need(nqps < MANY ? &ep : NULL, "too many queue pairs");
	init.recv_cq = ibv_create_cq(ep.ctx, LETTERS, NULL, NULL, 0);
	need(init.recv_cq, "ibv_create_cq");
	qps[nqps] = ibv_create_qp(pd, &init);
	need(qps[nqps], "ibv_create_qp");
	errno = ibv_modify_qp(qps[nqps], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      IBV_QP_QKEY);
	need(errno ? NULL : &ep, "INIT");
	for (i = 0; i < LETTERS; i++)
		post_letter(nqps, i);
	attr.qp_state = IBV_QPS_RTR;
	errno = ibv_modify_qp(qps[nqps], &attr, IBV_QP_STATE);
	need(errno ? NULL : &ep, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	errno = ibv_modify_qp(qps[nqps], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	need(errno ? NULL : &ep, "RTS");
	return nqps++;
}

/* The GID stays zero where there is none. */
static bool parse_address(const char *address, struct rc_address *to)
{
	char gid[INET6_ADDRSTRLEN] = "";
	const char *at = strchrnul(address, '@');

	if (*at)
		to->lid = atoi(at + 1);
	if (at == address)
		return to->lid;
	snprintf(gid, sizeof(gid), "%.*s", (int)(at - address), address);
	return inet_pton(AF_INET6, gid, to->gid) == 1;
}

static void print_address(void)
{
	printf("address %s", gid_text(&ep.gid));
	if (ep.lid)
		printf("@%u", ep.lid);
	printf("\n");
}

static struct ibv_ah *handle_of(const char *address)
{
	struct rc_address to = { .qpn = 0 };
	struct ibv_ah_attr attr;
	unsigned int i;

	if (!parse_address(address, &to))
		return NULL;
	for (i = 0; i < nhandles; i++)
		if (!strcmp(handles[i].address, address))
			return handles[i].ah;
	need(nhandles < MANY ? &ep : NULL, "too many address handles");
	snprintf(handles[nhandles].address, sizeof(handles[nhandles].address), "%s",
		 address);
	attr = endpoint_path(&ep, &to);
	handles[nhandles].ah = ibv_create_ah(pd, &attr);
	need(handles[nhandles].ah, "ibv_create_ah");
	return handles[nhandles++].ah;
}

static int wait_status(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		usleep(200);
	need(n > 0 ? &ep : NULL, "ibv_poll_cq");
	return wc.status;
}

static int tell(unsigned int qp, const char *address, uint32_t qpn, const char *what)
{
	struct ibv_sge sge = { (uintptr_t)text, LETTER - GRH, own->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = handle_of(address), .remote_qpn = qpn, .remote_qkey = QKEY },
	}, *bad;

	need(wr.wr.ud.ah, "address");
	snprintf(text, LETTER - GRH, "%s", what);
	errno = ibv_post_send(qps[qp], &wr, &bad);
	need(errno ? NULL : &ep, "ibv_post_send");
	return wait_status();
}

static void print_heard(unsigned int qp)
{
	char last[LETTER] = "";
	struct ibv_wc wc;

	while (ibv_poll_cq(qps[qp]->recv_cq, 1, &wc) > 0) {
		need(wc.status ? NULL : &ep, "receive");
		snprintf(last, sizeof(last), "%s", letter(qp, wc.wr_id) + GRH);
		post_letter(qp, wc.wr_id);
	}
	printf("heard %s\n", last);
}

static int connect_qp(struct ibv_qp *qp, const char *address, uint32_t qpn)
{
	struct rc_address far = { .qpn = qpn, .psn = PSN, .mtu = ep.mtu };
	struct rc_address near = endpoint_address(&ep, qp, PSN);

	if (!parse_address(address, &far))
		return EINVAL;
	return rc_connect(qp, &ep, &near, &far, NULL);
}

static int reset_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE);

	return ret ? ret : rc_init(qp, &ep);
}

static int write_text(struct ibv_qp *qp, uint32_t rkey, uint64_t address, const char *what)
{
	struct ibv_sge sge = { (uintptr_t)text, BYTES / 2, own->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { address, rkey },
	}, *bad;

	snprintf(text, BYTES / 2, "%s", what);
	errno = ibv_post_send(qp, &wr, &bad);
	need(errno ? NULL : &ep, "ibv_post_send");
	return wait_status();
}

static void load(unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		need(ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_WRITE), "ibv_reg_mr");
}

static void obey(const char *line)
{
	unsigned int i, qpn, rkey;
	unsigned long long address;
	char word[64], rest[128] = "";

	if (!strcmp(line, "address")) {
		print_address();
	} else if (!strcmp(line, "qp")) {
		i = new_qp();
		printf("qp %u %u\n", i, qps[i]->qp_num);
	} else if (sscanf(line, "connect %u %63s %u", &i, word, &qpn) == 3 && i < nqps) {
		printf("connect %d\n", connect_qp(qps[i], word, qpn));
	} else if (sscanf(line, "reset %u", &i) == 1 && i < nqps) {
		printf("reset %d\n", reset_qp(qps[i]));
	} else if (!strcmp(line, "key") && nmrs < MANY) {
		mrs[nmrs] = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
		need(mrs[nmrs], "ibv_reg_mr");
		printf("key %u %u %llu\n", nmrs, mrs[nmrs]->rkey,
		       (unsigned long long)(uintptr_t)memory);
		nmrs++;
	} else if (sscanf(line, "unkey %u", &i) == 1 && i < nmrs && mrs[i]) {
		printf("unkey %d\n", ibv_dereg_mr(mrs[i]));
		mrs[i] = NULL;
	} else if (sscanf(line, "write %u %u %llu %127[^\n]", &i, &rkey, &address, rest) == 4 &&
		   i < nqps) {
		printf("write %d\n", write_text(qps[i], rkey, address, rest));
	} else if (!strcmp(line, "text")) {
		printf("text %s\n", memory);
	} else if (sscanf(line, "load %u", &i) == 1) {
		load(i);
		printf("load %u\n", i);
	} else if (!strcmp(line, "ud")) {
		i = new_ud();
		printf("ud %u %u\n", i, qps[i]->qp_num);
	} else if (sscanf(line, "tell %u %63s %u %127[^\n]", &i, word, &qpn, rest) == 4 &&
		   i < nqps) {
		printf("tell %d\n", tell(i, word, qpn, rest));
	} else if (sscanf(line, "heard %u", &i) == 1 && i < nqps) {
		print_heard(i);
	} else {
		printf("what %s\n", line);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[256];

	endpoint_open(&ep, argc > 1 ? argv[1] : NULL, -1);
	pd = ibv_alloc_pd(ep.ctx);
	need(pd, "ibv_alloc_pd");
	cq = ibv_create_cq(ep.ctx, 2 * MANY, NULL, NULL, 0);
	need(cq, "ibv_create_cq");
	memory = aligned_alloc(BYTES, 2 * BYTES);
	need(memory, "memory");
	memset(memory, 0, 2 * BYTES);
	text = memory + BYTES;
	own = ibv_reg_mr(pd, text, BYTES, 0);
	need(own, "ibv_reg_mr");
	letters = calloc(MANY * LETTERS, LETTER);
	need(letters, "memory");
	post = ibv_reg_mr(pd, letters, MANY * LETTERS * LETTER, IBV_ACCESS_LOCAL_WRITE);
	need(post, "ibv_reg_mr");
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		obey(line);
	}
	return 0;
}
