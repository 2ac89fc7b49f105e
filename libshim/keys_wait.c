// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests that wait for a remote key, and such that had a wrong one. Who registers memory waits a little for the
 * peers to know its key, and then tells it to his program all the same: a key that is not in the table may be in one
 * that is on its way. So its owner is asked how far his table goes. What is not in all of it is wrong.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "keys.h"
#include "objects.h"

/*
 * As long as messages are said again: a table is pushed when both ends are connected, and who does not say how far his
 * goes for so long is as dead as one that answers no retry of the HCA.
 */
#define AWAIT_NS	30000000000ull
/* When more is on its way, which is told by itself. */
#define ASK_AGAIN_NS	500000000ull

/* Queue pairs with requests that wait for a table, and such that have failed by a wrong key. */
static atomic_uint awaiting, failed;

/* --- what waits; caller holds qp->lock --- */

void rp_keys_hold(struct rp_qp *qp)
{
	if (qp->keys_held)
		return;
	qp->keys_held = rp_now_ns();
	atomic_fetch_add(&awaiting, 1);
	rp_ctl_wake();
}

/* A child of fork() may have queue pairs that wait, and does not count them. */
static void count_down(atomic_uint *count)
{
	unsigned int n = atomic_load(count);

	while (n && !atomic_compare_exchange_weak(count, &n, n - 1))
		;
}

void rp_keys_unhold(struct rp_qp *qp)
{
	if (qp->keys_held)
		count_down(&awaiting);
	qp->keys_held = 0;
}

/*
 * Gives what has waited. Caller holds qp->control: if the provider refuses it the queue pair is taken to ERR and
 * waited for, and that must not be its owner's next life.
 */
static void go_on_unlock(struct rp_qp *qp)
{
	int ret = 0;

	rp_keys_unhold(qp);
	if (!qp->gate && qp->real)
		ret = rp_qp_submit_sends(qp);
	if (ret)
		qp->gate = true;	/* nothing passes what is not taken */
	rp_unlock(&qp->lock);
	if (ret)
		rp_qp_not_taken(qp, ret, IBV_WC_GENERAL_ERR);
}

void rp_keys_go_on(struct rp_qp *qp)
{
	/* This thread has it for a peer's move, and in a move of its own device no verb goes on. */
	const bool mine = qp->conn && qp->conn->moving;

	if (!mine)
		pthread_mutex_lock(&qp->control);
	rp_lock(&qp->lock);
	/* Its owner may have taken it to RESET meanwhile. */
	if (qp->keys_held)
		go_on_unlock(qp);
	else
		rp_unlock(&qp->lock);
	if (!mine)
		pthread_mutex_unlock(&qp->control);
}

bool rp_keys_in_doubt(const struct rp_qp *qp, uint64_t index)
{
	if (!qp->rkeys || qp->rkeys == rp_keymap_none)
		return false;
	return qp->rkeys == rp_keymap_awaited || index >= qp->keys_sure;
}

/* Nothing of the queue pair waits, or has failed, any more. */
void rp_keys_reset(struct rp_qp *qp)
{
	rp_keys_unhold(qp);
	if (atomic_exchange(&qp->key_failed, false))
		count_down(&failed);
	qp->key_stop = qp->as_is = false;
	qp->keys_sure = qp->keys_asked = 0;
}

/* Caller holds qp->lock or the lock of the CQ that reports it. */
void rp_keys_failed(struct rp_qp *qp)
{
	atomic_store(&qp->key_failed, true);
	atomic_fetch_add(&failed, 1);
	rp_ctl_wake();
}

/* --- how far does the owner's table go? --- */

