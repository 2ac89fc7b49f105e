// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qpscript.h"

#define QKEY 0x11111111

/* The value of key=value among the words, or a default. */
static int option(char **words, const char *key, int otherwise)
{
	size_t n = strlen(key);

	for (; *words; words++)
		if (!strncmp(*words, key, n) && (*words)[n] == '=')
			return atoi(*words + n + 1);
	return otherwise;
}

static bool has(char **words, const char *word)
{
	for (; *words; words++)
		if (!strcmp(*words, word))
			return true;
	return false;
}

struct ibv_port_attr port_of(const struct queue *q, int port)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(q->context, port, &attr))
		err(2, "query port %d", port);
	return attr;
}

int open_queue(struct queue *q, char **w)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *pd;

	snprintf(q->name, sizeof(q->name), "%s", w[0]);
	q->port = number(w[2], 1);
	q->pkey = option(w, "pkey", 0);
	q->type = has(w, "uc") ? IBV_QPT_UC : has(w, "ud") ? IBV_QPT_UD : IBV_QPT_RC;
	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), w[1]))
			q->context = ibv_open_device(list[i]);
	pd = q->context ? ibv_alloc_pd(q->context) : NULL;
	q->cq = pd ? ibv_create_cq(q->context, 2 * DEPTH, NULL, NULL, 0) : NULL;
	q->memory = aligned_alloc(4096, ROOM);
	q->mr = pd ? ibv_reg_mr(pd, q->memory, ROOM, IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ) : NULL;
	init.send_cq = q->cq;
	init.recv_cq = q->cq;
	init.qp_type = q->type;
	if (pd && has(w, "srq")) {
		q->srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){
			.attr = { .max_wr = DEPTH, .max_sge = 1 } });
		init.srq = q->srq;
	}
	q->qp = q->mr && q->cq ? ibv_create_qp(pd, &init) : NULL;
	if (!q->qp)
		err(2, "open %s", w[1]);
	fcntl(q->context->async_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

/* RoCE: both ends are on one device, and have its IPv4 address. */
static void set_gid(struct ibv_ah_attr *ah, const struct queue *to, int port, int gids)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	int i = 0;

	while (i < gids && (ibv_query_gid(to->context, port, i, &ah->grh.dgid) ||
			    memcmp(ah->grh.dgid.raw, mapped, sizeof(mapped))))
		i++;
	if (i == gids)
		errx(2, "port %d has no IPv4 address", port);
	ah->is_global = 1;
	ah->grh.sgid_index = i;
	ah->grh.hop_limit = 64;
}

void set_path(struct ibv_ah_attr *ah, const struct queue *q, int port, int sl)
{
	const struct queue *to = q->peer;
	struct ibv_port_attr attr = port_of(to, port);

	ah->dlid = attr.lid + q->to;
	ah->src_path_bits = q->from;
	ah->sl = sl;
	ah->port_num = port;
	if (attr.link_layer != IBV_LINK_LAYER_ETHERNET) {
		if (q->by_gid && ibv_query_gid(to->context, port, 0, &ah->grh.dgid))
			err(1, "GID of port %d", port);
		ah->is_global = q->by_gid;
		return;
	}
	set_gid(ah, to, port, attr.gid_tbl_len);
	ah->grh.traffic_class = sl << 5;
}

int service_level(const struct ibv_ah_attr *ah)
{
	return ah->is_global && !ah->dlid ? ah->grh.traffic_class >> 5 : ah->sl;
}

static int datagrams_to_rts(struct queue *q, char **w)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = q->port, .qkey = QKEY,
		.pkey_index = q->pkey };
	struct ibv_ah_attr ah = { 0 };

	if (ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		return -1;
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(q->qp, &a, IBV_QP_STATE))
		return -1;
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN))
		return -1;
	set_path(&ah, q, q->peer->port, option(w, "sl", 0));
	ah.port_num = q->port;
	q->ah = ibv_create_ah(q->qp->pd, &ah);
	return q->ah ? 0 : -1;
}

static int to_rts(struct queue *q, char **w)
{
	int alt = option(w, "alt", 0), rc = q->type == IBV_QPT_RC ? -1 : 0;
	struct ibv_port_attr own = port_of(q, q->port);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = q->port,
		.pkey_index = q->pkey, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
			(rc & IBV_ACCESS_REMOTE_READ) };

	if (q->type == IBV_QPT_UD)
		return datagrams_to_rts(q, w);
	if (ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		return -1;
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_2048,
		.dest_qp_num = q->peer->qp->qp_num, .rq_psn = 0xfffff0, .max_dest_rd_atomic = 4,
		.min_rnr_timer = 12, .alt_port_num = alt, .alt_timeout = option(w, "timeout", 14) };
	if (own.link_layer == IBV_LINK_LAYER_ETHERNET)
		a.path_mtu = own.active_mtu;
	set_path(&a.ah_attr, q, q->peer->port, option(w, "sl", 0));
	a.ah_attr.port_num = q->port;
	a.ah_attr.static_rate = option(w, "rate", IBV_RATE_MAX);
	if (alt) {
		set_path(&a.alt_ah_attr, q, alt, option(w, "altsl", 0));
		a.alt_ah_attr.static_rate = option(w, "altrate", IBV_RATE_MAX);
	}
	if (ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			  IBV_QP_RQ_PSN | (alt ? IBV_QP_ALT_PATH : 0) |
			  (rc & (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))))
		return -1;
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = option(w, "timeout", 14),
		.retry_cnt = option(w, "retry", 7), .rnr_retry = option(w, "rnr", 7),
		.sq_psn = 0xfffff0, .max_rd_atomic = 4, .path_mig_state = IBV_MIG_REARM };
	return ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			     (alt ? IBV_QP_PATH_MIG_STATE : 0) |
			     (rc & (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC)));
}

int connect_queues(struct queue *q, struct queue *r, char **w)
{
	q->peer = r;
	r->peer = q;
	q->by_gid = r->by_gid = has(w, "gid");
	q->bits = option(w, "bits", 0);
	r->bits = option(w, "rbits", 0);
	q->from = option(w, "from", q->bits);
	q->to = option(w, "to", r->bits);
	r->from = r->bits;
	r->to = q->bits;
	return to_rts(q, w) || to_rts(r, w);
}

int post_recv(struct queue *q, int n)
{
	struct ibv_sge sge = { (uintptr_t)q->memory, ROOM, q->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	while (n--)
		if (q->srq ? ibv_post_srq_recv(q->srq, &wr, &bad) : ibv_post_recv(q->qp, &wr, &bad))
			return -1;
	return 0;
}

int post_send(struct queue *q, char **w, enum ibv_wr_opcode opcode)
{
	int n = number(w[1], 1), bytes = w[1] ? number(w[2], 64) : 64;
	bool bad_key = w[1] && w[2] && w[3] && !strcmp(w[3], "badkey");
	struct ibv_sge sge = { (uintptr_t)q->memory, bytes, q->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED, .wr_id = 1 }, *bad;

	if (q->ah) {
		wr.wr.ud.ah = q->ah;
		wr.wr.ud.remote_qpn = q->peer->qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY ^ (bad_key ? 0x55 : 0);
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)q->peer->memory;
		wr.wr.rdma.rkey = q->peer->mr->rkey ^ (bad_key ? 0x55 : 0);
	}
	q->bytes = bytes;
	for (; n--; q->posted++)
		if (ibv_post_send(q->qp, &wr, &bad))
			return -1;
	return 0;
}
