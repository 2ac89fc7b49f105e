// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Moves whose module is gone, and those that a child of fork inherits. */
#include <stdatomic.h>

#include "keys.h"
#include "move.h"
#include "resolve.h"

static void conn_lost(struct rp_conn *c)
{
	c->mover = false;	/* its device stays */
	if (c->quiet || c->flushing)
		rp_conn_kill(c);
	else
		rp_conn_cancel(c);
}

/*
 * The module is gone, and with it the word of the peers. What has not been released goes on as it
 * was; what is parked waits for a module. A queue pair of which the peer was told that nothing more
 * comes is not in step with it any more, and nobody will say where the peer is: it has failed.
 */
void rp_move_lost_module(void)
{
	struct rp_move *m, *tmp;
	struct rp_conn *c;

	list_for_each_safe(m, tmp, &rp_moves, node) {
		if (m->state == MOVE_PARKED || m->state == MOVE_CONNECT)
			continue;
		list_for_each(c, &rp_conns, node)
			if (rp_move_has(m, c->ctx) && c->moving)
				conn_lost(c);
		rp_move_open_gates(m);
		rp_move_end(m);
	}
	rp_cycle_lost_module();
	/* The ends of others' moves. */
	list_for_each(c, &rp_conns, node)
		if (c->moving && !c->ctx->move)
			conn_lost(c);
	rp_conns_lost_module();
	rp_resolve_lost_module();
}

/*
 * What the child has inherited are the parent's objects, through the parent's descriptors: a move of
 * either process must not release or recreate them from here. What they were made of may have been
 * in the middle of a change: nothing is freed.
 */
void rp_move_forked(void)
{
	struct rp_context *ctx, *tmp;

	rp_conns_forked();
	rp_peer_forked();
	rp_resolve_forked();
	rp_keys_forked();
	list_init(&rp_moves);
	rp_away_forked();
	atomic_store(&rp_contexts_lock.word, 0);
	list_for_each_safe(ctx, tmp, &rp_contexts, node) {
		ctx->move = NULL;
		list_del(&ctx->node);
	}
}
