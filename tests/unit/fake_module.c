// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../libshim/conn.h"
#include "../../libshim/keys.h"
#include "../../libshim/ud.h"
#include "fake_module.h"
#include "fake_work.h"

#define OPS 8
#define WAIT_S 10
#define PATIENT_MS 60000

/* A UD address that is asked for, and told again when somebody has moved. */
struct kept {
	struct list_node node;
	uint32_t id;
	struct rp_ctl_address address;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake, answered;
	struct list_head queue;
	pthread_t thread;
	bool running;
	struct fake_faults faults;
	/* the last REPLY of each operation */
	struct {
		int stage, err;
		char reason[REPATH_REASON_MAX];
	} op[OPS];
	unsigned int current;
	struct repath_counters counters;
	int moving;
	struct list_head kept;
	uint32_t known_number;	/* others know a queue pair by it */
	bool all_away;		/* others may know queue pairs by any number, and are away */
	_Atomic uint32_t first_id;	/* processes have the numbers that follow */
	_Atomic uint32_t unready_qpn;	/* whose peer can not be moved with */
	_Atomic uint32_t swapped[2];	/* each of these queue pairs has the connection's number of the other one */
	_Atomic uint32_t anew;		/* a queue pair of a host whose module has been loaded anew */
	_Atomic(const char *) known_anew;	/* the device of the only process that is known by another number */
	_Atomic int unready;
	int refuse;		/* what the next connection is refused with */
	int no_answer;		/* ... and the next @no_answers questions by this process's module; 0: they get lost */
	unsigned int no_answers;
	struct {
		uint32_t conn_id;
		bool waits;
		int err;
	} cycle[64];
	unsigned int ncycles;
	bool repathed, patient;
	_Atomic uint32_t moved_lid, peer_lid;
	_Atomic bool hidden;	/* all devices, from each other */
} fake = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.wake = PTHREAD_COND_INITIALIZER,
	.answered = PTHREAD_COND_INITIALIZER,
	.queue = { { &fake.queue.n, &fake.queue.n } },
	.kept = { { &fake.kept.n, &fake.kept.n } },
};

static bool chance(int percent)
{
	return percent && (int)(rand_r(&fake.faults.seed) % 100) < percent;
}

void fake_enqueue(struct work *w, unsigned int late_us)
{
	w->at_ns = rp_now_ns() + (late_us ? rand_r(&fake.faults.seed) % late_us * 1000ull : 0);
	list_add_tail(&fake.queue, &w->node);
	pthread_cond_signal(&fake.wake);
}

struct work *fake_work_new(int kind)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->kind = kind;
	return w;
}

int rp_ctl_reply(uint32_t op, enum repath_stage stage, int err, const char *reason,
		 const struct repath_counters *counters)
{
	pthread_mutex_lock(&fake.lock);
	/* The stages up to the one that somebody waits for are not its answer, errors are. */
	fake.op[op].stage = stage;
	fake.op[op].err = err < 0 ? -err : err;
	snprintf(fake.op[op].reason, sizeof(fake.op[op].reason), "%s", reason ? reason : "");
	if (counters)
		fake.counters = *counters;
	if (!err && (stage == REPATH_STAGE_GATE || stage == REPATH_STAGE_RELEASE ||
		     stage == REPATH_STAGE_RECREATE || stage == REPATH_STAGE_CONNECT ||
		     stage == REPATH_STAGE_REPLAY))
		fake_tap_stage(stage == REPATH_STAGE_GATE ? FAKE_GATED :
			       stage == REPATH_STAGE_RELEASE ? FAKE_PARKED :
			       stage == REPATH_STAGE_RECREATE ? FAKE_RECREATED :
			       stage == REPATH_STAGE_CONNECT ? FAKE_CONNECTED : FAKE_DONE);
	pthread_cond_broadcast(&fake.answered);
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

/* --- connections: two queue pairs of this process that name each other --- */

/* Of the @n-th context. */
static uint32_t process_id(const struct rp_context *ctx, uint32_t n)
{
	const char *anew = fake.known_anew;

	return fake.first_id + n + (anew && !strcmp(ctx->name, anew) ? 1000 : 0);
}

/* The queue pairs of the process at this moment. */
struct census {
	struct {
		struct rp_qp *qp;
		uint32_t ctx, dev_index, number, dest, real, epoch;
		bool connectable;
	} *row;
	unsigned int n;
};

static void census_take(struct census *s)
{
	struct rp_context *ctx;
	struct rp_qp *qp;
	uint32_t id, n = 0;

	s->row = NULL;
	s->n = 0;
	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node) {
		id = process_id(ctx, ++n);
		rp_lock(&ctx->objects);
		list_for_each(qp, &ctx->qps, node) {
			s->row = realloc(s->row, (s->n + 1) * sizeof(*s->row));
			if (!s->row)
				abort();
			s->row[s->n].qp = qp;
			s->row[s->n].ctx = id;
			s->row[s->n].dev_index = ctx->dev_index;
			s->row[s->n].number = qp->qp.qp_num;
			s->row[s->n].epoch = ctx->epoch;
			s->row[s->n].real = qp->real ? qp->real->qp_num : 0;
			/* Nothing is known of one whose peer has said nothing that outlives it. */
			s->row[s->n].connectable = rp_conn_connectable(qp) &&
				!(qp->qp.qp_num == fake.unready_qpn && qp->real &&
				  qp->real->qp_num != fake.unready_qpn);
			s->row[s->n].dest = s->row[s->n].connectable ? qp->attr.dest_qp_num : 0;
			s->n++;
		}
		rp_unlock(&ctx->objects);
	}
	rp_unlock(&rp_contexts_lock);
}

