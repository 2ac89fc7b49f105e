// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vcheck.h"

#define PATIENCE_S 60

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static struct word word_of(uint64_t seq)
{
	return (struct word){ seq, ~seq };
}

static void post_srq(struct vcheck *v)
{
	struct ibv_sge sge = { (uintptr_t)srq_slot(v, v->srq_posted), SLOT, v->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = v->srq_posted, .sg_list = &sge, .num_sge = 1 }, *bad;
	int rc = ibv_post_srq_recv(v->srq, &wr, &bad);

	if (rc)
		wrong(v, "post to the SRQ: %s", strerror(rc));
	v->srq_posted++;
}

static void post_recv(struct vcheck *v, int kind, uint64_t index)
{
	struct ibv_sge sge = { (uintptr_t)recv_slot(v, kind, index), SLOT, v->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)kind << 32 | index, .sg_list = &sge,
				  .num_sge = 1 }, *bad;
	int rc = ibv_post_recv(v->qp[kind], &wr, &bad);

	if (rc)
		wrong(v, "post a receive: %s", strerror(rc));
}

void traffic_fill(struct vcheck *v)
{
	int i;

	while (v->srq_posted < SRQ_DEPTH)
		post_srq(v);
	for (i = 0; i < RECV_DEPTH; i++) {
		post_recv(v, UC, i);
		post_recv(v, UD, i);
	}
}

/* By the extended interface: as ibv_poll_cq() of one. */
static int poll_extended(struct vcheck *v, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int rc = ibv_start_poll(v->cqx, &attr);

	if (rc)
		return rc == ENOENT ? 0 : -rc;
	wc->wr_id = v->cqx->wr_id;
	wc->status = v->cqx->status;
	wc->qp_num = ibv_wc_read_qp_num(v->cqx);
	if (!wc->status)
		wc->opcode = ibv_wc_read_opcode(v->cqx);
	ibv_end_poll(v->cqx);
	return 1;
}

static struct ibv_wc next_rc(struct vcheck *v)
{
	double end = now() + PATIENCE_S;
	struct ibv_wc wc = { 0 };
	int n;

	while (!(n = v->cqx ? poll_extended(v, &wc) : ibv_poll_cq(v->rc_cq, 1, &wc))) {
		if (now() > end)
			wrong(v, "no completion of RC");
		usleep(200);
	}
	if (n < 0)
		wrong(v, "poll for RC: %d", n);
	if (wc.status)
		wrong(v, "RC: %s of %#lx", ibv_wc_status_str(wc.status), (long)wc.wr_id);
	if (wc.qp_num != v->own.rc.qpn)
		wrong(v, "RC: completion of QP %#x, not %#x", wc.qp_num, v->own.rc.qpn);
	return wc;
}

static void expect_rc(struct vcheck *v, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = next_rc(v);

	/* The ACK of a message may be late, and the other end's answer to it here before. */
	if (opcode == IBV_WC_SEND && wc.opcode == IBV_WC_RECV && !v->is_early) {
		v->early = wc;
		v->is_early = true;
		wc = next_rc(v);
	}
	if (wc.opcode != opcode)
		wrong(v, "RC: completion of opcode %d, not %d", wc.opcode, opcode);
}

static void rc_post(struct vcheck *v, struct ibv_send_wr wr, const void *data, unsigned int at,
		    unsigned int len)
{
	struct ibv_sge sge = { (uintptr_t)v->memory + at, len, v->mr->lkey };
	struct ibv_send_wr *bad;
	int rc;

	if (data)
		memcpy(v->memory + at, data, len);
	wr.send_flags |= IBV_SEND_SIGNALED;
	wr.sg_list = &sge;
	wr.num_sge = len ? 1 : 0;
	rc = ibv_post_send(v->qp[RC], &wr, &bad);
	if (rc)
		wrong(v, "RC: post of opcode %d: %s", wr.opcode, strerror(rc));
}

static void limit_events(struct vcheck *v)
{
	struct ibv_async_event ev;

	while (!ibv_get_async_event(v->ep.ctx, &ev)) {
		if (ev.event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
			if (ev.element.srq != v->srq)
				wrong(v, "a limit event of another SRQ");
			v->limits++;
		} else if (ev.event_type == IBV_EVENT_QP_LAST_WQE_REACHED ||
			   ev.event_type == IBV_EVENT_QP_FATAL ||
			   ev.event_type == IBV_EVENT_QP_ACCESS_ERR ||
			   ev.event_type == IBV_EVENT_CQ_ERR) {
			wrong(v, "event %s", ibv_event_type_str(ev.event_type));
		}
		ibv_ack_async_event(&ev);
	}
}