/* The question is a KEYS without a table, which a shim that does not know it answers as one that it does not understand. */
static bool send_question(struct rp_peer *peer, struct rp_keyset *ks, const struct rp_conn *c)
{
	const struct rp_keys_ask ask = {
		.magic = htonl(RP_KEYS_ASK_MAGIC),
		.ctx = htonl(ks->ctx),
	};
	struct rp_message *m = rp_message_new(peer, REPATH_MSG_KEYS, 1, &ask, sizeof(ask));

	if (!m)
		return false;
	rp_message_record(&m->recs[m->nrecs++], c, REPATH_MSG_KEYS);
	if (!rp_message_ask(m, &peer->acks)) {
		rp_message_free(m);
		return false;
	}
	ks->question = m->id;
	rp_message_try(m);
	return true;
}

/* What was asked about, and is not in the table, is in none. */
static void decide(struct rp_keyset *ks)
{
	struct rp_qp *qp;
	bool go_on;

	list_for_each(qp, &ks->qps, in_keyset) {
		rp_lock(&qp->lock);
		if (qp->keys_asked)
			qp->keys_sure = qp->keys_asked;
		go_on = qp->keys_asked && qp->keys_held;
		rp_unlock(&qp->lock);
		if (go_on)
			rp_keys_go_on(qp);
	}
}

static void ask(struct rp_peer *peer, struct rp_keyset *ks, uint64_t now)
{
	const struct rp_conn *c = NULL;
	struct rp_qp *qp;
	bool held;

	if (ks->until && ks->serial >= ks->until) {
		ks->until = 0;
		decide(ks);
	}
	if (ks->question || !ks->map || now < ks->ask_ns)
		return;
	list_for_each(qp, &ks->qps, in_keyset) {
		rp_lock(&qp->lock);
		held = qp->keys_held && !qp->gate;
		/* Asked again it is for what the owner tells; what he has said of the rest stands, or it would never end. */
		if (!ks->until)
			qp->keys_asked = held ? qp->sq.head : 0;
		rp_unlock(&qp->lock);
		if (held && qp->conn && qp->conn->peer == peer && rp_conn_is_ready(qp->conn))
			c = qp->conn;
	}
	if (c && !send_question(peer, ks, c))
		ks->ask_ns = now + ASK_AGAIN_NS;
}

static struct rp_keyset *asked_by(const struct rp_peer *peer, uint32_t message)
{
	struct rp_keyset *ks;

	list_for_each(ks, &peer->keysets, node)
		if (ks->question == message)
			return ks;
	return NULL;
}

void rp_keys_told(const struct rp_peer *peer, uint32_t message, const struct rp_ctl_peer_msg *m)
{
	struct rp_keyset *ks = asked_by(peer, message);
	const struct rp_keys_ack *ack = m->blob;
	bool other, more;

	if (!ks)
		return;
	ks->question = 0;
	/*
	 * One that does not know the question has no such device any more, or an older shim. What is said of another
	 * table than the one that is here, of which there may be only the first part, decides nothing.
	 */
	other = m->blob_len == sizeof(*ack) && ack->epoch && ntohl(ack->epoch) != ks->epoch;
	more = !other && m->blob_len == sizeof(*ack) && ntohl(ack->serial) > ks->serial;
	if (more && !ks->until)
		ks->until = ntohl(ack->serial);
	if (other || more) {
		ks->ask_ns = rp_now_ns() + ASK_AGAIN_NS;
		return;
	}
	ks->until = 0;
	decide(ks);
}

void rp_keys_not_told(const struct rp_peer *peer, uint32_t message)
{
	struct rp_keyset *ks = asked_by(peer, message);

	if (!ks)
		return;
	ks->question = 0;
	ks->ask_ns = rp_now_ns() + ASK_AGAIN_NS;
}

/* --- */

/* A request had a wrong key, and the peer would have said so: what is behind it is flushed. Caller holds qp->control. */
static void fail(struct rp_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	bool gate;
	int ret;

	rp_qp_modify_real(qp, &attr, IBV_QP_STATE);
	rp_lock(&qp->lock);
	qp->key_stop = false;
	qp->as_is = true;
	gate = qp->gate;
	ret = rp_qp_submit_sends(qp);
	if (ret)
		qp->gate = true;
	rp_unlock(&qp->lock);
	if (ret && !gate)
		rp_qp_not_taken(qp, ret, IBV_WC_WR_FLUSH_ERR);
}

