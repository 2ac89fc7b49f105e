// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What is posted, and what its completion must say. */
#include <arpa/inet.h>
#include <string.h>

#include "rcheck.h"

#define PLANT_AT 50	/* the request that a planted fault strikes */

/* Work requests that are collected for one post. */
struct batch {
	struct ibv_send_wr wr[MAX_LIST + 1];
	struct ibv_sge sge[MAX_LIST + 1][2];
	uint32_t n;
};

static bool plant_now(struct check *c, const struct link *l, enum plant plant)
{
	if (c->opt.plant != plant || c->planted || l->index || l->seq < PLANT_AT)
		return false;
	c->planted = true;
	return true;
}

/* One link, not the first, sends nothing any more, no credits either, which stops the other end's. */
static bool plant_still(const struct check *c, const struct link *l)
{
	return c->opt.plant == PLANT_STILL && l->index == 1 && l->seq >= PLANT_AT;
}

static uint64_t outstanding(const struct link *l)
{
	return l->posted - l->retired;
}

static enum msg_op next_op(const struct check *c, const struct link *l)
{
	uint64_t chance = msg_hash(l->seq + ((uint64_t)l->index << 32));
	enum msg_op op = c->traffic.mix[chance % c->traffic.mixed];

	/* Writes are verified by what follows them: let something follow. */
	if (!consumes_recv(op) && l->since_trigger >= c->nwrite / 2)
		return MSG_SEND;
	return op;
}

static bool may_send(const struct check *c, const struct link *l, enum msg_op op)
{
	if (outstanding(l) >= c->traffic.depth)
		return false;
	if (consumes_recv(op) && !c->opt.overrun &&
	    l->data_sent - l->credit_in >= c->traffic.depth)
		return false;
	return !is_write(op) || l->wseq - l->wcredit_in < c->nwrite;
}

static uint32_t next_len(const struct check *c, const struct link *l)
{
	if (!c->traffic.vary)
		return c->traffic.size;
	return MSG_MIN + msg_hash(~l->seq) % (c->traffic.size - MSG_MIN + 1);
}

static void seal(struct check *c, struct link *l, struct request *r, struct msg *m)
{
	*m = (struct msg){
		.magic = MSG_MAGIC, .op = r->op, .qp = l->index, .len = r->len, .from = c->from,
		.seq = l->seq, .rseq = l->rseq, .wseq = l->wseq,
		.credit = l->data_got, .wcredit = l->writes_ok,
	};
	/* The other end takes it from what consumes a receive: from a WRITE it would not. */
	if (consumes_recv(r->op)) {
		l->told = l->data_got;
		l->wtold = l->writes_ok;
	}
	msg_seal(m);
}

/* SENDs: numbers, and the faults that need nothing but other numbers. */
static void number_send(struct check *c, struct link *l, struct request *r, struct msg *m)
{
	bool swapped = false;

	l->rseq++;
	if (r->op != MSG_CREDIT) {
		l->data_sent++;
		if (plant_now(c, l, PLANT_LOSS)) {
			l->rseq++;
			l->seq++;
		}
		if (plant_now(c, l, PLANT_DUP)) {
			l->rseq--;
			l->seq--;
		}
		swapped = plant_now(c, l, PLANT_ORDER);
	}
	if (swapped) {
		l->rseq++;
		seal(c, l, r, m);
		l->rseq -= 2;
		l->order_planted = true;
	} else {
		seal(c, l, r, m);
		if (l->order_planted) {
			l->rseq++;
			l->order_planted = false;
		}
	}
	l->since_trigger = 0;
}

static void fill_send(struct check *c, struct link *l, struct request *r, struct ibv_send_wr *wr,
		      struct msg *m)
{
	number_send(c, l, r, m);
	if (r->op == MSG_SEND_IMM) {
		wr->opcode = IBV_WR_SEND_WITH_IMM;
		wr->imm_data = htonl((uint32_t)msg_hash(m->rseq));
		if (plant_now(c, l, PLANT_WRONG_IMM))
			wr->imm_data ^= htonl(1);
	} else {
		wr->opcode = IBV_WR_SEND;
	}
}

static void fill_write(struct check *c, struct link *l, struct request *r, struct ibv_send_wr *wr,
		       struct msg *m)
{
	l->wseq++;
	if (plant_now(c, l, PLANT_WRITE_LOSS))
		l->wseq++;
	wr->opcode = IBV_WR_RDMA_WRITE;
	if (r->op == MSG_WRITE_IMM) {
		l->rseq++;
		l->data_sent++;
		l->since_trigger = 0;
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->imm_data = htonl((uint32_t)l->wseq);
	} else {
		l->since_trigger++;
	}
	seal(c, l, r, m);
	wr->wr.rdma.rkey = l->remote.rkey;
	wr->wr.rdma.remote_addr = l->remote.writes + l->wseq % c->nwrite * c->slot;
	l->last_write_sum = m->sum;
	l->last_write_len = r->len;
}