/* Waits for a message of the peer, which has taken the oldest receive. */
static const void *receive(struct vcheck *v)
{
	struct ibv_wc wc = v->is_early ? v->early : next_rc(v);
	const struct word *w;

	v->is_early = false;
	if (wc.opcode != IBV_WC_RECV || wc.wr_id != v->srq_seen)
		wrong(v, "RC: opcode %d of receive %lu, not of receive %lu", wc.opcode,
		      (long)wc.wr_id, (long)v->srq_seen);
	w = (const void *)srq_slot(v, v->srq_seen++);
	if (w->seq != v->messages || w->inverse != ~w->seq)
		wrong(v, "RC: message %lu, not %lu", (long)w->seq, (long)v->messages);
	v->messages++;
	return w;
}

/* The key of a window that is opened over one place; where there are none, the region's. */
static uint32_t open_window(struct vcheck *v, int i)
{
	struct ibv_mw_bind_info info = {
		.mr = v->mr, .addr = (uintptr_t)v->memory + AT_WINDOW(i), .length = SLOT,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };
	int rc;

	if (!v->mw[i])
		return v->mr->rkey;
	if (!i) {
		rc = ibv_bind_mw(v->qp[RC], v->mw[0], &bind);
		if (rc)
			wrong(v, "bind a window: %s", strerror(rc));
	} else {
		wr.bind_mw.mw = v->mw[1];
		wr.bind_mw.rkey = ibv_inc_rkey(v->mw[1]->rkey);
		wr.bind_mw.bind_info = info;
		rc_post(v, wr, NULL, 0, 0);
	}
	expect_rc(v, IBV_WC_BIND_MW);
	if (i)	/* it has its new key now, and not before */
		v->mw[1]->rkey = wr.bind_mw.rkey;
	return v->mw[i]->rkey;
}

/* The server opens its windows, the client uses them, and says so. */
static void serve(struct vcheck *v)
{
	struct windows w = { .word = word_of(v->round) };
	const struct word *seen;
	int i;

	for (i = 0; i < 2; i++)
		w.key[i] = open_window(v, i);
	rc_post(v, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, &w, AT_SEND, sizeof(w));
	expect_rc(v, IBV_WC_SEND);
	receive(v);
	for (i = 0; i < 3; i++) {
		seen = (void *)(v->memory + (i < 2 ? AT_WINDOW(i) : AT_PLAIN));
		if (seen->seq != v->round || seen->inverse != ~v->round)
			wrong(v, "written is %lu by key %d", (long)seen->seq, i);
	}
	if (*(uint64_t *)(v->memory + AT_ATOMIC) != v->round + 1)
		wrong(v, "the sum is %lu", *(long *)(v->memory + AT_ATOMIC));
	if (!v->mw[1])
		return;
	rc_post(v, (struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV,
					 .invalidate_rkey = v->mw[1]->rkey }, NULL, 0, 0);
	expect_rc(v, IBV_WC_LOCAL_INV);
}

static void use(struct vcheck *v)
{
	const struct windows *w = receive(v);
	struct word word = word_of(v->round), *read = (void *)(v->memory + AT_RESULT + SLOT);
	uint32_t key[3] = { w->key[0], w->key[1], v->peer.rkey };
	uint64_t at[3] = { AT_WINDOW(0), AT_WINDOW(1), AT_PLAIN };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	int i;

	for (i = 0; i < 3; i++) {
		wr.wr.rdma.rkey = key[i];
		wr.wr.rdma.remote_addr = v->peer.memory + at[i];
		rc_post(v, wr, &word, AT_SEND, sizeof(word));
		expect_rc(v, IBV_WC_RDMA_WRITE);
	}
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.rkey = key[1];
	wr.wr.rdma.remote_addr = v->peer.memory + at[1];
	memset(read, 0, sizeof(*read));
	rc_post(v, wr, NULL, AT_RESULT + SLOT, sizeof(*read));
	expect_rc(v, IBV_WC_RDMA_READ);
	if (read->seq != v->round || read->inverse != ~v->round)
		wrong(v, "READ brings %lu", (long)read->seq);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.rkey = v->peer.rkey;
	wr.wr.atomic.remote_addr = v->peer.memory + AT_ATOMIC;
	wr.wr.atomic.compare_add = 1;
	rc_post(v, wr, NULL, AT_RESULT, 8);
	expect_rc(v, IBV_WC_FETCH_ADD);
	if (*(uint64_t *)(v->memory + AT_RESULT) != v->round)
		wrong(v, "FETCH_ADD brings %lu", *(long *)(v->memory + AT_RESULT));
	rc_post(v, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, &word, AT_SEND, sizeof(word));
	expect_rc(v, IBV_WC_SEND);
}

