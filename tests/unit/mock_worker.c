// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Executes what was posted: one request of each queue pair in turn. */
#include <time.h>

#include "mock_state.h"

enum outcome { DONE, WAIT, FAILED };

#define RNR_NS 200000000ull

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_TSO:
		return IBV_WC_TSO;
	case IBV_WR_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	default:
		return IBV_WC_SEND;
	}
}

static void send_done(struct mock_qp *qp, uint64_t index, enum ibv_wc_status status)
{
	struct mock_wqe *w = &qp->sq.ring[index % qp->sq.size];
	struct mock_cqe e = {
		.wc = {
			.wr_id = w->wr.wr_id,
			.status = status,
			.opcode = wc_opcode(w->wr.opcode),
			.qp_num = qp->qp.qp_num,
		},
		.life = qp->life,
		.is_send = true,
		.index = index,
	};

	if (status == IBV_WC_SUCCESS && !w->signaled)
		return;
	if (status == IBV_WC_SUCCESS &&
	    (e.wc.opcode == IBV_WC_RDMA_READ || e.wc.opcode == IBV_WC_COMP_SWAP ||
	     e.wc.opcode == IBV_WC_FETCH_ADD))
		e.wc.byte_len = w->bytes;
	mock_cq_push(qp->qp.send_cq, &e, false);
}

static void recv_done(struct mock_qp *qp, const struct mock_rqe *r, const struct ibv_wc *wc,
		      uint64_t index, bool solicited)
{
	struct mock_cqe e = { .wc = *wc, .life = qp->life, .index = index };

	e.wc.wr_id = r->wr_id;
	e.wc.qp_num = qp->qp.qp_num;
	e.srq = (struct mock_srq *)qp->qp.srq;
	mock_cq_push(qp->qp.recv_cq, &e, solicited);
}

void mock_flush_sends(struct mock_qp *qp)
{
	struct mock_sq *sq = &qp->sq;

	while (sq->acked < sq->head)
		send_done(qp, sq->acked++, IBV_WC_WR_FLUSH_ERR);
	sq->exec = sq->acked;
}

void mock_flush(struct mock_qp *qp)
{
	const struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };
	struct mock_rq *rq = &qp->rq;

	mock_flush_sends(qp);
	for (; rq->next < rq->head; rq->next++)
		recv_done(qp, &rq->ring[rq->next % rq->size], &wc, rq->next, false);
}

