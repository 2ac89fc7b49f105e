// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The verbs objects of a run. */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "oob.h"
#include "rcheck.h"

static void create_cq(struct check *c, uint32_t i, int cqe)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.cq_context = &c->unacked[i],
		.channel = c->channel,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM,
	};

	if (c->opt.ex_cq) {
		c->cqx[i] = ibv_create_cq_ex(c->ep.ctx, &attr);
		c->cqs[i] = c->cqx[i] ? ibv_cq_ex_to_cq(c->cqx[i]) : NULL;
	} else {
		c->cqs[i] = ibv_create_cq(c->ep.ctx, cqe, attr.cq_context, attr.channel, 0);
	}
	if (!c->cqs[i])
		err(2, "create a completion queue of %d entries", cqe);
}

static void create_cqs(struct check *c)
{
	uint32_t users = (c->traffic.qps + c->opt.cqs - 1) / c->opt.cqs;
	uint32_t i;

	if (c->opt.wait != WAIT_BUSY) {
		c->channel = ibv_create_comp_channel(c->ep.ctx);
		if (!c->channel)
			err(2, "create a completion channel");
	}
	c->ncqs = c->opt.cqs * (c->opt.split_cq ? 2 : 1);
	for (i = 0; i < c->ncqs; i++)
		create_cq(c, i, users * (c->nsend + c->nrecv));
}

static void create_qp(struct check *c, struct link *l)
{
	uint32_t send = l->index % c->opt.cqs;
	uint32_t recv = c->opt.split_cq ? send + c->opt.cqs : send;
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = l,
		.send_cq = c->cqs[send],
		.recv_cq = c->cqs[recv],
		.cap = {
			.max_send_wr = c->nsend,
			.max_recv_wr = c->nrecv,
			.max_send_sge = c->traffic.sges,
			.max_recv_sge = 1,
			.max_inline_data = c->traffic.inline_max,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = c->opt.sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = c->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
			IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
	};

	if (c->opt.new_post) {
		l->qp = ibv_create_qp_ex(c->ep.ctx, &attr);
		l->qpx = l->qp ? ibv_qp_to_qp_ex(l->qp) : NULL;
		if (l->qp && !l->qpx)
			errx(2, "the queue pair has no ibv_wr_*");
	} else {
		/* The first members of the extended attributes are the plain ones. */
		l->qp = ibv_create_qp(c->pd, (struct ibv_qp_init_attr *)&attr);
	}
	if (!l->qp)
		err(2, "create queue pair %u", l->index);
	errno = rc_init(l->qp, &c->ep);
	if (errno)
		err(2, "queue pair %u to INIT", l->index);
}

static void create_memory(struct check *c, struct link *l)
{
	size_t slots = c->nsend + c->nrecv + c->nwrite + STATIC_SLOTS;
	uint32_t i;

	l->bytes = slots * c->slot + 64;
	l->memory = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->memory == MAP_FAILED)
		err(2, "%zu bytes of memory", l->bytes);
	l->sends = l->memory;
	l->recvs = l->sends + (size_t)c->nsend * c->slot;
	l->writes = l->recvs + (size_t)c->nrecv * c->slot;
	l->statics = l->writes + (size_t)c->nwrite * c->slot;
	l->added = (uint64_t *)(l->statics + STATIC_SLOTS * c->slot);
	l->swapped = l->added + 1;
	*l->swapped = msg_hash(0);
	for (i = 0; i < STATIC_SLOTS; i++) {
		struct msg *m = (struct msg *)slot_at(c, l->statics, i);

		*m = (struct msg){ .magic = MSG_MAGIC, .op = MSG_STATIC, .qp = l->index,
				   .len = c->traffic.size, .from = c->from, .seq = i };
		msg_seal(m);
		if (c->opt.plant == PLANT_READ)
			*((unsigned char *)m + m->len - 1) ^= 0x10;
	}
	l->mr = ibv_reg_mr(c->pd, l->memory, l->bytes,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!l->mr)
		err(2, "register %zu bytes", l->bytes);
}

static void create_link(struct check *c, struct link *l)
{
	l->ring = calloc(c->nsend, sizeof(*l->ring));
	if (!l->ring)
		err(2, "memory");
	l->next_rseq = 1;
	create_memory(c, l);
	create_qp(c, l);
	l->qpn = l->qp->qp_num;
	l->lkey = l->mr->lkey;
	l->rkey = l->mr->rkey;
	l->local = (struct link_address){
		.rc = endpoint_address(&c->ep, l->qp, msg_hash(l->qpn + c->from) & 0xffffff),
		.writes = (uintptr_t)l->writes,
		.statics = (uintptr_t)l->statics,
		.added = (uintptr_t)l->added,
		.swapped = (uintptr_t)l->swapped,
		.rkey = l->rkey,
		.ballast = (uintptr_t)c->ballast,
		.ballast_bytes = (uint64_t)c->opt.ballast << 20,
		.ballast_rkey = c->ballast_mr ? c->ballast_mr->rkey : 0,
	};
}

