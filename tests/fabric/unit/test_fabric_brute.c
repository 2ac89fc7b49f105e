// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random subnets with random tables, SLs and SLtoVL tables: the check counts all paths to a LID at
 * once; here each packet is followed alone, and channels' waits are closed transitively.
 */
#include "written.h"

#define ROUNDS	300
#define MOST	(64 * FABRIC_LANES)

static uint64_t state = 7;

static unsigned int dice(unsigned int n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % n;
}

/* Channels are numbered by the order in which paths meet them. */
static struct channel channel[MOST];
static unsigned int channels;
static bool waits[MOST][MOST];

static unsigned int number(const struct fabric_port *out, uint8_t vl)
{
	for (unsigned int i = 0; i < channels; i++)
		if (channel[i].out == out && channel[i].vl == vl)
			return i;
	CHECK(channels < MOST);
	channel[channels] = (struct channel){ out, vl };
	return channels++;
}

struct counted {
	uint64_t pairs, unreached, lost, longer;
	uint64_t *use;			/* as check.flow.use, all lanes together */
};

/* One packet. */
static void follow(const struct fabric *f, const struct check *c, unsigned int slid,
		   unsigned int dlid, struct counted *n)
{
	const struct fabric_port *out = f->lid[slid], *used[64];
	uint8_t sl = fabric_sl(f, slid, dlid), vl = fabric_vl(out, 0, sl);
	unsigned int before, hops = 0, nused = 0;
	bool lost = vl == FABRIC_DISCARD;

	n->pairs++;
	/* First whether it would arrive, lanes apart. */
	for (const struct fabric_port *p = out; p->peer != f->lid[dlid]; hops++) {
		const struct fabric_node *sw = p->peer->node;
		uint8_t entry = fabric_is_switch(sw) ? fabric_entry(sw, dlid) : 0;

		if (!entry || entry > sw->nports || !sw->port[entry].peer || hops > f->switches) {
			n->unreached++;
			return;
		}
		p = &sw->port[entry];
	}
	if (lost) {
		n->lost++;
		return;
	}
	used[nused++] = out;
	before = number(out, vl);
	while (out->peer != f->lid[dlid]) {
		const struct fabric_port *next =
			&out->peer->node->port[fabric_entry(out->peer->node, dlid)];

		vl = fabric_vl(next, out->peer->num, sl);
		if (vl == FABRIC_DISCARD) {
			n->lost++;
			break;
		}
		waits[before][number(next, vl)] = true;
		before = number(next, vl);
		used[nused++] = out = next;
	}
	while (nused--)
		n->use[flow_port(&c->flow, used[nused])]++;
}

static bool any_cycle(void)
{
	for (unsigned int k = 0; k < channels; k++)
		for (unsigned int i = 0; i < channels; i++)
			for (unsigned int j = 0; waits[i][k] && j < channels; j++)
				waits[i][j] |= waits[k][j];
	for (unsigned int i = 0; i < channels; i++)
		if (waits[i][i])
			return true;
	return false;
}

/* Switches in a ring with some chords, a host at each, and tables towards a random neighbour. */
static struct fabric *random_fabric(unsigned int switches, unsigned int wildness)
{
	struct fabric *f = fabric_new();
	unsigned int ports = 5;