void mock_to_error(struct mock_qp *qp)
{
	qp->qp.state = IBV_QPS_ERR;
	mock_flush(qp);
	if (qp->qp.srq)
		mock_async(qp->qp.context, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
}

/* The request at exec fails: those before it are done, those behind it are flushed. */
static enum outcome fail(struct mock_qp *qp, enum ibv_wc_status status)
{
	while (qp->sq.acked < qp->sq.exec)
		send_done(qp, qp->sq.acked++, IBV_WC_SUCCESS);
	send_done(qp, qp->sq.acked++, status);
	if (!mock.sqe || qp->qp.qp_type == IBV_QPT_RC) {
		mock_to_error(qp);
		return FAILED;
	}
	qp->qp.state = IBV_QPS_SQE;
	mock_flush_sends(qp);
	return FAILED;
}

static enum outcome fail_both(struct mock_qp *qp, struct mock_qp *d, enum ibv_wc_status status)
{
	mock_to_error(d);
	mock_async(d->qp.context, IBV_EVENT_QP_ACCESS_ERR, d);
	return fail(qp, status);
}

/* Copies between memory and the scatter list; false: a key is wrong. */
static bool scatter(struct ibv_pd *pd, const struct ibv_sge *sge, int n, const char *data,
		    uint32_t len)
{
	int i;

	for (i = 0; i < n && len; i++) {
		uint32_t part = sge[i].length < len ? sge[i].length : len;
		struct ibv_sge s = { sge[i].addr, part, sge[i].lkey };
		char *to = part ? mock_local(pd, &s, true) : NULL;

		if (part && !to)
			return false;
		if (part)
			memcpy(to, data, part);
		data += part;
		len -= part;
	}
	return true;
}

static bool gather(struct ibv_pd *pd, const struct mock_wqe *w, char *data)
{
	int i;

	if (w->wr.send_flags & IBV_SEND_INLINE) {
		memcpy(data, w->data, w->inline_len);
		return true;
	}
	for (i = 0; i < w->wr.num_sge; i++) {
		const struct ibv_sge *s = &w->sge[i];
		char *from = s->length ? mock_local(pd, s, false) : NULL;

		if (s->length && !from)
			return false;
		if (s->length)
			memcpy(data, from, s->length);
		data += s->length;
	}
	return true;
}

static struct mock_rq *receives(struct mock_qp *d)
{
	return d->qp.srq ? &((struct mock_srq *)d->qp.srq)->rq : &d->rq;
}

static void consume(struct mock_qp *d, const struct ibv_wc *wc, bool solicited)
{
	struct mock_rq *rq = receives(d);
	struct mock_srq *srq = (struct mock_srq *)d->qp.srq;
	uint64_t index = rq->next++;

	if (srq) {
		rq->tail = rq->next;
		srq->given++;
		if (srq->limit && rq->head - rq->next < srq->limit) {
			srq->limit = 0;
			mock_async(srq->srq.context, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
		}
	}
	recv_done(d, &rq->ring[index % rq->size], wc, index, solicited);
}

/* What the receive completion says, and whether the message fits. */
static bool deliver(struct mock_qp *qp, struct mock_qp *d, const struct mock_wqe *w,
		    const char *data, uint32_t len)
{
	bool write = w->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool imm = write || w->wr.opcode == IBV_WR_SEND_WITH_IMM;
	struct mock_rq *rq = receives(d);
	const struct mock_rqe *r = &rq->ring[rq->next % rq->size];
	uint32_t room = 0;
	struct ibv_wc wc = {
		.opcode = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.byte_len = len,
		.src_qp = qp->qp.qp_num,
		.sl = w->ah ? w->ah->attr.sl : qp->attr.ah_attr.sl,
	};
	int i;

	if (imm) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = w->wr.imm_data;
	} else if (w->wr.opcode == IBV_WR_SEND_WITH_INV) {
		wc.wc_flags |= IBV_WC_WITH_INV;
		wc.invalidated_rkey = w->wr.invalidate_rkey;
		mock_invalidate_window(d, w->wr.invalidate_rkey);
	}
	for (i = 0; i < r->nsge; i++)
		room += r->sge[i].length;
	if (d->qp.qp_type == IBV_QPT_UD) {
		wc.wc_flags |= IBV_WC_GRH;
		wc.byte_len += 40;
	}
	if (!write) {
		if (room < wc.byte_len)
			wc.status = IBV_WC_LOC_LEN_ERR;
		else if (!scatter(d->qp.pd, r->sge, r->nsge, data, wc.byte_len))
			wc.status = IBV_WC_LOC_PROT_ERR;
	}
	consume(d, &wc, w->wr.send_flags & IBV_SEND_SOLICITED);
	return wc.status == IBV_WC_SUCCESS;
}

/* Is the address one of the queue pair's device, or of a group that it is in? None: any. */
static bool at_address(const struct mock_qp *d, const struct mock_wqe *w)
{
	static const union ibv_gid none;
	struct mock_device *dev = mock_context(d->qp.context)->device;
	int i;

	if (w->dgid.raw[0] == 0xff)
		return w->dest_qpn == 0xffffff && mock_in_group(d, &w->dgid);
	if (d->qp.qp_num != w->dest_qpn)
		return false;
	for (i = 0; i < dev->ngids; i++)
		if (!memcmp(&dev->gids[i].gid, &w->dgid, sizeof(w->dgid)))
			return true;
	return !memcmp(&w->dgid, &none, sizeof(none));
}

/* What comes from another one is dropped. */
static bool same_partition(const struct mock_qp *a, const struct mock_qp *b)
{
	return !((mock_qp_pkey(a) ^ mock_qp_pkey(b)) & 0x7fff);
}

static bool takes(const struct mock_qp *d)
{
	return d->qp.state == IBV_QPS_RTR || d->qp.state == IBV_QPS_RTS || d->qp.state == IBV_QPS_SQD ||
	       d->qp.state == IBV_QPS_SQE;
}

/* A packet, and its acknowledgement: both are armed, or who gets it follows. */
static void arm(struct mock_qp *qp, struct mock_qp *d)
{
	if (qp->attr.path_mig_state != IBV_MIG_MIGRATED && d->attr.path_mig_state != IBV_MIG_MIGRATED)
		qp->attr.path_mig_state = d->attr.path_mig_state = IBV_MIG_ARMED;
	else if (qp->migrated && d->attr.path_mig_state == IBV_MIG_ARMED)
		mock_migrate(d);
}

/* @data: with room for a GRH in front */
static void send_datagram(struct mock_qp *qp, const struct mock_wqe *w, const char *data, uint32_t len)
{
	struct mock_qp *d;
	struct mock_rq *rq;

	for (d = mock.qps; d; d = d->next) {
		if (d->qp.qp_type != IBV_QPT_UD || d->attr.qkey != w->qkey || !same_partition(d, qp) ||
		    !at_address(d, w) ||
		    !takes(d))
			continue;
		rq = receives(d);
		if (rq->next < rq->head)
			deliver(qp, d, w, data, len);
	}
}

/* TSO: the header in front of each piece. Devices count its fields up, which needs IP and TCP. */
static enum outcome execute_ud(struct mock_qp *qp, struct mock_wqe *w)
{
	bool tso = w->wr.opcode == IBV_WR_TSO;
	uint32_t before = 40 + (tso ? w->wr.tso.hdr_sz : 0), at = 0, part;
	char *data = mock_zalloc(before + w->bytes);

	if (!gather(qp->qp.pd, w, data + before)) {
		free(data);
		return fail(qp, IBV_WC_LOC_PROT_ERR);
	}
	do {
		part = tso && w->bytes - at > w->wr.tso.mss ? w->wr.tso.mss : w->bytes - at;
		if (tso)
			memcpy(data + at + 40, w->header, w->wr.tso.hdr_sz);
		send_datagram(qp, w, data + at, before - 40 + part);
		at += part;
	} while (at < w->bytes);
	free(data);
	mock.executed++;
	return DONE;
}

static enum outcome atomic(struct mock_qp *qp, struct mock_qp *d, struct mock_wqe *w)
{
	uint64_t addr = w->wr.wr.atomic.remote_addr, old, new;
	char *to = mock_local(qp->qp.pd, &w->sge[0], true), *at;

	if (!to || w->sge[0].length != 8)
		return fail(qp, IBV_WC_LOC_PROT_ERR);
	at = d->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC ?
	     mock_remote(d, w->wr.wr.atomic.rkey, addr, 8, IBV_ACCESS_REMOTE_ATOMIC) : NULL;
	if (!at)
		return fail_both(qp, d, IBV_WC_REM_ACCESS_ERR);
	if (addr % 8)
		return fail_both(qp, d, IBV_WC_REM_INV_REQ_ERR);
	memcpy(&old, at, 8);
	if (w->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		new = old + w->wr.wr.atomic.compare_add;
	else
		new = old == w->wr.wr.atomic.compare_add ? w->wr.wr.atomic.swap : old;
	memcpy(at, &new, 8);
	memcpy(to, &old, 8);
	return DONE;
}

static enum outcome atomic_write(struct mock_qp *qp, struct mock_qp *d, struct mock_wqe *w)
{
	uint64_t addr = w->wr.wr.rdma.remote_addr;
	char *at = d->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE ?
		   mock_remote(d, w->wr.wr.rdma.rkey, addr, 8, IBV_ACCESS_REMOTE_WRITE) : NULL;

	if (!at)
		return fail_both(qp, d, IBV_WC_REM_ACCESS_ERR);
	if (addr % 8)
		return fail_both(qp, d, IBV_WC_REM_INV_REQ_ERR);
	memcpy(at, w->data, 8);
	return DONE;
}

static enum outcome rdma_read(struct mock_qp *qp, struct mock_qp *d, struct mock_wqe *w)
{
	char *from = NULL;

	if (d->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ)
		from = !w->bytes ? (char *)d :
		       mock_remote(d, w->wr.wr.rdma.rkey, w->wr.wr.rdma.remote_addr,
				   w->bytes, IBV_ACCESS_REMOTE_READ);
	if (!from)
		return fail_both(qp, d, IBV_WC_REM_ACCESS_ERR);
	if (!scatter(qp->qp.pd, w->sge, w->wr.num_sge, from, w->bytes))
		return fail(qp, IBV_WC_LOC_PROT_ERR);
	return DONE;
}

/* A WRITE of no bytes looks at no key but at the queue pair's access flags (C9-88). */
static enum outcome send_or_write(struct mock_qp *qp, struct mock_qp *d, struct mock_wqe *w)
{
	bool write = w->wr.opcode == IBV_WR_RDMA_WRITE ||
		     w->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	char *data = mock_zalloc(w->bytes + 1), *to = NULL;
	enum outcome ret = DONE;

	if (!gather(qp->qp.pd, w, data)) {
		ret = fail(qp, IBV_WC_LOC_PROT_ERR);
		goto out;
	}
	if (write) {
		if (d->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)
			to = !w->bytes ? data :
			     mock_remote(d, w->wr.wr.rdma.rkey, w->wr.wr.rdma.remote_addr,
					 w->bytes, IBV_ACCESS_REMOTE_WRITE);
		if (!to) {
			ret = fail_both(qp, d, IBV_WC_REM_ACCESS_ERR);
			goto out;
		}
		memmove(to, data, w->bytes);
	}
	if (w->wr.opcode != IBV_WR_RDMA_WRITE && !deliver(qp, d, w, data, w->bytes)) {
		mock_to_error(d);
		ret = fail(qp, IBV_WC_REM_INV_REQ_ERR);
	}
out:
	free(data);
	return ret;
}

static bool needs_receive(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV ||
	       op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Nobody answers: at the end of its patience the requester fails. */
static enum outcome unanswered(struct mock_qp *qp, uint64_t patience_ns, enum ibv_wc_status status)
{
	uint64_t now = mock_now_ns();

	if (!qp->sq.blocked_ns || qp->sq.blocked_by != status)
		qp->sq.blocked_ns = now;
	qp->sq.blocked_by = status;
	if (now - qp->sq.blocked_ns < patience_ns)
		return WAIT;
	return fail(qp, status);
}

static struct mock_qp *responder(struct mock_qp *qp)
{
	struct mock_qp *d = mock_find_qp(qp->attr.dest_qp_num);

	if (!d || d->qp.qp_type != qp->qp.qp_type || d->attr.dest_qp_num != qp->qp.qp_num)
		return NULL;
	if (!takes(d) || !same_partition(d, qp))
		return NULL;
	/* Its path may have been taken for it long ago. */
	if (qp->migrated && !mock_has_gid(mock_context(d->qp.context)->device, &qp->attr.ah_attr.grh.dgid))
		return NULL;
	if (d->rq_psn != qp->sq_psn) {
		mock.strays += !qp->sq.blocked_ns;
		return NULL;
	}
	return d;
}

static enum outcome execute(struct mock_qp *qp, struct mock_wqe *w)
{
	enum outcome ret;
	struct mock_qp *d;

	if (qp->qp.qp_type == IBV_QPT_UD)
		return execute_ud(qp, w);
	if (w->wr.opcode == IBV_WR_LOCAL_INV) {
		mock_invalidate_window(qp, w->wr.invalidate_rkey);
		return DONE;
	}
	if (w->wr.opcode == IBV_WR_BIND_MW)
		return mock_bind_window(qp, &w->wr, w->window_key) ? DONE :
		       fail(qp, IBV_WC_MW_BIND_ERR);
	d = responder(qp);
	if (!d)
		return unanswered(qp, mock.retry_ms * 1000000ull, IBV_WC_RETRY_EXC_ERR);
	if (needs_receive(w->wr.opcode) && receives(d)->next == receives(d)->head) {
		if (qp->qp.qp_type == IBV_QPT_UC)
			goto delivered;		/* lost */
		return unanswered(qp, qp->attr.rnr_retry == 7 ? UINT64_MAX : RNR_NS,
				  IBV_WC_RNR_RETRY_EXC_ERR);
	}
	switch (w->wr.opcode) {
	case IBV_WR_RDMA_READ:
		ret = rdma_read(qp, d, w);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ret = atomic(qp, d, w);
		break;
	case IBV_WR_ATOMIC_WRITE:
		ret = atomic_write(qp, d, w);
		break;
	default:
		ret = send_or_write(qp, d, w);
		break;
	}
	if (ret != DONE)
		return ret;
delivered:
	arm(qp, d);
	qp->sq.blocked_ns = 0;
	qp->sq_psn = (qp->sq_psn + 1) & 0xffffff;
	d->rq_psn = (d->rq_psn + 1) & 0xffffff;
	mock.executed++;
	return DONE;
}

bool mock_draining(const struct mock_qp *qp)
{
	return qp->qp.state == IBV_QPS_SQD && (qp->sq.acked < qp->sq.exec || qp->sq.blocked_ns);
}

void mock_tell_drained(struct mock_qp *qp)
{
	if (!qp->tells_drained || qp->qp.state != IBV_QPS_SQD || mock_draining(qp))
		return;
	qp->tells_drained = false;
	mock_async(qp->qp.context, IBV_EVENT_SQ_DRAINED, qp);
}

/* In SQD what has begun goes on. */
static bool goes_on(const struct mock_qp *qp)
{
	return qp->qp.state == IBV_QPS_RTS || (qp->qp.state == IBV_QPS_SQD && qp->sq.blocked_ns);
}

/* true: something happened */
static bool step(struct mock_qp *qp)
{
	struct mock_sq *sq = &qp->sq;
	struct mock_wqe *w;
	bool any = false;

	while (!mock.hold_acks && !mock.lose_answers && sq->acked < sq->exec) {
		send_done(qp, sq->acked++, IBV_WC_SUCCESS);
		any = true;
	}
	mock_tell_drained(qp);
	if (!goes_on(qp) || sq->exec == sq->head)
		return any;
	w = &sq->ring[sq->exec % sq->size];
	if (mock.delay_us && mock_now_ns() < w->at_ns)
		return any;
	/* The result of these comes with the answer, and that is an answer to all before it. */
	if (!mock.lose_answers && sq->acked < sq->exec && !needs_receive(w->wr.opcode) &&
	    w->wr.opcode != IBV_WR_RDMA_WRITE)
		return any;
	switch (execute(qp, w)) {
	case WAIT:
		return any;
	case FAILED:
		return true;
	default:
		sq->exec++;
		if (mock.lose_answers)
			return true;
		/* What is held begins with a SEND: nothing but a missing receive makes a fabric wait. */
		if (!mock.hold_acks || (sq->acked + 1 == sq->exec && !needs_receive(w->wr.opcode)))
			while (sq->acked < sq->exec)
				send_done(qp, sq->acked++, IBV_WC_SUCCESS);
		return true;
	}
}

static bool anything_waits(void)
{
	struct mock_qp *qp;

	for (qp = mock.qps; qp; qp = qp->next)
		if ((qp->qp.state == IBV_QPS_RTS && qp->sq.acked < qp->sq.head) ||
		    mock_draining(qp))
			return true;
	return false;
}

void mock_sqe(bool on)
{
	mock_lock();
	mock.sqe = on;
	mock_unlock();
}

bool mock_quiet(void)
{
	bool quiet;

	mock_lock();
	quiet = !anything_waits();
	mock_unlock();
	return quiet;
}

static void *work(void *arg)
{
	struct mock_qp *qp;

	(void)arg;
	mock_lock();
	for (;;) {
		bool any = false;

		for (qp = mock.qps; qp && !mock.stalled; qp = qp->next)
			any |= step(qp);
		if (any) {
			mock_unlock();	/* posters and pollers come in between */
			mock_lock();
			continue;
		}
		if (anything_waits()) {
			struct timespec t;

			clock_gettime(CLOCK_REALTIME, &t);
			t.tv_nsec += 1000000;
			if (t.tv_nsec >= 1000000000) {
				t.tv_nsec -= 1000000000;
				t.tv_sec++;
			}
			pthread_cond_timedwait(&mock.wake, &mock.lock, &t);
		} else {
			pthread_cond_wait(&mock.wake, &mock.lock);
		}
	}
	return NULL;
}

void mock_start_worker(void)
{
	pthread_t thread;

	if (mock.worker || mock.null_mode)
		return;
	if (pthread_create(&thread, NULL, work, NULL))
		abort();
	pthread_detach(thread);
	mock.worker = true;
}