/* Index of the other end of the connection of queue pair @i; -1: there is none. */
static int partner(const struct census *s, unsigned int i)
{
	unsigned int k;

	for (k = 0; k < s->n; k++)
		if (s->row[k].number == s->row[i].dest && s->row[k].dest == s->row[i].number)
			return k;
	return -1;
}

static uint32_t ctx_id(struct rp_context *want)
{
	struct rp_context *ctx;
	uint32_t n = 0, id = 0;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node) {
		n++;
		if (ctx == want)
			id = process_id(ctx, n);
	}
	rp_unlock(&rp_contexts_lock);
	return id;
}

static uint32_t conn_id(struct rp_qp *qp)
{
	uint32_t number = qp->qp.qp_num;

	if (number == fake.swapped[0] || number == fake.swapped[1])
		number ^= fake.swapped[0] ^ fake.swapped[1];
	return number + (qp->qp.qp_num == fake.anew ? 5000000 : 1000000);
}

/*
 * Of which device a connection's end is, for the module: the one that it was made on, and in a move that until INFO names
 * its queue pair of another one. By the epoch of its context; the control thread's.
 */
static struct bound {
	uint32_t id, epoch;
	bool destroyed;		/* its peer was gone while it had no queue pair: there is no such connection */
} *ends;
static unsigned int nends;

static struct bound *bound_of(struct rp_qp *qp, uint32_t id, bool binds)
{
	unsigned int i;

	for (i = 0; i < nends && ends[i].id != id; i++)
		;
	if (i == nends) {
		ends = realloc(ends, ++nends * sizeof(*ends));
		if (!ends)
			abort();
		ends[i] = (struct bound){ .id = id };
		binds = true;
	}
	if (binds || !qp->conn || !qp->conn->moving)
		ends[i].epoch = rp_qp_context(qp)->epoch;
	return &ends[i];
}

static bool is_bound(struct rp_qp *qp, uint32_t id, bool binds)
{
	return bound_of(qp, id, binds)->epoch == rp_qp_context(qp)->epoch;
}

static bool is_destroyed(struct rp_qp *qp)
{
	return bound_of(qp, conn_id(qp), false)->destroyed;
}

/* GONE, as the module takes it, before its process reads it. */
static void note_gone(const struct work *w)
{
	struct census s;
	unsigned int i, k;

	census_take(&s);
	for (i = 0; i < w->msg.nrecs; i++)
		for (k = 0; k < s.n; k++)
			if (s.row[k].number == w->end[i].dest && s.row[k].dest == w->end[i].number &&
			    (!s.row[k].real || !is_bound(s.row[k].qp, conn_id(s.row[k].qp), false)))
				bound_of(s.row[k].qp, conn_id(s.row[k].qp), false)->destroyed = true;
	free(s.row);
}

/* Also one that is being destroyed and says so. NULL: no connection has that number. */
static struct rp_qp *qp_of(uint32_t id)
{
	struct rp_conn *c = rp_conn_find(id);

	if (c && conn_id(c->qp) == id)
		return c->qp;
	list_for_each(c, &rp_conns, node)
		if (conn_id(c->qp) == id)
			return c->qp;
	return NULL;
}

/* Whose processes look, those on another device's host do not: the device's name; NULL: all. The control thread's. */
static const char *reader;

int rp_ctl_conns(void (*fn)(const struct rp_ctl_conn *c, void *arg), void *arg)
{
	struct census s;
	unsigned int i;
	int other;

	census_take(&s);
	for (i = 0; i < s.n; i++) {
		struct rp_ctl_conn row = { .state = REPATH_CONN_READY };

		if (!s.row[i].connectable)
			continue;
		other = partner(&s, i);
		if (other < 0)
			continue;
		if (is_destroyed(s.row[i].qp))
			continue;
		/* One whose device is away is known by the number that it had: by nobody's, here. */
		if (!s.row[i].real && !rp_conn_find(conn_id(s.row[i].qp)))
			continue;
		if (s.row[i].number == fake.unready_qpn)
			row.state = fake.unready;
		row.conn_id = conn_id(s.row[i].qp);
		row.peer_id = s.row[other].ctx;
		row.dev_index = s.row[i].dev_index;
		row.qpn = s.row[i].real;
		if (reader && strcmp(rp_qp_context(s.row[i].qp)->name, reader)) {
			const struct rp_conn *c = s.row[i].qp->conn;

			if (!c)
				continue;
			row.conn_id = c->id;
			row.peer_id = c->peer->id;
			row.state = c->known;
		}
		fn(&row, arg);
	}
	free(s.row);
	return 0;
}

/* On the control thread, so that the device stays. */
static void address_now(struct rp_qp *qp, int port, uint8_t to[16])
{
	struct ibv_context *real = rp_qp_context(qp)->real;
	union ibv_gid gid;
	int i;

	for (i = 0; real && i < 16; i++)
		if (!RP_REAL(rp_real.ibv_query_gid(real, port, i, &gid)) && gid.raw[0]) {
			memcpy(to, &gid, sizeof(gid));
			return;
		}
}