/* Reads in turn what was last written, which must be there by then, and what never changes. */
static void fill_read(struct check *c, struct link *l, struct request *r, struct ibv_send_wr *wr,
		      struct msg *m)
{
	wr->opcode = IBV_WR_RDMA_READ;
	wr->wr.rdma.rkey = l->remote.rkey;
	if (l->last_write_sum && l->seq % 2) {
		r->len = l->last_write_len;
		r->expect = l->last_write_sum;
		wr->wr.rdma.remote_addr = l->remote.writes + l->wseq % c->nwrite * c->slot;
	} else {
		r->len = c->traffic.size;
		r->expect = 0;
		wr->wr.rdma.remote_addr = l->remote.statics + l->seq % STATIC_SLOTS * c->slot;
	}
	memset(m, MSG_POISON, r->len);
}

static void fill_atomic(struct check *c, struct link *l, struct request *r, struct ibv_send_wr *wr,
			struct msg *m)
{
	r->len = 8;
	wr->wr.atomic.rkey = l->remote.rkey;
	if (r->op == MSG_FETCH_ADD) {
		wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr->wr.atomic.remote_addr = l->remote.added;
		wr->wr.atomic.compare_add = 1;
		r->expect = l->adds++;
		if (plant_now(c, l, PLANT_ATOMIC))
			wr->wr.atomic.compare_add = 2;
	} else {
		wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr->wr.atomic.remote_addr = l->remote.swapped;
		wr->wr.atomic.compare_add = msg_hash(l->swaps);
		wr->wr.atomic.swap = msg_hash(l->swaps + 1);
		r->expect = msg_hash(l->swaps++);
	}
	memset(m, MSG_POISON, r->len);
}

static void set_sges(const struct check *c, const struct link *l, struct ibv_send_wr *wr,
		     struct ibv_sge *sge, const struct msg *m, uint32_t len)
{
	uint32_t first = c->traffic.sges == 2 && len > 8 ? len / 2 & ~7u : len;

	sge[0] = (struct ibv_sge){ (uintptr_t)m, first, l->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)m + first, len - first, l->lkey };
	wr->sg_list = sge;
	wr->num_sge = first == len ? 1 : 2;
}

static bool ends_signaled(const struct check *c, const struct link *l)
{
	return l->posted && l->ring[(l->posted - 1) % c->nsend].signaled;
}

static void build(struct check *c, struct link *l, struct batch *b, enum msg_op op)
{
	const bool tail = c->opt.tail && ends_signaled(c, l);
	uint64_t at = l->posted % c->nsend;
	struct request *r = &l->ring[at];
	struct msg *m = (struct msg *)slot_at(c, l->sends, at);
	struct ibv_send_wr *wr = &b->wr[b->n];

	memset(wr, 0, sizeof(*wr));
	l->seq++;
	*r = (struct request){ .op = op, .wr_id = make_wr_id(l, l->posted) };
	r->len = op == MSG_CREDIT ? MSG_MIN : next_len(c, l);
	switch (op) {
	case MSG_WRITE:
	case MSG_WRITE_IMM:
		fill_write(c, l, r, wr, m);
		break;
	case MSG_READ:
		fill_read(c, l, r, wr, m);
		break;
	case MSG_FETCH_ADD:
	case MSG_CMP_SWP:
		fill_atomic(c, l, r, wr, m);
		break;
	case MSG_SAMPLE:
		sample_fill(c, l, r, wr, m);
		break;
	default:
		fill_send(c, l, r, wr, m);
	}
	r->seq = l->seq;
	if (op < MSG_READ && plant_now(c, l, PLANT_DAMAGE))
		*((unsigned char *)m + r->len - 1) ^= 1;
	set_sges(c, l, wr, b->sge[b->n], m, r->len);
	wr->wr_id = r->wr_id;
	l->posted++;
	r->signaled = c->opt.sig_all || op == MSG_CREDIT || op == MSG_SAMPLE ||
		      (!tail && (++l->since_signal >= c->traffic.signal_every ||
				 outstanding(l) >= c->traffic.depth));
	if (r->signaled) {
		l->since_signal = 0;
		if (!plant_now(c, l, PLANT_MISSING_CQE))
			wr->send_flags |= IBV_SEND_SIGNALED;
		if (plant_now(c, l, PLANT_WRONG_WRID))
			wr->wr_id ^= 1 << 20;
	}
	if ((op < MSG_READ || op == MSG_CREDIT) && r->len <= c->traffic.inline_max)
		wr->send_flags |= IBV_SEND_INLINE;
	if (b->n)
		b->wr[b->n - 1].next = wr;
	b->n++;
	c->sent[op]++;
}