void links_create(struct check *c)
{
	uint32_t i;

	c->slot = (c->traffic.size + 63) & ~63u;
	c->room = c->traffic.depth + CREDIT_ROOM;
	c->nsend = c->room + (c->opt.probe ? PROBE_ROOM : 0);
	c->nrecv = c->traffic.depth + CREDIT_RECVS;
	c->nwrite = c->traffic.depth * 2 < 8 ? 8 : c->traffic.depth * 2;
	endpoint_open(&c->ep, c->opt.device, c->opt.gid_index);
	c->ep.sl = c->opt.sl;
	c->pd = ibv_alloc_pd(c->ep.ctx);
	if (!c->pd)
		err(2, "allocate a protection domain");
	ballast_create(c);
	create_cqs(c);
	c->links = calloc(c->traffic.qps, sizeof(*c->links));
	if (!c->links)
		err(2, "memory");
	for (i = 0; i < c->traffic.qps; i++) {
		c->links[i].index = i;
		create_link(c, &c->links[i]);
	}
}

void links_connect(struct check *c)
{
	uint32_t i;
	char go = 'g';

	for (i = 0; i < c->traffic.qps; i++) {
		struct link *l = &c->links[i];

		if (!oob_write(c->oob, &l->local, sizeof(l->local)) ||
		    !oob_read(c->oob, &l->remote, sizeof(l->remote)))
			errx(2, "the other end has gone");
		errno = rc_connect(l->qp, &c->ep, &l->local.rc, &l->remote.rc, &c->opt.limits);
		if (errno)
			err(2, "connect queue pair %u", i);
		link_post_recvs(c, l);
	}
	/* Nothing may be sent before the other end can take it. */
	if (!oob_write(c->oob, &go, 1) || !oob_read(c->oob, &go, 1))
		errx(2, "the other end has gone");
}

static void check_qp_at_end(struct check *c, struct link *l)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int rc = ibv_query_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_SQ_PSN, &init);

	if (rc)
		fail(c, l, "query_qp at the end: %s", strerror(rc));
	else if (attr.qp_state != IBV_QPS_RTS)
		fail(c, l, "in state %d at the end, not RTS", attr.qp_state);
	else if (attr.dest_qp_num != l->remote.rc.qpn)
		fail(c, l, "query_qp says destination 0x%x, connected to 0x%x", attr.dest_qp_num,
		     l->remote.rc.qpn);
	else if (init.cap.max_send_wr < c->nsend || init.cap.max_recv_wr < c->nrecv)
		fail(c, l, "query_qp says %u sends and %u receives, %u and %u were asked for",
		     init.cap.max_send_wr, init.cap.max_recv_wr, c->nsend, c->nrecv);
	if (l->qp->qp_num != l->qpn || l->mr->lkey != l->lkey || l->mr->rkey != l->rkey)
		fail(c, l, "its numbers changed: qpn 0x%x lkey 0x%x rkey 0x%x, now 0x%x 0x%x 0x%x",
		     l->qpn, l->lkey, l->rkey, l->qp->qp_num, l->mr->lkey, l->mr->rkey);
}

void links_destroy(struct check *c, bool look)
{
	uint32_t i;
	int rc;

	if (look && !c->failure[0])
		ballast_check(c);
	for (i = 0; i < c->traffic.qps; i++) {
		struct link *l = &c->links[i];

		if (look && !c->failure[0])
			check_qp_at_end(c, l);
		rc = ibv_destroy_qp(l->qp);
		if (rc)
			fail(c, l, "destroy_qp: %s", strerror(rc));
		rc = ibv_dereg_mr(l->mr);
		if (rc)
			fail(c, l, "dereg_mr: %s", strerror(rc));
		munmap(l->memory, l->bytes);
		free(l->ring);
		/* Told to leave: the other end finds one dead after the other. */
		if (!look)
			printf("{\"destroyed\":%u,\"at\":%.3f}\n", i, seconds_now());
	}
	for (i = 0; i < c->ncqs; i++) {
		/* Blocks for ever when an event is acknowledged once too few. */
		if (c->unacked[i])
			ibv_ack_cq_events(c->cqs[i], c->unacked[i]);
		rc = ibv_destroy_cq(c->cqs[i]);
		if (rc)
			fail(c, NULL, "destroy_cq %u: %s", i, strerror(rc));
	}
	if (c->channel) {
		rc = ibv_destroy_comp_channel(c->channel);
		if (rc)
			fail(c, NULL, "destroy_comp_channel: %s", strerror(rc));
	}
	ballast_destroy(c);
	rc = ibv_dealloc_pd(c->pd);
	if (rc)
		fail(c, NULL, "dealloc_pd: %s", strerror(rc));
	rc = ibv_close_device(c->ep.ctx);
	if (rc)
		fail(c, NULL, "close_device: %s", strerror(rc));
}
