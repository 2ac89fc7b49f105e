// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The peers are being told where this process is now, and the administrator chooses another device: the
 * first one was the wrong one, or has gone again, or goes before all have answered. Who has answered
 * there is left as on any move; who has not is told the new place only.
 */
#include <stdio.h>

#include "move.h"
#include "recreate.h"

void rp_elsewhere_resume(struct rp_move *m, uint32_t dev_index, const char *name)
{
	if (m->state == MOVE_CONNECT && dev_index == m->dev_index) {	/* go on */
		rp_ctl_reply(m->op, REPATH_STAGE_OPEN, 0, NULL, NULL);
		rp_ctl_reply(m->op, REPATH_STAGE_RECREATE, 0, NULL, NULL);
		m->connect_told = false;
		return;
	}
	m->next_index = dev_index;
	snprintf(m->next_name, sizeof(m->next_name), "%s", name);
	m->state = MOVE_AGAIN;
}

/* true: nothing more comes to, or goes from, the queue pair that it has. */
static bool has_stopped(struct rp_conn *c)
{
	if (c->aborting)	/* another path, which it helps the peer to: the answer opens the gate */
		return false;
	if (c->usable && !c->dead) {
		/* About to be connected, here or as the end of a peer's move: not to be taken back. */
		if (c->informed || !c->mover)
			return false;
		rp_conn_unusable(c);
	} else if (!c->mover && rp_conn_connectable(c->qp)) {
		rp_conn_look(c);
		rp_conn_begin(c, true);
	}
	return !c->moving || c->dead || c->reset || (c->quiet && c->peer_quiet);
}

void rp_elsewhere_step(struct rp_move *m)
{
	bool all = true;
	struct rp_conn *c;

	list_for_each(c, &rp_conns, node)
		if (rp_move_has(m, c->ctx))
			all &= has_stopped(c);
	if (!all)
		return;
	rp_peer_flush();	/* our READY, before the device goes */
	rp_move_release(m);
	rp_move_resume_on(m, m->next_index, m->next_name, REPATH_STAGE_RECREATE);
}
