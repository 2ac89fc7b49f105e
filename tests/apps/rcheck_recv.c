// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What arrives, by SEND and by WRITE. */
#include <arpa/inet.h>
#include <string.h>

#include "rcheck.h"

void link_post_recvs(struct check *c, struct link *l)
{
	while (l->recvs_posted - l->recvs_done < c->nrecv && !c->failure[0]) {
		unsigned char *slot = slot_at(c, l->recvs, l->recvs_posted % c->nrecv);
		struct ibv_sge sge = { (uintptr_t)slot, c->slot, l->lkey };
		struct ibv_recv_wr wr = {
			.wr_id = make_wr_id(l, l->recvs_posted) | RECV_BIT,
			.sg_list = &sge,
			.num_sge = 1,
		}, *bad;
		int rc;

		memset(slot, MSG_POISON, sizeof(struct msg));
		rc = ibv_post_recv(l->qp, &wr, &bad);
		if (rc)
			fail(c, l, "post of receive %llu: %s", (unsigned long long)l->recvs_posted,
			     strerror(rc));
		l->recvs_posted++;
	}
}

static void take_credit(struct check *c, struct link *l, const struct msg *m)
{
	if (m->credit > l->data_sent || m->wcredit > l->wseq)
		fail(c, l, "message %llu: the peer has got %llu messages, %llu writes of %llu and %llu",
		     (unsigned long long)m->rseq, (unsigned long long)m->credit,
		     (unsigned long long)m->wcredit, (unsigned long long)l->data_sent,
		     (unsigned long long)l->wseq);
	if (m->credit > l->credit_in)
		l->credit_in = m->credit;
	if (m->wcredit > l->wcredit_in)
		l->wcredit_in = m->wcredit;
}

/* The write slot of write number @w; NULL after having said what is wrong with it. */
static const struct msg *verify_write(struct check *c, struct link *l, uint64_t w)
{
	const struct msg *m = (const struct msg *)slot_at(c, l->writes, w % c->nwrite);
	const char *why;

	if (m->magic == 0 || (m->magic == MSG_MAGIC && m->wseq + c->nwrite == w))
		fail(c, l, "write %llu is lost: its slot was not written", (unsigned long long)w);
	else if (!msg_check(m, c->slot, &why))
		fail(c, l, "write %llu: damage: %s", (unsigned long long)w, why);
	else if (m->wseq != w || m->qp != l->index || m->from == c->from || !is_write(m->op))
		fail(c, l, "write %llu: its slot has %s, write %llu of queue pair %u",
		     (unsigned long long)w, m->op < MSG_OPS ? msg_op_names[m->op] : "?",
		     (unsigned long long)m->wseq, m->qp);
	if (c->failure[0])
		return NULL;
	l->writes_ok = w;
	if (m->op == MSG_WRITE)
		c->received[MSG_WRITE]++;
	return m;
}

static bool verify_writes(struct check *c, struct link *l, uint64_t upto)
{
	while (l->writes_ok < upto)
		if (!verify_write(c, l, l->writes_ok + 1))
			return false;
	return true;
}

/* WRITE_WITH_IMM: the message lies in the next write slots, behind WRITEs without. */
static const struct msg *find_written(struct check *c, struct link *l, const struct ibv_wc *wc)
{
	const struct msg *m;
	uint32_t i;

	for (i = 0; i < c->nwrite; i++) {
		m = verify_write(c, l, l->writes_ok + 1);
		if (!m)
			return NULL;
		if (m->op != MSG_WRITE_IMM)
			continue;
		if (ntohl(wc->imm_data) != (uint32_t)m->wseq)
			fail(c, l, "write %llu: wrong immediate data 0x%x",
			     (unsigned long long)m->wseq, ntohl(wc->imm_data));
		return m;
	}
	fail(c, l, "message %llu: no WRITE_WITH_IMM in any slot", (unsigned long long)l->next_rseq);
	return NULL;
}

static void verify_number(struct check *c, struct link *l, const struct msg *m)
{
	if (m->rseq == l->next_rseq) {
		l->next_rseq++;
	} else if (m->rseq > l->next_rseq) {
		/* Lost, or overtaken? What comes next decides. */
		if (l->missing)
			fail(c, l, "message %llu is lost, and so is %llu",
			     (unsigned long long)l->missing, (unsigned long long)l->next_rseq);
		l->missing = l->next_rseq;
		l->missing_since = c->now;
		l->next_rseq = m->rseq + 1;
	} else if (m->rseq == l->missing) {
		fail(c, l, "message %llu in wrong order: message %llu came before it",
		     (unsigned long long)m->rseq, (unsigned long long)l->next_rseq - 1);
	} else {
		fail(c, l, "message %llu is doubled: it came before (next is %llu)",
		     (unsigned long long)m->rseq, (unsigned long long)l->next_rseq);
	}
	if (m->seq <= l->last_seq && !c->failure[0] && !l->missing)
		fail(c, l, "message %llu has request number %llu after %llu",
		     (unsigned long long)m->rseq, (unsigned long long)m->seq,
		     (unsigned long long)l->last_seq);
	l->last_seq = m->seq;
}