/* The SRQ runs low once a round, is filled again, and its limit is armed again. */
static void refill(struct vcheck *v)
{
	struct ibv_srq_attr attr = { .srq_limit = SRQ_DEPTH / 2 };
	int rc;

	limit_events(v);
	if (v->srq_posted - v->srq_seen >= SRQ_DEPTH / 2)
		return;
	while (v->srq_posted - v->srq_seen < SRQ_DEPTH)
		post_srq(v);
	rc = ibv_modify_srq(v->srq, &attr, IBV_SRQ_LIMIT);
	if (rc)
		wrong(v, "arm the SRQ's limit: %s", strerror(rc));
}

/* --- what may be lost, but not come twice, changed, or late --- */

#define SENT	(1ull << 40)	/* wr_id of what is sent: and its kind */

static void send_unreliable(struct vcheck *v, int kind, struct ibv_ah *ah, uint64_t seq)
{
	struct word word = word_of(seq);
	struct ibv_sge sge = {
		(uintptr_t)v->memory + AT_SEND + 2 * SLOT, sizeof(word), v->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = SENT + kind + (ah && ah == v->group), .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = htobe32(ah == v->group),
	}, *bad;
	int rc;

	memcpy(v->memory + AT_SEND + 2 * SLOT, &word, sizeof(word));
	if (kind == UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = ah == v->group ? 0xffffff : v->peer.ud.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	rc = ibv_post_send(v->qp[kind], &wr, &bad);
	if (rc)
		wrong(v, "send of kind %d: %s", kind, strerror(rc));
}

static void count(struct vcheck *v, struct tally *t, const struct word *w)
{
	if (w->inverse != ~w->seq || (t->got && w->seq <= t->last))
		wrong(v, "datagram %lu after %lu", (long)w->seq, (long)t->last);
	t->last = w->seq;
	t->got++;
}

static void take(struct vcheck *v, const struct ibv_wc *wc)
{
	int kind = wc->wr_id >> 32;
	uint64_t index = (uint32_t)wc->wr_id;
	const unsigned char *slot = recv_slot(v, kind, index);

	if (kind == UC)
		count(v, &v->uc, (const void *)slot);
	else if (be32toh(wc->imm_data) == 0)
		count(v, &v->ud, (const void *)(slot + 40));
	else if (((const struct word *)(slot + 40))->seq % 2 != v->client)
		count(v, &v->mc, (const void *)(slot + 40));	/* not our own, which comes back */
	post_recv(v, kind, (uint32_t)(index + RECV_DEPTH));
}

static const char *what(const struct ibv_wc *wc)
{
	static const char *const sends[] = { [UC] = "UC send", [UD] = "datagram", [UD + 1] = "multicast datagram" };

	return wc->wr_id < SENT ? "receive" : sends[wc->wr_id - SENT];
}

static void unreliable(struct vcheck *v)
{
	double quiet = now() + QUIET_MS / 1e3, end = now() + PATIENCE_S;
	int sends = v->group ? 3 : 2, first = sends;
	struct ibv_wc wc;

	send_unreliable(v, UC, NULL, v->uc.sent++);
	usleep(1000);	/* all three use one place, which a device has read when they complete */
	while (sends || now() < quiet) {
		int n = ibv_poll_cq(v->cq, 1, &wc);

		if (now() > end)
			wrong(v, "%d datagrams are not sent", sends);
		if (n < 0)
			wrong(v, "poll_cq: %d", n);
		if (!n) {
			usleep(200);
			continue;
		}
		if (wc.status)
			wrong(v, "%s: %s", what(&wc), ibv_wc_status_str(wc.status));
		if (wc.wr_id < SENT) {
			take(v, &wc);
			continue;
		}
		if (--sends == first - 1)
			send_unreliable(v, UD, v->ah, v->ud.sent++);
		else if (sends)
			send_unreliable(v, UD, v->group, 2 * v->mc.sent++ + v->client);
	}
}

/* With completions that nobody has polled, as may be. */
static void resize(struct vcheck *v)
{
	int cqe = CQ_DEPTH << (v->resized & 1);
	int rc;

	if (v->no_resize)
		return;
	rc = ibv_resize_cq(v->cq, cqe);
	if (rc == EOPNOTSUPP || rc == ENOSYS)
		v->no_resize = true;
	else if (rc || v->cq->cqe < cqe)
		wrong(v, "resize_cq to %d: %d, %d entries", cqe, rc, v->cq->cqe);
	else
		v->resized++;
}

void traffic_round(struct vcheck *v)
{
	if (v->round % 8 == 7)
		resize(v);
	refill(v);
	if (v->client)
		use(v);
	else
		serve(v);
	unreliable(v);
	v->round++;
}