static int post_new(struct ibv_qp_ex *qpx, const struct ibv_send_wr *wr)
{
	ibv_wr_start(qpx);
	for (; wr; wr = wr->next) {
		qpx->wr_id = wr->wr_id;
		qpx->wr_flags = wr->send_flags & ~IBV_SEND_INLINE;
		switch (wr->opcode) {
		case IBV_WR_SEND:
			ibv_wr_send(qpx);
			break;
		case IBV_WR_SEND_WITH_IMM:
			ibv_wr_send_imm(qpx, wr->imm_data);
			break;
		case IBV_WR_RDMA_WRITE:
			ibv_wr_rdma_write(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
			break;
		case IBV_WR_RDMA_WRITE_WITH_IMM:
			ibv_wr_rdma_write_imm(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
					      wr->imm_data);
			break;
		case IBV_WR_RDMA_READ:
			ibv_wr_rdma_read(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
			break;
		case IBV_WR_ATOMIC_FETCH_AND_ADD:
			ibv_wr_atomic_fetch_add(qpx, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
						wr->wr.atomic.compare_add);
			break;
		default:
			ibv_wr_atomic_cmp_swp(qpx, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		}
		if (wr->send_flags & IBV_SEND_INLINE) {
			struct ibv_data_buf bufs[2];
			int i;

			for (i = 0; i < wr->num_sge; i++) {
				bufs[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
				bufs[i].length = wr->sg_list[i].length;
			}
			ibv_wr_set_inline_data_list(qpx, wr->num_sge, bufs);
		} else {
			ibv_wr_set_sge_list(qpx, wr->num_sge, wr->sg_list);
		}
	}
	return ibv_wr_complete(qpx);
}

static void post(struct check *c, struct link *l, struct batch *b)
{
	struct ibv_send_wr *bad = NULL;
	uint32_t i;
	int rc;

	if (!b->n)
		return;
	rc = l->qpx ? post_new(l->qpx, b->wr) : ibv_post_send(l->qp, b->wr, &bad);
	if (rc)
		fail(c, l, "post of request %llu: %s",
		     (unsigned long long)((bad ? bad->wr_id : b->wr[0].wr_id) & POST_MASK),
		     strerror(rc));
	/* Inline data must have been copied: what is there now is nobody's business. */
	for (i = 0; i < b->n; i++)
		if (b->wr[i].send_flags & IBV_SEND_INLINE)
			memset((void *)(uintptr_t)b->wr[i].sg_list[0].addr, MSG_POISON,
			       b->wr[i].sg_list[0].length);
	b->n = 0;
}

static bool credit_is_due(const struct check *c, const struct link *l)
{
	return l->data_got - l->told >= (c->traffic.depth + 1) / 2 ||
	       l->writes_ok - l->wtold >= c->nwrite / 4;
}

bool rate_allows(const struct check *c)
{
	uint64_t total = 0;
	int op;

	if (!c->traffic.rate)
		return true;
	for (op = 0; op < MSG_CREDIT; op++)
		total += c->sent[op];
	return total < (c->now - c->started) * c->traffic.rate;
}

/* Posts whatever may be posted on this link now; of data one list, if there is a rate. Was there data? */
bool link_send(struct check *c, struct link *l)
{
	uint32_t most = c->traffic.rate ? c->traffic.list : UINT32_MAX, n = 0;
	struct batch b = { .n = 0 };

	if (plant_still(c, l))
		return false;
	while (c->sender && c->phase == RUNNING && !c->failure[0] && n < most && rate_allows(c)) {
		enum msg_op op = next_op(c, l);

		if (!may_send(c, l, op))
			break;
		build(c, l, &b, op);
		n++;
		if (b.n >= c->traffic.list)
			post(c, l, &b);
	}
	if (c->phase == RUNNING && credit_is_due(c, l) && outstanding(l) < c->room)
		build(c, l, &b, MSG_CREDIT);
	if (c->phase == RUNNING && c->opt.tail && ends_signaled(c, l) && outstanding(l) < c->room)
		build(c, l, &b, MSG_READ);
	post(c, l, &b);
	return n;
}

/* One request of @op, alone. */
void link_post(struct check *c, struct link *l, enum msg_op op)
{
	struct batch b = { .n = 0 };

	build(c, l, &b, op);
	post(c, l, &b);
}

/* A last signalled request, when nothing else would bring the completion of those before. */
void link_flush(struct check *c, struct link *l)
{
	if (outstanding(l) && !ends_signaled(c, l) && outstanding(l) < c->room)
		link_post(c, l, MSG_CREDIT);
}

static void verify_read(struct check *c, struct link *l, const struct request *r,
			const struct msg *m)
{
	const char *why;

	if (!msg_check(m, c->slot, &why))
		fail(c, l, "READ %llu: damage: %s", (unsigned long long)r->seq, why);
	else if (m->qp != l->index)
		fail(c, l, "READ %llu: data of queue pair %u", (unsigned long long)r->seq, m->qp);
	else if (r->expect && m->sum != r->expect)
		fail(c, l, "READ %llu: not what was written before it, but write %llu",
		     (unsigned long long)r->seq, (unsigned long long)m->wseq);
	else if (!r->expect && (m->op != MSG_STATIC || m->seq != r->seq % STATIC_SLOTS))
		fail(c, l, "READ %llu: %s %llu, expected static %llu", (unsigned long long)r->seq,
		     m->op < MSG_OPS ? msg_op_names[m->op] : "?", (unsigned long long)m->seq,
		     (unsigned long long)r->seq % STATIC_SLOTS);
}

/* Everything up to a completed request is done, signalled or not. */
static void retire(struct check *c, struct link *l)
{
	uint64_t at = l->retired % c->nsend;
	const struct request *r = &l->ring[at];
	const struct msg *m = (const struct msg *)slot_at(c, l->sends, at);
	uint64_t old;

	if (r->op == MSG_READ) {
		verify_read(c, l, r, m);
	} else if (r->op == MSG_SAMPLE) {
		sample_verify(c, l, r, m);
	} else if (r->op == MSG_FETCH_ADD || r->op == MSG_CMP_SWP) {
		memcpy(&old, m, sizeof(old));
		if (old != r->expect)
			fail(c, l, "%s %llu returned 0x%llx, expected 0x%llx", msg_op_names[r->op],
			     (unsigned long long)r->seq, (unsigned long long)old,
			     (unsigned long long)r->expect);
	}
	l->retired++;
}

static enum ibv_wc_opcode wc_opcode(enum msg_op op)
{
	switch (op) {
	case MSG_WRITE:
	case MSG_WRITE_IMM:
	case MSG_PROBE:
		return IBV_WC_RDMA_WRITE;
	case MSG_READ:
	case MSG_SAMPLE:
		return IBV_WC_RDMA_READ;
	case MSG_FETCH_ADD:
		return IBV_WC_FETCH_ADD;
	case MSG_CMP_SWP:
		return IBV_WC_COMP_SWAP;
	default:
		return IBV_WC_SEND;
	}
}

void send_completed(struct check *c, struct link *l, const struct ibv_wc *wc)
{
	uint64_t number = wc->wr_id & POST_MASK;
	const struct request *r;

	if (number < l->retired) {
		fail(c, l, "doubled completion of request %llu", (unsigned long long)number);
		return;
	}
	if (number >= l->posted) {
		fail(c, l, "completion with wr_id 0x%llx, which was never posted",
		     (unsigned long long)wc->wr_id);
		return;
	}
	while (l->retired < number && !c->failure[0]) {
		r = &l->ring[l->retired % c->nsend];
		if (r->signaled) {
			fail(c, l, "missing completion of %s %llu (request %llu): got that of request %llu",
			     msg_op_names[r->op], (unsigned long long)r->seq,
			     (unsigned long long)l->retired, (unsigned long long)number);
			return;
		}
		retire(c, l);
	}
	r = &l->ring[number % c->nsend];
	if (!r->signaled)
		fail(c, l, "completion of request %llu, which was not signalled",
		     (unsigned long long)number);
	else if (wc->opcode != wc_opcode(r->op))
		fail(c, l, "completion of %s %llu says opcode %d", msg_op_names[r->op],
		     (unsigned long long)r->seq, wc->opcode);
	else if (((r->op >= MSG_READ && r->op <= MSG_CMP_SWP) || r->op == MSG_SAMPLE) &&
		 wc->byte_len != r->len)
		fail(c, l, "completion of %s %llu says %u bytes, not %u", msg_op_names[r->op],
		     (unsigned long long)r->seq, wc->byte_len, r->len);
	else
		retire(c, l);
}
