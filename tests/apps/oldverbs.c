// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * oldverbs: a program of libibverbs 1.0. Each function that has a version of its own for such programs is
 * called at that version, with the structures of that time. Two RC queue pairs of one process, each
 * other's peer, one of them with an SRQ: SENDs and WRITEs, woken by events, what arrives is compared. Ends by
 * SIGTERM.
 *
 *	oldverbs DEVICE
 */
#include <err.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What libibverbs hands to such a program; handles that are only passed on are void pointers. */
struct old_cq;
struct old_qp;

struct old_send_wr {
	struct old_send_wr *next;
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	int send_flags;
	uint32_t imm_data;
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t longest[2];	/* an atomic's */
};

struct old_recv_wr {
	struct old_recv_wr *next;
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
};

/* The functions in a table are those that verbs.h had inline; of the others there were more. */
struct old_context {
	void *device;
	void *verbs[7];
	int (*poll_cq)(struct old_cq *cq, int n, struct ibv_wc *wc);
	int (*req_notify_cq)(struct old_cq *cq, int solicited_only);
	void *more_verbs[7];
	int (*post_srq_recv)(void *srq, struct old_recv_wr *wr, struct old_recv_wr **bad);
	void *yet_more_verbs[4];
	int (*post_send)(struct old_qp *qp, struct old_send_wr *wr, struct old_send_wr **bad);
	int (*post_recv)(struct old_qp *qp, struct old_recv_wr *wr, struct old_recv_wr **bad);
	void *last_verbs[4];
	int cmd_fd, async_fd, num_comp_vectors;
};

struct old_mr {
	struct old_context *context;
	void *pd;
	uint32_t handle, lkey, rkey;
};

struct old_cq {
	struct old_context *context;
};

struct old_qp {
	struct old_context *context;
	void *qp_context, *pd;
	struct old_cq *send_cq, *recv_cq;
	void *srq;
	uint32_t handle, qp_num;
	enum ibv_qp_state state;
};

#define OLD(ret, name, ...)						\
	extern ret old_##name(__VA_ARGS__);				\
	__asm__(".symver old_" #name ", ibv_" #name "@IBVERBS_1.0")

OLD(void *, get_device_list, int *num);
OLD(void, free_device_list, void **list);
OLD(const char *, get_device_name, void *device);
OLD(struct old_context *, open_device, void *device);
OLD(int, close_device, struct old_context *ctx);
OLD(int, query_port, struct old_context *ctx, uint8_t port, struct ibv_port_attr *attr);
OLD(int, query_gid, struct old_context *ctx, uint8_t port, int index, union ibv_gid *gid);
OLD(void *, alloc_pd, struct old_context *ctx);
OLD(int, dealloc_pd, void *pd);
OLD(struct old_mr *, reg_mr, void *pd, void *addr, size_t length, int access);
OLD(int, dereg_mr, struct old_mr *mr);
OLD(struct old_cq *, create_cq, struct old_context *ctx, int cqe, void *cookie,
    struct ibv_comp_channel *channel, int vector);
OLD(int, destroy_cq, struct old_cq *cq);
OLD(int, get_cq_event, struct ibv_comp_channel *channel, struct old_cq **cq, void **cookie);
OLD(void, ack_cq_events, struct old_cq *cq, unsigned int n);
OLD(void *, create_srq, void *pd, struct ibv_srq_init_attr *attr);
OLD(int, destroy_srq, void *srq);
OLD(struct old_qp *, create_qp, void *pd, struct ibv_qp_init_attr *attr);
OLD(int, modify_qp, struct old_qp *qp, struct ibv_qp_attr *attr, int mask);
OLD(int, query_qp, struct old_qp *qp, struct ibv_qp_attr *attr, int mask,
    struct ibv_qp_init_attr *init);
OLD(int, destroy_qp, struct old_qp *qp);

#define BYTES	64
#define PSN	0x123

/* Sent from, sent to, written to. */
static struct {
	char from[BYTES], to[BYTES], written[BYTES];
} memory;

static struct old_context *ctx;
static struct ibv_comp_channel *channel;
static struct old_cq *cq;
static struct old_qp *qp[2];	/* the second one with the SRQ */
static void *srq;
static struct old_mr *mr;
static volatile sig_atomic_t stop;

static void on_term(int number)
{
	(void)number;
	stop = 1;
}

static void check(bool fine, const char *what)
{
	if (!fine)
		err(1, "%s", what);
}

/* For those that return what is wrong. */
static void check_errno(int error, const char *what)
{
	errno = error;
	check(!error, what);
}

static void open_by_name(const char *name)
{
	void **list = old_get_device_list(NULL), **device;

	check(list, "get_device_list");
	for (device = list; *device; device++)
		if (!strcmp(old_get_device_name(*device), name))
			break;
	if (!*device)
		errx(1, "no %s", name);
	ctx = old_open_device(*device);
	check(ctx, "open_device");
	old_free_device_list(list);
}

/* Of the GIDs the one that holds an IPv4 address; without, the first. */
static int own_address(union ibv_gid *gid, uint16_t *lid)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_port_attr port;
	int i;

	check_errno(old_query_port(ctx, 1, &port), "query_port");
	*lid = port.lid;
	for (i = 0; i < port.gid_tbl_len; i++)
		if (!old_query_gid(ctx, 1, i, gid) && !memcmp(gid->raw, v4, sizeof(v4)))
			return i;
	check(!old_query_gid(ctx, 1, 0, gid), "query_gid");
	return 0;
}

