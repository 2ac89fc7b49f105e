// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The whole check: one walk for each LID feeds all that is counted. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"

void check_tell(struct check *c, const char *kind, bool wrong, uint64_t count, const char *then,
		const char *format, ...)
{
	struct fault fault = { .kind = kind, .wrong = wrong, .count = count };
	va_list ap;
	unsigned int at;

	va_start(ap, format);
	if (vasprintf(&fault.what, format, ap) < 0)
		abort();
	va_end(ap);
	fault.then = strdup(then);
	if (!fault.then)
		abort();
	if (!(c->faults & (c->faults - 1))) {
		struct fault *more = fabric_alloc(c->faults ? 2ul * c->faults : 1, sizeof(*more));

		if (c->faults)
			memcpy(more, c->fault, c->faults * sizeof(*more));
		free(c->fault);
		c->fault = more;
	}
	/* Notes behind faults, else in the order in which they are found. */
	for (at = c->faults++; at && wrong && !c->fault[at - 1].wrong; at--)
		c->fault[at] = c->fault[at - 1];
	c->fault[at] = fault;
}

bool check_failed(const struct check *c)
{
	return c->faults && c->fault[0].wrong;
}

static void count_nodes(struct check *c)
{
	const struct fabric *f = c->f;
	unsigned int ends = 0, no_table = 0, no_lid = 0;

	for (unsigned int i = 0; i < f->nodes; i++) {
		const struct fabric_node *n = f->node[i];

		if (fabric_is_switch(n) && !n->table && no_table++ < TOLD)
			check_tell(c, "no-table", true, 1,
				   "add the file with the forwarding tables, or read it again",
				   "nothing is known of the forwarding table of switch %s", n->name);
		for (unsigned int p = 1; p <= n->nports; p++) {
			const struct fabric_port *port = &n->port[p];

			ends += port->peer != NULL;
			c->hosts += port->peer && port->lid && !fabric_is_switch(n);
			if (port->peer && !port->lid && !fabric_is_switch(n) && no_lid++ < TOLD)
				check_tell(c, "no-lid", true, 1,
					   "see in OpenSM's log why the port got none",
					   "port %u of host %s has a cable and no LID", p, n->name);
		}
	}
	if (no_table > TOLD)
		check_tell(c, "no-table", true, no_table - TOLD, "add the file with the forwarding tables, or read it again",
			   "nothing is known of the forwarding tables of %u more switches", no_table - TOLD);
	if (no_lid > TOLD)
		check_tell(c, "no-lid", true, no_lid - TOLD, "see in OpenSM's log why the ports got none",
			   "%u more ports of hosts have a cable and no LID", no_lid - TOLD);
	c->cables = ends / 2;
}

static void count_balance(struct check *c)
{
	const struct fabric *f = c->f;
	uint64_t sum = 0;

	c->least = UINT64_MAX;
	for (unsigned int pass = 0; pass < 2; pass++) {
		for (unsigned int i = 0; i < f->switches; i++) {
			for (unsigned int p = 1; p <= f->sw[i]->nports; p++) {
				const struct fabric_port *out = &f->sw[i]->port[p];
				const struct link_use *u = &c->flow.use[flow_port(&c->flow, out)];

				if (!out->peer || !fabric_is_switch(out->peer->node))
					continue;
				if (pass) {
					if (c->most)
						c->bins[u->paths * (CHECK_BINS - 1) / c->most]++;
					continue;
				}
				c->used += u->paths > 0;
				c->unused += !u->paths;
				sum += u->paths;
				if (u->paths > c->most)
					c->most = u->paths;
				if (u->paths && u->paths < c->least)
					c->least = u->paths;
				for (unsigned int vl = 0; vl < FABRIC_LANES; vl++)
					c->lanes |= (u->lane[vl] > 0) << vl;
			}
		}
	}
	if (!c->used)
		c->least = 0;
	if (c->used + c->unused)
		c->mean = (double)sum / (c->used + c->unused);
}

void check_run(struct check *c, const struct fabric *f, const struct check_wants *wants)
{
	memset(c, 0, sizeof(*c));
	c->f = f;
	flow_init(&c->flow, f);
	count_nodes(c);
	if (f->unanswered)
		check_tell(c, "unanswered", true, f->unanswered,
			   "see which nodes do not answer, as ibdiagnet and ibping tell, and check again",
			   "%u questions about nodes, tables and paths were not answered: what is told here is"
			   " not the whole", f->unanswered);
	if (f->unread)
		check_tell(c, "unread", false, f->unread, "load and waits of those ports are not told",
			   "%u questions about counters were not answered", f->unread);
	check_reach(c, wants);
	count_balance(c);
	check_lanes(c, wants);
	if (wants->partitions)
		check_isolation(c, wants);
}

void check_free(struct check *c)
{
	for (unsigned int i = 0; i < c->faults; i++) {
		free(c->fault[i].what);
		free(c->fault[i].then);
	}
	free(c->fault);
	for (size_t i = 0; c->users && i < (size_t)c->flow.ports * FABRIC_LANES; i++)
		free(c->users[i]);
	free(c->users);
	cycles_free(c->cycles, c->ncycles);
	flow_free(&c->flow);
}