static const struct msg *find_sent(struct check *c, struct link *l, const struct ibv_wc *wc)
{
	const struct msg *m = (const struct msg *)slot_at(c, l->recvs, l->recvs_done % c->nrecv);
	bool imm = wc->wc_flags & IBV_WC_WITH_IMM;
	const char *why;

	if (!msg_check(m, c->slot, &why))
		fail(c, l, "message %llu: damage: %s", (unsigned long long)l->next_rseq, why);
	else if (m->op != MSG_SEND && m->op != MSG_SEND_IMM && m->op != MSG_CREDIT)
		fail(c, l, "message %llu: received, but sent by operation %u",
		     (unsigned long long)l->next_rseq, m->op);
	else if (imm != (m->op == MSG_SEND_IMM))
		fail(c, l, "message %llu: %s immediate data", (unsigned long long)m->rseq,
		     imm ? "unexpected" : "no");
	else if (imm && ntohl(wc->imm_data) != (uint32_t)msg_hash(m->rseq))
		fail(c, l, "message %llu: wrong immediate data 0x%x", (unsigned long long)m->rseq,
		     ntohl(wc->imm_data));
	return c->failure[0] ? NULL : m;
}

void recv_completed(struct check *c, struct link *l, const struct ibv_wc *wc)
{
	uint64_t number = wc->wr_id & POST_MASK;
	const struct msg *m;

	if (number != (l->recvs_done & POST_MASK)) {
		fail(c, l, "%s completion of receive %llu: expected %llu",
		     number < l->recvs_done ? "doubled" : "missing",
		     (unsigned long long)number, (unsigned long long)l->recvs_done);
		return;
	}
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		m = find_written(c, l, wc);
	} else if (wc->opcode == IBV_WC_RECV) {
		m = find_sent(c, l, wc);
	} else {
		fail(c, l, "completion of receive %llu says opcode %d", (unsigned long long)number,
		     wc->opcode);
		return;
	}
	if (!m)
		return;
	if (m->qp != l->index || m->from == c->from)
		fail(c, l, "message %llu of queue pair %u, end %u", (unsigned long long)m->rseq,
		     m->qp, m->from);
	else if (wc->byte_len != m->len)
		fail(c, l, "message %llu: completion says %u bytes, not %u",
		     (unsigned long long)m->rseq, wc->byte_len, m->len);
	verify_number(c, l, m);
	if (c->failure[0] || !verify_writes(c, l, m->wseq))
		return;
	take_credit(c, l, m);
	c->received[m->op]++;
	if (m->op != MSG_CREDIT)
		l->data_got++;
	l->recvs_done++;
}

/* Has everything arrived that the peer says it sent? Fails if something did too much. */
bool link_verify_end(struct check *c, struct link *l)
{
	const struct totals *t = &l->theirs;
	uint64_t added, swapped;

	if (l->next_rseq - 1 < t->rseq)
		return false;
	if (l->next_rseq - 1 > t->rseq) {
		fail(c, l, "%llu messages came, %llu were sent",
		     (unsigned long long)l->next_rseq - 1, (unsigned long long)t->rseq);
		return false;
	}
	if (!verify_writes(c, l, t->wseq))
		return false;
	added = __atomic_load_n(l->added, __ATOMIC_ACQUIRE);
	if (added != t->adds)
		fail(c, l, "FETCH_ADD was executed %llu times, posted %llu times",
		     (unsigned long long)added, (unsigned long long)t->adds);
	swapped = __atomic_load_n(l->swapped, __ATOMIC_ACQUIRE);
	if (swapped != msg_hash(t->swaps))
		fail(c, l, "after %llu CMP_SWP the word is 0x%llx, not 0x%llx",
		     (unsigned long long)t->swaps, (unsigned long long)swapped,
		     (unsigned long long)msg_hash(t->swaps));
	c->received[MSG_FETCH_ADD] += t->adds;
	c->received[MSG_CMP_SWP] += t->swaps;
	return !c->failure[0];
}