/* What waits for nothing any more is given as it is: to fail, or to be flushed by a queue pair in error. Caller holds qp->control. */
static void no_longer(struct rp_qp *qp)
{
	rp_lock(&qp->lock);
	if (!qp->keys_held) {
		rp_unlock(&qp->lock);
		return;
	}
	if (qp->rkeys == rp_keymap_awaited)
		qp->rkeys = rp_keymap_none;
	qp->keys_sure = qp->sq.head;
	go_on_unlock(qp);
}

static bool in_error(struct rp_qp *qp)
{
	return atomic_load(&qp->failed) || __atomic_load_n(&qp->qp.state, __ATOMIC_ACQUIRE) == IBV_QPS_ERR;
}

static bool is_late(const struct rp_qp *qp, uint64_t now)
{
	return now - qp->keys_held > AWAIT_NS;
}

/* Is there something to be done? Not with what waits only since @now, or an owner that posts on would keep us. */
static bool is_due(struct rp_qp *qp, uint64_t now)
{
	bool due;

	if ((qp->conn && qp->conn->moving) || !qp->real) {
		/* Nobody can be asked meanwhile. */
		rp_lock(&qp->lock);
		if (qp->keys_held)
			qp->keys_held = now;
		rp_unlock(&qp->lock);
		return false;
	}
	if (atomic_load(&qp->key_failed))
		return true;
	rp_lock(&qp->lock);
	due = qp->keys_held && qp->keys_held < now && (is_late(qp, now) || in_error(qp));
	rp_unlock(&qp->lock);
	return due;
}

/*
 * One that is due, with its control, without which it is not destroyed: not under the locks of the lists, since it may
 * take long. One that a verb has is left for the next time.
 */
static struct rp_qp *take_due(uint64_t now)
{
	struct rp_qp *qp, *found = NULL;
	struct rp_context *ctx;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node) {
		rp_lock(&ctx->objects);
		list_for_each(qp, &ctx->qps, node)
			if (is_due(qp, now) && !pthread_mutex_trylock(&qp->control)) {
				found = qp;
				break;
			}
		rp_unlock(&ctx->objects);
		if (found)
			break;
	}
	rp_unlock(&rp_contexts_lock);
	return found;
}

/* Caller holds qp->control, and its owner may have taken it to RESET before. */
static void look_at(struct rp_qp *qp, uint64_t now)
{
	bool held, late;

	if (atomic_exchange(&qp->key_failed, false)) {
		count_down(&failed);
		fail(qp);
	}
	rp_lock(&qp->lock);
	held = qp->keys_held && qp->keys_held < now;
	late = held && is_late(qp, now);
	rp_unlock(&qp->lock);
	if (late)
		rp_log(RP_LOG_ERR, "QP 0x%x: the peer does not tell its keys", qp->qp.qp_num);
	if (late || (held && in_error(qp)))
		no_longer(qp);
}

void rp_keys_forked(void)
{
	atomic_store(&awaiting, 0);
	atomic_store(&failed, 0);
}

void rp_keys_tick(void)
{
	uint64_t now = rp_now_ns();
	struct rp_keyset *ks;
	struct rp_peer *p;
	struct rp_qp *qp;

	if (!atomic_load(&awaiting) && !atomic_load(&failed))
		return;
	while ((qp = take_due(now))) {
		look_at(qp, now);
		pthread_mutex_unlock(&qp->control);
	}
	if (!atomic_load(&awaiting))
		return;
	list_for_each(p, &rp_peers, node)
		list_for_each(ks, &p->keysets, node)
			ask(p, ks, now);
}

int rp_keys_wait_ms(void)
{
	return atomic_load(&failed) ? 1 : atomic_load(&awaiting) ? 500 : -1;
}