static uint32_t lid_now(struct rp_qp *qp, int number)
{
	struct ibv_context *real = rp_qp_context(qp)->real;
	struct ibv_port_attr port = { 0 };

	if (real)
		RP_REAL(rp_real.ibv_query_port(real, number, (void *)&port));
	return port.lid;
}

static bool is_plugged(const char *name)
{
	struct ibv_device **list = RP_REAL(rp_real.ibv_get_device_list(NULL));
	bool found = false;
	int i;

	for (i = 0; list && list[i]; i++)
		found |= !strcmp(list[i]->name, name);
	if (list)
		RP_REAL_VOID(rp_real.ibv_free_device_list(list));
	return found;
}

/*
 * Devices of two names are of two hosts. While its device is away nobody reaches one, and it
 * reaches nobody. A process is known by its last number only. 0 or the errno that a message ends with.
 */
static int way_of(const struct work *w)
{
	int err = EACCES;	/* the module there knows no such connection (any more) */
	struct census s;
	unsigned int i, k;

	census_take(&s);
	for (i = 0; i < w->msg.nrecs; i++)
		for (k = 0; k < s.n; k++) {
			const char *to = rp_qp_context(s.row[k].qp)->name;

			if (s.row[k].number != w->end[i].dest ||
			    s.row[k].dest != w->end[i].number)
				continue;
			err = s.row[k].ctx != w->peer_id ? ENOENT :
			      strcmp(to, w->from->name) &&
			      (w->unplugged || fake.hidden || !is_plugged(to)) ? EHOSTUNREACH : 0;
			i = w->msg.nrecs;
			break;
		}
	free(s.row);
	return err;
}

static bool is_there(uint32_t number)
{
	bool found = false;
	struct census s;
	unsigned int i;

	census_take(&s);
	for (i = 0; i < s.n; i++)
		found |= s.row[i].number == number;
	free(s.row);
	return found;
}

/* When a queue pair went its module said so; who had not heard of its move yet may only say it now. */
static void tell_gone(const struct work *w)
{
	struct work *told = fake_work_new(W_TOLD_GONE);
	unsigned int i;

	for (i = 0; i < w->msg.nrecs; i++)
		if (!is_there(w->end[i].dest))
			told->recs[told->msg.nrecs++] = (struct repath_conn_rec){
				.conn_id = w->recs[i].conn_id };
	told->msg.type = REPATH_MSG_GONE;
	told->msg.peer_id = w->peer_id;
	told->msg.recs = told->recs;
	pthread_mutex_lock(&fake.lock);
	fake_enqueue(told, 0);
	pthread_mutex_unlock(&fake.lock);
}

static void carry(struct work *w)
{
	struct work *sent = fake_work_new(W_SENT);
	const int type = w->msg.type;
	const int err = w->no_device ? ENODEV : way_of(w);
	unsigned int late_us;
	int copies;

	if (err == EACCES && type != REPATH_MSG_GONE)
		tell_gone(w);
	if (!err && type == REPATH_MSG_GONE)
		note_gone(w);
	sent->peer_id = w->peer_id;
	sent->msg_id = w->msg_id;
	snprintf(sent->dev, sizeof(sent->dev), "%s", w->from ? w->from->name : "");
	w->kind = W_MSG;
	pthread_mutex_lock(&fake.lock);
	copies = chance(fake.faults.lost) ? 0 : chance(fake.faults.twice) ? 2 : 1;
	/* Lost messages are reported; delivered ones sometimes too, since the answer may get lost. */
	sent->err = !copies || chance(fake.faults.lost) ? ETIMEDOUT : 0;
	late_us = fake.faults.late_us;
	/* An older shim takes it for a table, which it does not understand. */
	if (fake.faults.old_keys && type == REPATH_MSG_KEYS && w->msg.blob_len == sizeof(struct rp_keys_ask))
		w->blob[0] ^= 0x55;
	if (err) {
		copies = 0;
		sent->err = err;
	} else if (w->msg.nrecs > 1 && chance(type == REPATH_MSG_PREPARE ? fake.faults.unasked :
									   fake.faults.spoilt)) {
		w->msg.nrecs--;
		memmove(w->recs, w->recs + 1, w->msg.nrecs * sizeof(*w->recs));
		memmove(w->end, w->end + 1, w->msg.nrecs * sizeof(*w->end));
		sent->err = EKEYREJECTED;
	} else {
		copies = fake_tap_send(w, copies, &sent->err, &late_us);
	}
	while (copies--) {
		struct work *c = fake_work_copy(w);

		fake_enqueue(c, 0);
		if (late_us)
			c->at_ns += rand_r(&fake.faults.seed) % late_us * 1000ull;
		if (type == fake.faults.slow)
			c->at_ns += fake.faults.slow_us * 1000ull;
	}
	fake_enqueue(sent, fake.faults.late_us);
	if (err == EHOSTUNREACH)
		sent->at_ns += fake.faults.away_us * 1000ull;
	if (type == fake.faults.slow)
		sent->at_ns += fake.faults.slow_us * 1000ull;
	pthread_mutex_unlock(&fake.lock);
}

