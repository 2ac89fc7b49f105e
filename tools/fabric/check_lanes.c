// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Lanes: credit loops, what SLtoVL drops, and SLs that differ by direction. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "check.h"

static const char *name_of(const struct fabric *f, unsigned int lid)
{
	return f->lid[lid] ? f->lid[lid]->node->name : "nobody";
}

/* "S1 port 2 VL 0 waits for S2 port 4 VL 0 (path from H1 LID 1 to H5 LID 5, SL 0), which ..." */
static void tell_cycle(struct check *c, const struct cycle *cycle)
{
	char *text = NULL;
	size_t room = 0;
	FILE *to = open_memstream(&text, &room);

	if (!to)
		abort();
	for (unsigned int i = 0; i < cycle->length; i++) {
		const struct channel *ch = &cycle->channel[(i + 1) % cycle->length];
		const struct wait *w = &cycle->wait[i];

		fprintf(to, "%s waits for %s port %u VL %u", i ? ", which" : "", ch->out->node->name,
			ch->out->num, ch->vl);
		if (w->dlid)
			fprintf(to, " (path from %s LID %u to %s LID %u, SL %u)",
				name_of(c->f, w->slid), w->slid, name_of(c->f, w->dlid), w->dlid,
				w->sl);
	}
	fclose(to);
	check_tell(c, "credit-loop", true, cycle->knot, c->f->has_sl ?
		   "choose a routing engine that needs no more lanes than there are (OpenSM: updn,"
		   " lash, dfsssp), with QoS on (-Q) if it uses lanes, and see that SLs and SLtoVL"
		   " tables are those of this engine" :
		   "no SLs of paths are known, all were taken for the same: if the routing engine"
		   " uses lanes, add a file of lines \"slid dlid sl\"; else choose another engine"
		   " (OpenSM: updn, lash, dfsssp)",
		   "packets can wait for each other for ever: %s port %u VL %u%s; %u lanes of links"
		   " are tangled in this", cycle->channel[0].out->node->name,
		   cycle->channel[0].out->num, cycle->channel[0].vl, text, cycle->knot);
	free(text);
}

static void tell_cycles(struct check *c)
{
	c->ncycles = cycles_find(&c->flow, &c->cycles);
	for (unsigned int i = 0; i < c->ncycles && i < TOLD; i++)
		tell_cycle(c, &c->cycles[i]);
	if (c->ncycles > TOLD)
		check_tell(c, "credit-loop", true, c->ncycles - TOLD, "mend the others first",
			   "%u more credit loops", c->ncycles - TOLD);
}

static void tell_drop(struct check *c, const struct fabric_node *sw, unsigned int in,
		      unsigned int out, const struct turn *t)
{
	char sls[64] = "";
	size_t n = 0;

	for (unsigned int sl = 0; sl < FABRIC_LANES; sl++)
		if (t->dropped >> sl & 1)
			n += snprintf(sls + n, sizeof(sls) - n, " %u", sl);
	check_tell(c, "discard", true, t->lost,
		   "give the SL a lane that the link has in this SLtoVL table, or give the paths"
		   " another SL",
		   "switch %s drops what comes by port %u and leaves by port %u with SL%s: %lu paths,"
		   " as to %s (LID %u)", sw->name, in, out, sls, t->lost, name_of(c->f, t->lid),
		   t->lid);
}

static void tell_drops(struct check *c)
{
	const struct flow *l = &c->flow;
	const struct fabric *f = c->f;
	unsigned int told = 0, more = 0;
	uint64_t paths = 0;

	if (l->lost_at_host)
		check_tell(c, "discard", true, l->lost_at_hosts,
			   "give the SL a lane in the host's SLtoVL table, or give its paths another SL",
			   "hosts drop %lu paths that they would send: as %s with SL %u",
			   l->lost_at_hosts, l->lost_at_host->node->name, l->lost_sl);
	for (unsigned int i = 0; l->lost && i < f->switches; i++) {
		unsigned int side = f->sw[i]->nports + 1;

		for (unsigned int t = 0; t < side * side; t++) {
			const struct turn *turn = l->turn[i][t];

			if (!turn || !turn->dropped)
				continue;
			if (told++ < TOLD) {
				tell_drop(c, f->sw[i], t / side, t % side, turn);
			} else {
				more++;
				paths += turn->lost;
			}
		}
	}
	if (more)
		check_tell(c, "discard", true, paths, "mend the others first",
			   "%lu paths are dropped at %u more places", paths, more);
}

static void tell_asymmetry(struct check *c, const struct check_wants *wants)
{
	const struct fabric *f = c->f;
	unsigned int a_lid = 0, b_lid = 0;

	for (unsigned int a = 1; f->has_sl && a < f->lids; a++) {
		if (!f->lid[a] || fabric_is_switch(f->lid[a]->node))
			continue;
		for (unsigned int b = 1; b < a; b++) {
			if (!f->lid[b] || fabric_is_switch(f->lid[b]->node) ||
			    fabric_sl(f, a, b) == fabric_sl(f, b, a) ||
			    fabric_sl(f, a, b) == FABRIC_NO_SL ||
			    fabric_sl(f, b, a) == FABRIC_NO_SL)
				continue;
			c->asymmetric++;
			a_lid = a;
			b_lid = b;
		}
	}
	if (c->asymmetric)
		check_tell(c, "asymmetric", wants->symmetric, c->asymmetric,
			   "a program that answers with the SL it was asked with sends in a lane that"
			   " the routing engine has not foreseen",
			   "%lu pairs of LIDs have another SL for the way back: as %s (LID %u) to %s"
			   " (LID %u) %u, back %u", c->asymmetric, name_of(f, a_lid), a_lid,
			   name_of(f, b_lid), b_lid, fabric_sl(f, a_lid, b_lid),
			   fabric_sl(f, b_lid, a_lid));
}

void check_lanes(struct check *c, const struct check_wants *wants)
{
	tell_cycles(c);
	tell_drops(c);
	tell_asymmetry(c, wants);
}