static void connect_to(struct old_qp *self, const struct old_qp *other)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = other->qp_num,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 },
	};

	attr.ah_attr.grh.sgid_index = own_address(&attr.ah_attr.grh.dgid, &attr.ah_attr.dlid);
	check_errno(old_modify_qp(self, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_ACCESS_FLAGS), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check_errno(old_modify_qp(self, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check_errno(old_modify_qp(self, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		    "RTS");
}

static void post(struct old_qp *to, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)memory.from, BYTES, mr->lkey };
	struct old_send_wr wr = {
		.wr_id = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.remote_addr = (uintptr_t)memory.written,
		.rkey = mr->rkey,
	}, *bad;

	check_errno(to->context->post_send(to, &wr, &bad), "post_send");
}

static void post_receive(struct old_qp *at)
{
	struct ibv_sge sge = { (uintptr_t)memory.to, BYTES, mr->lkey };
	struct old_recv_wr wr = { .wr_id = BYTES, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (at == qp[1])
		check_errno(ctx->post_srq_recv(srq, &wr, &bad), "post_srq_recv");
	else
		check_errno(ctx->post_recv(at, &wr, &bad), "post_recv");
}

/* Each event is asked for before the queue is read empty, so none is missed. */
static void complete(int left)
{
	struct old_cq *which;
	struct ibv_wc wc;
	void *cookie;
	int n;

	for (;;) {
		check(!cq->context->req_notify_cq(cq, 0), "req_notify_cq");
		while ((n = cq->context->poll_cq(cq, 1, &wc)) > 0) {
			if (wc.status)
				errx(1, "completion: %s", ibv_wc_status_str(wc.status));
			if (wc.qp_num != qp[0]->qp_num && wc.qp_num != qp[1]->qp_num)
				errx(1, "completion of queue pair %#x", wc.qp_num);
			left--;
		}
		check(!n, "poll_cq");
		if (left <= 0)
			break;
		check(!old_get_cq_event(channel, &which, &cookie), "get_cq_event");
		if (which != cq || cookie != &cq)
			errx(1, "event of another completion queue");
		old_ack_cq_events(which, 1);
	}
	if (left)
		errx(1, "%d completions too many", -left);
}

/* There by SEND and WRITE, the other way the next time. */
static void exchange(unsigned long number)
{
	struct old_qp *from = qp[number % 2], *to = qp[!(number % 2)];

	memset(&memory, 0, sizeof(memory));
	snprintf(memory.from, BYTES, "message %lu", number);
	post_receive(to);
	post(from, IBV_WR_RDMA_WRITE);
	post(from, IBV_WR_SEND);
	complete(3);
	if (memcmp(memory.to, memory.from, BYTES) || memcmp(memory.written, memory.from, BYTES))
		errx(1, "sent '%s', got '%.*s', '%.*s'", memory.from, BYTES, memory.to, BYTES,
		     memory.written);
}

/* Of one without an SRQ libibverbs can not tell a program of 1.0: it looks into the SRQ. */
static void check_still_there(struct old_qp *self, uint32_t peer)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check_errno(old_query_qp(self, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init), "query_qp");
	if (attr.qp_state != IBV_QPS_RTS || attr.dest_qp_num != peer)
		errx(1, "queue pair %#x is in state %d, connected to %#x", self->qp_num,
		     attr.qp_state, attr.dest_qp_num);
	if ((void *)init.send_cq != cq || (void *)init.recv_cq != cq || (void *)init.srq != srq)
		errx(1, "query_qp tells other queues");
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_term, .sa_flags = SA_RESTART };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	unsigned long number = 0;
	uint32_t numbers[2];
	void *pd;
	int i;

	if (argc != 2)
		errx(2, "usage: oldverbs DEVICE");
	sigaction(SIGTERM, &action, NULL);
	open_by_name(argv[1]);
	pd = old_alloc_pd(ctx);
	check(pd, "alloc_pd");
	mr = old_reg_mr(pd, &memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(mr, "reg_mr");
	/* It has no other version. */
	channel = ibv_create_comp_channel((void *)ctx);
	check(channel, "create_comp_channel");
	cq = old_create_cq(ctx, 16, &cq, channel, 0);
	check(cq, "create_cq");
	srq = old_create_srq(pd, &srq_init);
	check(srq, "create_srq");
	init.send_cq = init.recv_cq = (void *)cq;
	for (i = 0; i < 2; i++) {
		init.srq = i ? srq : NULL;
		qp[i] = old_create_qp(pd, &init);
		check(qp[i], "create_qp");
		numbers[i] = qp[i]->qp_num;
	}
	for (i = 0; i < 2; i++)
		connect_to(qp[i], qp[!i]);

	while (!stop) {
		exchange(++number);
		if (!(number % 20)) {
			printf("{\"msgs\":%lu}\n", number);
			fflush(stdout);
		}
	}

	if (qp[0]->qp_num != numbers[0] || qp[1]->qp_num != numbers[1])
		errx(1, "a queue pair has another number");
	check_still_there(qp[1], numbers[0]);
	for (i = 0; i < 2; i++)
		check_errno(old_destroy_qp(qp[i]), "destroy_qp");
	check_errno(old_destroy_srq(srq), "destroy_srq");
	check_errno(old_destroy_cq(cq), "destroy_cq");
	check_errno(ibv_destroy_comp_channel(channel), "destroy_comp_channel");
	check_errno(old_dereg_mr(mr), "dereg_mr");
	check_errno(old_dealloc_pd(pd), "dealloc_pd");
	check_errno(old_close_device(ctx), "close_device");
	printf("{\"ok\":true,\"msgs\":%lu}\n", number);
	return 0;
}