	for (unsigned int i = 0; i < switches; i++) {
		struct fabric_node *sw = fabric_add(f, 0x100 + i, true, ports, "S");
		struct fabric_node *host = fabric_add(f, 0x200 + i, false, 1, "H");

		CHECK(fabric_cable(&sw->port[1], &host->port[1]));
		CHECK(fabric_give_lid(f, &host->port[1], 1 + i, 0));
		CHECK(fabric_give_lid(f, &sw->port[0], 101 + i, 0));
	}
	for (unsigned int i = 0; i < switches; i++)
		fabric_cable(&f->sw[i]->port[2], &f->sw[(i + 1) % switches]->port[3]);
	for (unsigned int i = 0; i < switches; i++)
		fabric_cable(&f->sw[i]->port[4], &f->sw[dice(switches)]->port[5]);
	for (unsigned int lid = 1; lid <= switches; lid++) {
		struct ranks r;

		ranks_init(&r, f);
		ranks_of(&r, f, f->sw[lid - 1]);
		for (unsigned int i = 0; i < switches; i++) {
			unsigned int first = dice(4), best = 255;

			/* Any of the ports that lead nearer; now and then any port at all. */
			for (unsigned int p = 0; p < 4; p++) {
				struct fabric_port *out = &f->sw[i]->port[2 + (first + p) % 4];

				if (out->peer && r.hops[out->peer->node->order] < r.hops[i])
					best = out->num;
			}
			if (i == lid - 1)
				best = 1;
			if (dice(100) < wildness)
				best = dice(8) ? 1 + dice(5) : 255;
			fabric_set_entry(f->sw[i], lid, best);
		}
		ranks_free(&r);
	}
	return f;
}

static void random_lanes(struct fabric *f, unsigned int lanes)
{
	for (unsigned int i = 0; i < f->nodes; i++) {
		for (unsigned int out = 1; out <= f->node[i]->nports; out++) {
			for (unsigned int in = 0; in <= f->node[i]->nports; in++) {
				uint8_t vl[FABRIC_LANES];

				for (unsigned int sl = 0; sl < FABRIC_LANES; sl++)
					vl[sl] = dice(60) ? dice(4) ? sl % lanes : dice(lanes) :
						 FABRIC_DISCARD;
				if (dice(3))
					fabric_set_sl2vl(f, &f->node[i]->port[out], in, vl);
			}
		}
	}
	for (unsigned int a = 1; a <= f->switches; a++)
		for (unsigned int b = 1; b <= f->switches; b++)
			if (a != b)
				CHECK(fabric_set_sl(f, a, b, dice(lanes)));
}

static bool round_of(unsigned int round)
{
	static const struct check_wants none;
	struct fabric *f = random_fabric(3 + dice(8), round % 3 ? 0 : 3);
	struct counted n = { };
	struct check c;
	bool cyclic;

	if (round % 4)
		random_lanes(f, 1 + dice(4));
	check_run(&c, f, &none);
	channels = 0;
	memset(waits, 0, sizeof(waits));
	n.use = fabric_alloc(c.flow.ports, sizeof(*n.use));
	for (unsigned int a = 1; a <= f->switches; a++)
		for (unsigned int b = 1; b <= f->switches; b++)
			if (a != b)
				follow(f, &c, a, b, &n);
	CHECK_EQ(c.pairs, n.pairs);
	CHECK_EQ(c.unreached, n.unreached);
	CHECK_EQ(c.flow.lost, n.lost);
	for (unsigned int i = 0; i < c.flow.ports; i++)
		CHECK_EQ(c.flow.use[i].paths, n.use[i]);
	/* What is told of a cycle is true: each of its channels waits for the next. */
	for (unsigned int i = 0; i < c.ncycles; i++) {
		const struct cycle *cycle = &c.cycles[i];

		for (unsigned int j = 0; j < cycle->length; j++) {
			const struct channel *a = &cycle->channel[j];
			const struct channel *b = &cycle->channel[(j + 1) % cycle->length];

			CHECK(waits[number(a->out, a->vl)][number(b->out, b->vl)]);
			CHECK(cycle->wait[j].dlid);
		}
	}
	cyclic = any_cycle();
	CHECK_EQ(c.ncycles > 0, cyclic);
	check_free(&c);
	fabric_free(f);
	free(n.use);
	return cyclic;
}

int main(void)
{
	unsigned int cyclic = 0;

	for (unsigned int round = 0; round < ROUNDS; round++)
		cyclic += round_of(round);
	/* Both kinds were there. */
	CHECK(cyclic > ROUNDS / 10 && cyclic < ROUNDS * 9 / 10);
	return 0;
}