/* Its sender may hold locks that must be had to see who gets it. */
int rp_ctl_peer_send(uint32_t peer_id, enum repath_msg type, uint64_t msg_id,
		     const struct repath_conn_rec *recs, unsigned int nrecs,
		     const struct rp_ctl_bind *bind, const void *blob, unsigned int blob_len)
{
	struct work *w = fake_work_new(W_SEND), *copy;
	unsigned int i, n = 0;
	bool has_device = false;
	int port;

	for (i = 0; i < nrecs; i++) {
		struct rp_qp *qp = qp_of(recs[i].conn_id);

		if (!qp || is_destroyed(qp)) {
			w->kind = W_SENT;
			w->err = ENOENT;
			break;
		}
		has_device |= is_bound(qp, recs[i].conn_id, bind);
		w->recs[n] = recs[i];
		w->end[n].number = qp->qp.qp_num;
		w->end[n++].dest = qp->attr.dest_qp_num;
		w->from = rp_qp_context(qp);
		/* INFO is bound to a port; else the module says by which it was connected. */
		port = type == REPATH_MSG_INFO ? qp->attr.port_num : 1;
		address_now(qp, port, w->msg.gid);
		w->msg.lid = fake.peer_lid ? fake.peer_lid : lid_now(qp, port);
	}
	w->unplugged = w->from && !is_plugged(w->from->name);
	w->no_device = n && !has_device;
	w->peer_id = peer_id;
	w->msg_id = msg_id;
	w->msg.type = type;
	w->msg.recs = w->recs;
	w->msg.nrecs = n;
	w->blob = (char *)blob;
	w->msg.blob_len = blob_len;
	copy = fake_work_copy(w);
	free(w);
	pthread_mutex_lock(&fake.lock);
	fake_enqueue(copy, 0);
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

/* --- numbers --- */

static void resolve_later(uint32_t id, const struct rp_ctl_address *a)
{
	struct work *w = fake_work_new(W_RESOLVE);

	w->op = id;
	w->address = *a;
	fake_enqueue(w, fake.faults.late_us);
}

int rp_ctl_resolve(uint32_t id, const struct rp_ctl_address *a)
{
	struct kept *k;

	pthread_mutex_lock(&fake.lock);
	if (a->qp_type == IBV_QPT_UD) {
		list_for_each(k, &fake.kept, node)
			if (k->id == id)
				break;
		if (&k->node == &fake.kept.n) {
			k = calloc(1, sizeof(*k));
			if (!k)
				abort();
			k->id = id;
			list_add_tail(&fake.kept, &k->node);
		}
		k->address = *a;
	}
	resolve_later(id, a);
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

int rp_ctl_unresolve(uint32_t id)
{
	struct kept *k, *tmp;

	pthread_mutex_lock(&fake.lock);
	list_for_each_safe(k, tmp, &fake.kept, node)
		if (k->id == id) {
			list_del(&k->node);
			free(k);
		}
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

int rp_ctl_numbers(uint32_t dev_index, const struct repath_number *rows, unsigned int n,
		   const struct repath_gid_change *gids, unsigned int ngids)
{
	struct kept *k;

	(void)dev_index;
	(void)rows;
	(void)n;
	(void)gids;
	(void)ngids;
	pthread_mutex_lock(&fake.lock);
	list_for_each(k, &fake.kept, node)
		resolve_later(k->id, &k->address);
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

int rp_ctl_number_check(uint32_t dev_index, uint32_t qpn)
{
	(void)dev_index;
	if (fake.all_away)
		return -EBUSY;
	return qpn == fake.known_number ? -EADDRINUSE : 0;
}

/* Whose connection was told, and to whom. The control thread's. */
static struct {
	struct rp_qp *qp;
	uint32_t dest, peer;
} told[4096];

/* @qpn is about to be connected, which may be anew to the same: nobody may have seen it in RESET. */
static void connects(struct census *s, uint32_t dev_index, uint32_t qpn)
{
	unsigned int i, k;

	for (i = 0; i < s->n; i++) {
		if (s->row[i].real == qpn && s->row[i].dev_index == dev_index)
			bound_of(s->row[i].qp, conn_id(s->row[i].qp), true)->destroyed = false;
		for (k = 0; s->row[i].real == qpn && s->row[i].dev_index == dev_index && k < 4096; k++)
			if (told[k].qp == s->row[i].qp)
				told[k].qp = NULL;
	}
}

/* Who is known by that number; of all contexts, since all have the same address here. */
static void resolve(uint32_t id, const struct rp_ctl_address *a)
{
	struct rp_place place = { .lid = a->lid, .qpn = a->qpn };
	struct census s;
	int err = EADDRNOTAVAIL;
	unsigned int i;

	memcpy(place.gid, a->gid, sizeof(place.gid));
	pthread_mutex_lock(&fake.lock);
	if (fake.refuse && a->qp_type != IBV_QPT_UD) {
		err = fake.refuse;
		fake.refuse = 0;
		pthread_mutex_unlock(&fake.lock);
		rp_resolved(id, err, NULL);
		return;
	}
	if (fake.no_answers && a->qp_type != IBV_QPT_UD) {
		fake.no_answers--;
		err = fake.no_answer;
		pthread_mutex_unlock(&fake.lock);
		if (err)
			rp_resolve_refused(id, err);
		return;
	}
	pthread_mutex_unlock(&fake.lock);
	census_take(&s);
	if (a->src_qpn)
		connects(&s, a->dev_index, a->src_qpn);
	for (i = 0; i < s.n; i++) {
		if (s.row[i].number != a->qpn)
			continue;
		err = 0;
		if (s.row[i].real)
			place.qpn = s.row[i].real;
		place.moved = s.row[i].epoch;
		if (a->qp_type == IBV_QPT_UD && s.row[i].epoch)
			address_now(s.row[i].qp, 1, place.gid);
		if (a->qp_type == IBV_QPT_UD && s.row[i].epoch && fake.moved_lid)
			place.lid = fake.moved_lid;
	}
	free(s.row);
	if (a->qp_type == IBV_QPT_UD)
		err = 0;
	rp_resolved(id, err, err ? NULL : &place);
}

/* Connections of those that have moved are told once, when they are there, and when the peer has another number. */
static void tell_new(void)
{
	static unsigned int next;
	struct census s;
	unsigned int i, k;

	census_take(&s);
	for (i = 0; i < s.n; i++) {
		struct rp_ctl_conn row = { .state = REPATH_CONN_READY };
		int other = s.row[i].real && s.row[i].connectable ? partner(&s, i) : -1;

		for (k = 0; k < 4096; k++)
			if (told[k].qp == s.row[i].qp)
				break;
		if (other < 0) {
			/* Taken to RESET: it may be connected to the same one anew. */
			if (k < 4096 && !s.row[i].connectable)
				told[k].qp = NULL;
			continue;
		}
		if (!s.row[i].epoch || (k < 4096 && told[k].dest == s.row[i].dest && told[k].peer == s.row[other].ctx))
			continue;
		if (k == 4096)
			k = next++ % 4096;
		told[k].qp = s.row[i].qp;
		told[k].dest = s.row[i].dest;
		told[k].peer = s.row[other].ctx;
		row.conn_id = conn_id(s.row[i].qp);
		row.peer_id = s.row[other].ctx;
		row.dev_index = s.row[i].dev_index;
		row.qpn = s.row[i].real;
		rp_conn_ready(&row);
	}
	free(s.row);
}

/* The sender's records become the receiver's; false: there is nobody (any more). */
static bool address(struct work *w)
{
	struct census s;
	unsigned int i, k, n = 0;

	census_take(&s);
	for (i = 0; i < w->msg.nrecs; i++)
		for (k = 0; k < s.n; k++)
			if (s.row[k].number == w->end[i].dest &&
			    s.row[k].dest == w->end[i].number) {
				w->recs[n] = w->recs[i];
				w->recs[n++].conn_id = conn_id(s.row[k].qp);
				reader = rp_qp_context(s.row[k].qp)->name;
				break;
			}
	free(s.row);
	w->msg.nrecs = n;
	w->msg.peer_id = ctx_id(w->from);
	return n;
}

static void run(struct work *w)
{
	struct rp_conn *c;

	reader = NULL;
	switch (w->kind) {
	case W_EVENT:
		reader = w->cmd == REPATH_CMD_EV_CHECK ? w->dev : NULL;
		rp_move_event(w->cmd, w->op, w->dev_index, w->dev, 10000, w->force);
		break;
	case W_SEND:
		carry(w);
		break;
	case W_MSG:
		if (!address(w))
			break;
		if (w->forged)
			w->msg.peer_id = w->forged;
		rp_peer_msg_in(&w->msg);
		break;
	case W_TOLD_GONE:
		if (w->msg.nrecs)
			rp_peer_msg_in(&w->msg);
		break;
	case W_SENT:
		reader = w->dev[0] ? w->dev : NULL;
		rp_peer_sent(w->msg_id, w->err);
		break;
	case W_GONE:
		list_for_each(c, &rp_conns, node)
			if (c->ctx->dev_index == (int)w->dev_index)
				rp_conn_kill(c);
		break;
	case W_UNLOAD:
		rp_move_lost_module();
		break;
	case W_RESOLVE:
		resolve(w->op, &w->address);
		break;
	case W_CYCLE:
		rp_cycle_event(w->op, &w->path);
		break;
	case W_REPATH:
		rp_ahs_repath(w->dev_index, 1, w->gid, &w->path);
		pthread_mutex_lock(&fake.lock);
		fake.repathed = true;
		pthread_cond_broadcast(&fake.answered);
		pthread_mutex_unlock(&fake.lock);
		break;
	case W_CALL:
		w->fn(w->arg);
		pthread_mutex_lock(&fake.lock);
		*w->done = true;
		pthread_cond_broadcast(&fake.answered);
		pthread_mutex_unlock(&fake.lock);
		break;
	}
	reader = NULL;
	free(w->blob);
	free(w);
}

static struct work *due(uint64_t *next)
{
	struct work *w;
	uint64_t now = rp_now_ns();

	*next = 0;
	list_for_each(w, &fake.queue, node) {
		if (w->at_ns <= now) {
			list_del(&w->node);
			return w;
		}
		if (!*next || w->at_ns < *next)
			*next = w->at_ns;
	}
	return NULL;
}

/* Has anything come since? */
static bool is_due(void)
{
	uint64_t now = rp_now_ns();
	struct work *w;

	list_for_each(w, &fake.queue, node)
		if (w->at_ns <= now)
			return true;
	return false;
}

static void *control(void *arg)
{
	(void)arg;
	for (;;) {
		struct timespec t;
		struct work *w;
		struct rp_conn *c;
		uint64_t next;
		int ms, moving = 0;

		rp_work_begin();
		pthread_mutex_lock(&fake.lock);
		while ((w = due(&next))) {
			pthread_mutex_unlock(&fake.lock);
			run(w);
			pthread_mutex_lock(&fake.lock);
		}
		pthread_mutex_unlock(&fake.lock);
		tell_new();
		ms = rp_move_tick();
		list_for_each(c, &rp_conns, node)
			moving += c->moving;
		rp_work_end();
		pthread_mutex_lock(&fake.lock);
		fake.moving = moving;
		pthread_cond_broadcast(&fake.answered);
		clock_gettime(CLOCK_REALTIME, &t);
		if (fake.patient)
			ms = ms < 0 ? PATIENT_MS : ms;
		else if (next)
			ms = 1;
		else if (ms < 0 || ms > 20)
			ms = 20;
		t.tv_nsec += ms * 1000000ll;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		if (list_empty(&fake.queue) || (next && !(fake.patient && is_due())))
			pthread_cond_timedwait(&fake.wake, &fake.lock, &t);
		pthread_mutex_unlock(&fake.lock);
	}
	return NULL;
}

/* As ctl.c's: the child has no such thread. */
static void forked(void)
{
	fake.running = false;
	list_init(&fake.queue);
	pthread_mutex_init(&fake.lock, NULL);
	pthread_cond_init(&fake.wake, NULL);
	pthread_cond_init(&fake.answered, NULL);
	rp_move_forked();
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

void rp_ctl_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	rp_forks_wait();
	pthread_mutex_lock(&fake.lock);
	if (!fake.running) {
		fake.running = !pthread_create(&fake.thread, NULL, control, NULL);
		pthread_detach(fake.thread);
	}
	pthread_mutex_unlock(&fake.lock);
}

bool rp_ctl_call(void (*fn)(void *arg), void *arg)
{
	struct work *w;
	bool done = false;

	if (!fake.running)
		return false;
	if (pthread_equal(fake.thread, pthread_self())) {
		fn(arg);
		return true;
	}
	w = fake_work_new(W_CALL);
	w->fn = fn;
	w->arg = arg;
	w->done = &done;
	pthread_mutex_lock(&fake.lock);
	fake_enqueue(w, 0);
	while (!done)
		pthread_cond_wait(&fake.answered, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
	return true;
}

void rp_ctl_wake(void)
{
	pthread_cond_signal(&fake.wake);	/* it looks every 20 ms by itself */
}

/* --- for tests --- */

void fake_tap_set(const struct fake_tap *tap)
{
	pthread_mutex_lock(&fake.lock);
	fake_tap_begin(tap);
	pthread_mutex_unlock(&fake.lock);
}

void fake_tap_get(unsigned int *touched, unsigned int *delivered)
{
	pthread_mutex_lock(&fake.lock);
	fake_tap_count(touched, delivered);
	pthread_mutex_unlock(&fake.lock);
}

void fake_faults_set(const struct fake_faults *f)
{
	pthread_mutex_lock(&fake.lock);
	fake.faults = *f;
	pthread_mutex_unlock(&fake.lock);
}

static uint32_t index_of(const char *dev)
{
	struct rp_context *ctx;
	uint32_t ix = 0;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (!strcmp(ctx->name, dev))
			ix = ctx->dev_index;
	rp_unlock(&rp_contexts_lock);
	return ix;
}

/* Of one that nobody has opened yet. */
static uint32_t plugged_index(const char *name)
{
	struct ibv_device **list = RP_REAL(rp_real.ibv_get_device_list(NULL));
	uint32_t ix = 0;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(list[i]->name, name))
			ix = RP_REAL(rp_real.ibv_get_device_index(list[i]));
	if (list)
		RP_REAL_VOID(rp_real.ibv_free_device_list(list));
	return ix;
}

/* caller holds the lock */
static int await(int stage, const char **text)
{
	unsigned int op = fake.current;
	struct timespec end;
	int ret = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_S;
	while (fake.op[op].stage != stage && !fake.op[op].err && !ret)
		ret = pthread_cond_timedwait(&fake.answered, &fake.lock, &end);
	if (text)
		*text = fake.op[op].reason;
	return ret ? ret : fake.op[op].err;
}

static int event_by(int cmd, const char *dev, bool force, int until, const char **text)
{
	struct work *w = fake_work_new(W_EVENT);
	int ret = 0;

	w->cmd = cmd;
	w->force = force;
	w->dev_index = cmd == REPATH_CMD_EV_RESUME ? plugged_index(dev) : index_of(dev);
	snprintf(w->dev, sizeof(w->dev), "%s", dev);
	pthread_mutex_lock(&fake.lock);
	w->op = fake.current;
	fake.op[w->op].stage = REPATH_STAGE_NONE;
	fake.op[w->op].err = 0;
	fake.op[w->op].reason[0] = 0;
	fake_tap_stage(cmd == REPATH_CMD_EV_CHECK ? FAKE_CHECK :
		       cmd == REPATH_CMD_EV_SUSPEND ? FAKE_SUSPEND :
		       cmd == REPATH_CMD_EV_RESUME ? FAKE_RESUME : FAKE_ABORT);
	fake_enqueue(w, 0);
	if (until)
		ret = await(until, text);
	pthread_mutex_unlock(&fake.lock);
	return ret;
}

static int event(int cmd, const char *dev, int until, const char **text)
{
	return event_by(cmd, dev, false, until, text);
}

void fake_use_op(unsigned int op)
{
	pthread_mutex_lock(&fake.lock);
	fake.current = op % OPS;
	pthread_mutex_unlock(&fake.lock);
}

int fake_wait(int stage)
{
	int ret;

	pthread_mutex_lock(&fake.lock);
	ret = await(stage, NULL);
	pthread_mutex_unlock(&fake.lock);
	return ret;
}

int fake_resume_start(const char *dev)
{
	return event(REPATH_CMD_EV_RESUME, dev, 0, NULL);
}

int fake_check(const char *dev, const char **text)
{
	return event(REPATH_CMD_EV_CHECK, dev, REPATH_STAGE_CHECK, text);
}

int fake_check_start(const char *dev)
{
	return event(REPATH_CMD_EV_CHECK, dev, 0, NULL);
}

int fake_check_force(const char *dev, const char **text)
{
	return event_by(REPATH_CMD_EV_CHECK, dev, true, REPATH_STAGE_CHECK, text);
}

int fake_suspend(const char *dev)
{
	return event(REPATH_CMD_EV_SUSPEND, dev, REPATH_STAGE_RELEASE, NULL);
}

int fake_suspend_start(const char *dev)
{
	return event(REPATH_CMD_EV_SUSPEND, dev, 0, NULL);
}

int fake_abort(void)
{
	return event(REPATH_CMD_EV_ABORT, "", REPATH_STAGE_ABORT, NULL);
}

int fake_abort_start(void)
{
	return event(REPATH_CMD_EV_ABORT, "", 0, NULL);
}

int fake_resume(const char *dev, const char **text)
{
	return event(REPATH_CMD_EV_RESUME, dev, REPATH_STAGE_REPLAY, text);
}

void fake_patient(bool patient)
{
	pthread_mutex_lock(&fake.lock);
	fake.patient = patient;
	pthread_cond_signal(&fake.wake);
	pthread_mutex_unlock(&fake.lock);
}

bool fake_is_control(void)
{
	return fake.running && pthread_equal(fake.thread, pthread_self());
}

struct where {
	const char *dev;
	uint32_t index;
};

static void find_index(void *arg)
{
	struct where *where = arg;

	where->index = index_of(where->dev);
}

void fake_gone(const char *dev)
{
	struct work *w = fake_work_new(W_GONE);
	struct where where = { .dev = dev };

	/* A move that ends changes it. */
	rp_ctl_call(find_index, &where);
	w->dev_index = where.index;
	pthread_mutex_lock(&fake.lock);
	fake_enqueue(w, 0);
	pthread_mutex_unlock(&fake.lock);
}

void fake_unready(uint32_t qpn, int state)
{
	pthread_mutex_lock(&fake.lock);
	fake.unready_qpn = qpn;
	fake.unready = state;
	pthread_mutex_unlock(&fake.lock);
}

void fake_unload(void)
{
	struct work *w = fake_work_new(W_UNLOAD);

	pthread_mutex_lock(&fake.lock);
	fake_enqueue(w, 0);
	pthread_mutex_unlock(&fake.lock);
}

void fake_renumber(void)
{
	atomic_fetch_add(&fake.first_id, 100);
}

static void look(void *arg)
{
	(void)arg;
	rp_conns_refresh();
}

void fake_look(void)
{
	rp_ctl_call(look, NULL);
}

void fake_load_anew(uint32_t qpn)
{
	fake.anew = qpn;
	fake_renumber();
	fake_look();
}

static void load_swapped(void *arg)
{
	const uint32_t *qpns = arg;

	rp_move_lost_module();
	memset(told, 0, sizeof(told));
	fake.swapped[0] = qpns[0];
	fake.swapped[1] = qpns[1];
}

void fake_load_swapped(uint32_t a, uint32_t b)
{
	uint32_t qpns[2] = { a, b };

	rp_ctl_call(load_swapped, qpns);
}

void fake_known_anew(const char *dev)
{
	fake.known_anew = dev;
}

static void late_keys(void *arg)
{
	const uint32_t *qpn = arg;
	struct rp_keys_wire w = { .magic = htonl(RP_KEYS_MAGIC) };
	struct repath_conn_rec rec = { 0 };
	struct rp_ctl_peer_msg m = { .type = REPATH_MSG_KEYS, .recs = &rec, .nrecs = 1,
				     .blob = &w, .blob_len = sizeof(w) };
	struct census s;
	unsigned int i;

	census_take(&s);
	for (i = 0; i < s.n; i++) {
		if (s.row[i].number == *qpn) {
			rec.conn_id = conn_id(s.row[i].qp);
			m.peer_id = s.row[i].qp->conn->peer->id;
		} else if (s.row[i].dest == *qpn) {
			w.ctx = htonl(rp_qp_context(s.row[i].qp)->number);
		}
	}
	free(s.row);
	rp_peer_msg_in(&m);
}

void fake_late_keys(uint32_t qpn)
{
	rp_ctl_call(late_keys, &qpn);
}

void fake_removed_keys_kept(unsigned int max)
{
	rp_removed_keys_max = max;
}

void fake_hide(bool hidden)
{
	fake.hidden = hidden;
}

static void look_elsewhere(void *arg)
{
	const uint32_t *qpn = arg;
	struct rp_ctl_conn row = { .state = REPATH_CONN_READY, .moving = true };
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node)
		if (c->qp->qp.qp_num == *qpn) {
			row.conn_id = c->id;
			row.peer_id = c->peer->id;
			row.dev_index = c->ctx->dev_index;
			row.qpn = c->qp->real->qp_num;
		}
	rp_conn_ready(&row);
}

void fake_look_elsewhere(uint32_t qpn)
{
	rp_ctl_call(look_elsewhere, &qpn);
}

unsigned int fake_removed_keys(const char *dev)
{
	struct rp_removed_key *gone;
	struct rp_context *ctx;
	unsigned int n = 0;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node) {
		if (strcmp(ctx->name, dev))
			continue;
		rp_lock(&ctx->objects);
		list_for_each(gone, &ctx->removed_keys, node)
			n++;
		rp_unlock(&ctx->objects);
	}
	rp_unlock(&rp_contexts_lock);
	return n;
}

int fake_settled(void)
{
	struct timespec end;
	int ret = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_S;
	pthread_mutex_lock(&fake.lock);
	fake.moving = -1;	/* a fresh look */
	while (fake.moving && !ret)
		ret = pthread_cond_timedwait(&fake.answered, &fake.lock, &end);
	pthread_mutex_unlock(&fake.lock);
	return ret;
}

static struct rp_ctl_path real_path(const struct fake_path *p)
{
	return (struct rp_ctl_path){
		.dlid = p->dlid, .slid = p->slid, .new_dlid = p->new_dlid, .sl = p->sl,
		.rate = p->rate, .mtu = p->mtu, .tclass = p->tclass ? p->tclass : -1,
	};
}

int rp_ctl_rests(uint32_t id, uint16_t peer_round)
{
	(void)id;
	(void)peer_round;
	return 0;
}

int rp_ctl_cycled(uint32_t id, int err)
{
	unsigned int i;

	pthread_mutex_lock(&fake.lock);
	for (i = 0; i < fake.ncycles; i++)
		if (fake.cycle[i].conn_id == id) {
			fake.cycle[i].waits = false;
			fake.cycle[i].err = err;
		}
	pthread_cond_broadcast(&fake.answered);
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

void fake_cycle_start(uint32_t qpn, const struct fake_path *path)
{
	struct work *w = fake_work_new(W_CYCLE);
	unsigned int i;

	w->op = qpn + 1000000;
	w->path = real_path(path);
	pthread_mutex_lock(&fake.lock);
	for (i = 0; i < fake.ncycles && fake.cycle[i].conn_id != w->op; i++)
		;
	if (i == 64)
		abort();
	fake.cycle[i].conn_id = w->op;
	fake.cycle[i].waits = true;
	if (i == fake.ncycles)
		fake.ncycles++;
	fake_enqueue(w, 0);
	pthread_mutex_unlock(&fake.lock);
}

int fake_cycle_wait(uint32_t qpn)
{
	struct timespec end;
	int ret = 0, err = ENOENT;
	unsigned int i;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 2 * WAIT_S;
	pthread_mutex_lock(&fake.lock);
	for (i = 0; i < fake.ncycles; i++) {
		if (fake.cycle[i].conn_id != qpn + 1000000)
			continue;
		while (fake.cycle[i].waits && !ret)
			ret = pthread_cond_timedwait(&fake.answered, &fake.lock, &end);
		err = ret ? ret : fake.cycle[i].err;
	}
	pthread_mutex_unlock(&fake.lock);
	return err;
}

int fake_cycle(uint32_t qpn, const struct fake_path *path)
{
	fake_cycle_start(qpn, path);
	return fake_cycle_wait(qpn);
}

void fake_repath(const char *dev, const uint8_t *gid, const struct fake_path *path)
{
	struct work *w = fake_work_new(W_REPATH);

	w->gid = gid;
	w->dev_index = index_of(dev);
	w->path = real_path(path);
	pthread_mutex_lock(&fake.lock);
	fake.repathed = false;
	fake_enqueue(w, 0);
	while (!fake.repathed)
		pthread_cond_wait(&fake.answered, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
}

void fake_addresses_kept(unsigned int max)
{
	rp_ah_to_max = max;
}

void fake_moved_lid(uint32_t lid)
{
	fake.moved_lid = lid;
}

void fake_peer_lid(uint32_t lid)
{
	fake.peer_lid = lid;
}

void fake_number_known(uint32_t qpn)
{
	pthread_mutex_lock(&fake.lock);
	fake.known_number = qpn;
	pthread_mutex_unlock(&fake.lock);
	rp_numbers_about(!!qpn);
}

void fake_numbers_away(bool away)
{
	pthread_mutex_lock(&fake.lock);
	fake.all_away = away;
	pthread_mutex_unlock(&fake.lock);
	rp_numbers_about(away);
}

void fake_refuse(int err)
{
	pthread_mutex_lock(&fake.lock);
	fake.refuse = err;
	pthread_mutex_unlock(&fake.lock);
}

void fake_no_answer(int err, unsigned int n)
{
	pthread_mutex_lock(&fake.lock);
	fake.no_answer = err;
	fake.no_answers = n;
	pthread_mutex_unlock(&fake.lock);
}

const struct repath_counters *fake_counters(void)
{
	return &fake.counters;
}
