// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random networks of 8-port switches with queues by output (sm/voq.h), or with as many virtual networks
 * of which each packet takes any: a line of JSON for the service levels, if there are any (how many crossings
 * have a queue, of how many), and one for each load, with what is accepted and what of that at hot spots. In virtual
 * time, without OpenSM.
 *
 *	voqsw SWITCHES SEED SLS VLS LOAD... [hot=PERCENT] [spots=N] [size=BYTES] [even=1] [hosts=1] [free=1]
 *	      [plain=1] [inner=1] [warm=US] [time=US]
 *
 * SLS	0: virtual networks, VLS of them; up to 511 here
 * LOAD	payload, bytes per ns and switch, that hosts offer
 * hot	part of the traffic that goes to hot spots, of which there are N (1)
 * size	of a packet's payload (32)
 * even=1	service levels are spread over paths
 * hosts=1	hosts' tables are part of it
 * plain=1	of several ways tables have the first, and do not use links evenly
 * inner=1	only crossings between switches have queues
 * warm	microseconds before what is measured, and those that are: time
 * free=1	hosts choose the lane by the path, which tables of InfiniBand can not
 */
#include "change.h"
#include "fabric.h"
#include "options.h"
#include "papers.h"
#include "sma.h"
#include "traffic.h"
#include "voq.h"

#define US	1000000ull
#define HOSTS	4	/* of a switch */
#define BUFFER	1024	/* bytes that a lane's input has */
#define HEADERS	26	/* LRH, BTH, ICRC, VCRC */

static struct {
	unsigned int switches, seed, sls, vls;
	unsigned int spots, size, even, hosts, free;
	unsigned int plain, warm, time, inner;
	double hot;
} want = { .spots = 1, .size = 32, .warm = 1000, .time = 1000 };

static void set_lanes(struct fabric *f, uint32_t node, const struct rsm_voq *voq, uint32_t sw)
{
	struct node *n = &f->nodes[node];

	for (unsigned int in = 1; in <= n->nports; in++)
		for (unsigned int out = 1; out <= n->nports; out++)
			for (unsigned int sl = 0; sl < f->config.sls; sl++)
				n->sl2vl[(in * (n->nports + 1) + out) * f->config.sls + sl] =
					rsm_voq_vl(voq, sw, in, out, sl % want.sls, NULL);
}

static void start_fabric(struct fabric *f, const struct made *made, const struct rsm_voq *voq)
{
	struct fabric_config config = {
		.seed = 1, .vls = want.vls, .sls = want.sls * (want.free ? want.vls : 1),
		.cable_delay = 100000,
	};

	CHECK_EQ(fabric_init(f, &made->net, &config), 0);
	CHECK_EQ(sma_init(f), 0);
	/* Less than the largest packet of InfiniBand, of which there are none here. */
	f->capacity = BUFFER / BLOCK;
	for (uint32_t lane = 0; lane < f->nports * f->config.vls; lane++)
		f->lanes[lane].credits = f->capacity;
	for (uint32_t i = 0; i < made->topo.n_ends; i++) {
		uint32_t port = f->nodes[node_of(f, made->topo.ends[i].guid - 1)].first + 1;

		f->ports[port].lid = made->topo.ends[i].lid;
		f->lids[made->topo.ends[i].lid] = port;
		for (unsigned int sl = 0; voq && sl < want.sls * want.vls; sl++)
			if (want.free || sl < want.sls)
				f->nodes[f->ports[port].node].sl2vl[sl] = want.free ? sl / want.sls :
					rsm_voq_end_vl(voq, i, sl, NULL);
	}
	for (uint32_t i = 0; i < made->topo.n_switches; i++) {
		uint32_t node = node_of(f, made->topo.switches[i].guid);

		for (uint32_t lid = 1; lid < made->routes.n_lft; lid++)
			node_lft_set(f, node, lid, made->routes.lft[i][lid]);
		if (voq)
			set_lanes(f, node, voq, i);
	}
	port_activate_all(f);
}

/* Payload, bytes per ns and switch. */
static double accepted(uint64_t bytes)
{
	return bytes * 1000.0 / (want.time * US) / want.switches * want.size / (want.size + HEADERS);
}

/* Hot spots lie as far from each other as may be, by their numbers. */
static bool is_hot(const struct made *made, uint32_t end)
{
	uint32_t apart = made->topo.n_ends / want.spots;

	return want.hot > 0 && end % apart == apart / 2 && end / apart < want.spots;
}

/* How much of what an end sends goes to another one. */
static double share(const struct made *made, uint32_t from, uint32_t to)
{
	uint32_t others = made->topo.n_ends - 1, spots = want.spots - is_hot(made, from);
	double any = (1 - want.hot) / others;

	if (!want.hot || !spots)
		return 1.0 / others;
	return is_hot(made, to) ? any + want.hot / spots : any;
}

/* With free hosts, what a host's table makes a lane of is above the service level that switches know. */
static unsigned int level(const struct made *made, const struct rsm_voq *voq, uint32_t from, uint32_t to)
{
	const struct rsm_topo_end *end = &made->topo.ends[from];
	uint16_t lid = made->topo.ends[to].lid;
	unsigned int lane = rsm_voq_port_vl(voq, end->leaf, made->routes.lft[end->leaf][lid], 0);

	return rsm_voq_sl(voq, from, lid) + (want.free ? lane * want.sls : 0);
}

/*
 * A source for each lane of a host, out of which packets go in the order in which they have come into being,
 * wherever to. Virtual networks: each lane has the same packets.
 */
static void send_by(struct fabric *f, const struct made *made, const struct rsm_voq *voq, uint32_t from,
		    unsigned int lane, double load)
{
	uint32_t port = f->lids[made->topo.ends[from].lid];
	struct flow_spec spec = {
		.from = port, .pattern = FLOW_MIXED, .size = want.size + HEADERS, .poisson = 1,
		.aims = calloc(made->topo.n_ends, sizeof(*spec.aims)),
	};
	double sum = 0;

	CHECK(spec.aims);
	for (uint32_t to = 0; to < made->topo.n_ends; to++) {
		unsigned int sl = voq ? level(made, voq, from, to) : lane;

		if (from == to || f->nodes[f->ports[port].node].sl2vl[sl] != lane)
			continue;
		sum += share(made, from, to);
		spec.aims[spec.n_aims++] = (struct flow_aim) { f->lids[made->topo.ends[to].lid], sl, sum };
	}
	for (uint32_t i = 0; i < spec.n_aims; i++)
		spec.aims[i].until /= sum;
	spec.gbps = load * 8 / HOSTS * (want.size + HEADERS) / want.size * (voq ? sum : sum / want.vls);
	if (spec.n_aims)
		CHECK(traffic_add(f, &spec) != NONE);
	else
		free(spec.aims);
}

static void send(struct fabric *f, const struct made *made, const struct rsm_voq *voq, double load)
{
	for (uint32_t from = 0; from < made->topo.n_ends; from++)
		for (unsigned int lane = 0; lane < want.vls; lane++)
			send_by(f, made, voq, from, lane, load);
}

/* Bytes that hot hosts have received. */
static uint64_t at_hot(const struct fabric *f, const struct made *made)
{
	uint64_t bytes = 0;

	for (uint32_t end = 0; end < made->topo.n_ends; end++)
		if (is_hot(made, end))
			bytes += f->ports[f->lids[made->topo.ends[end].lid]].counters.rcv_bytes;
	return bytes;
}

static void run(const struct made *made, const struct rsm_voq *voq, double load)
{
	struct traffic *t;
	struct fabric f;
	uint32_t cycle[64];
	uint64_t hot;

	start_fabric(&f, made, voq);
	send(&f, made, voq, load);
	fabric_run(&f, want.warm * US);
	CHECK_EQ(traffic_measure(&f, 0), 0);
	hot = at_hot(&f, made);
	fabric_run(&f, (want.warm + want.time) * US);
	hot = at_hot(&f, made) - hot;
	t = f.traffic;
	printf("{\"switches\": %u, \"seed\": %u, \"sls\": %u, \"vls\": %u, \"hot\": %.2f, "
	       "\"spots\": %u, \"load\": %.4f, \"accepted\": %.5f, \"at_hot\": %.5f, "
	       "\"latency_ns\": %.0f, \"deadlock\": %u}\n", want.switches, want.seed, want.sls,
	       want.vls, want.hot, want.spots, load, accepted(t->bytes), accepted(hot),
	       t->latency.n ? t->latency.sum / 1000.0 / t->latency.n : 0,
	       deadlock_find(&f, cycle, 64));
	fflush(stdout);
	sma_free(&f);
	fabric_free(&f);
}

struct share {
	uint32_t all, queued;
};

/* Crossings that come from a switch, and of them those that go to one, which are between switches alone. */
static void count_crossings(const struct rsm_voq *voq, struct share *from, struct share *between)
{
	const struct rsm_topo_switch *switches = voq->spec.topo->switches;

	for (uint32_t sw = 0; sw < want.switches; sw++)
		for (unsigned int in = 1; in < switches[sw].n_ports; in++)
			for (unsigned int out = 1; out < switches[sw].n_ports; out++) {
				int32_t peer = switches[sw].ports[out].peer;

				if (switches[sw].ports[in].peer < 0 || peer < 0)
					continue;
				for (unsigned int next = 1; next < switches[peer].n_ports; next++) {
					int queued = rsm_voq_queued(voq, sw, in, out, next);
					bool inner = switches[peer].ports[next].peer >= 0;

					from->all += queued >= 0;
					from->queued += queued > 0;
					between->all += inner && queued >= 0;
					between->queued += inner && queued > 0;
				}
			}
}

static void tell_levels(const struct rsm_voq *voq)
{
	struct share from = { 0 }, between = { 0 };

	count_crossings(voq, &from, &between);
	printf("{\"switches\": %u, \"seed\": %u, \"sls\": %u, \"vls\": %u, \"crossings\": [%u, %u], "
	       "\"from_switches\": [%u, %u], \"between_switches\": [%u, %u], \"used_sls\": %u}\n",
	       want.switches, want.seed, want.sls, want.vls, voq->considered, voq->crossings, from.queued,
	       from.all, between.queued, between.all, voq->used_sls);
	fflush(stdout);
}

static void options(int *argc, char **argv)
{
	while (*argc > 5) {
		const char *word = argv[*argc - 1];

		if (sscanf(word, "hot=%lf", &want.hot) == 1)
			want.hot /= 100;
		else if (sscanf(word, "spots=%u", &want.spots) != 1 &&
			 sscanf(word, "size=%u", &want.size) != 1 &&
			 sscanf(word, "even=%u", &want.even) != 1 &&
			 sscanf(word, "hosts=%u", &want.hosts) != 1 &&
			 sscanf(word, "plain=%u", &want.plain) != 1 &&
			 sscanf(word, "warm=%u", &want.warm) != 1 &&
			 sscanf(word, "time=%u", &want.time) != 1 &&
			 sscanf(word, "inner=%u", &want.inner) != 1 &&
			 sscanf(word, "free=%u", &want.free) != 1)
			return;
		(*argc)--;
	}
}

int main(int argc, char **argv)
{
	const struct rsm_options plain = { .updown_even = 0 };
	struct rsm_voq_spec spec = { .layers = 1 };
	struct rsm_voq voq;
	struct made made;
	char text[128];

	options(&argc, argv);
	if (argc < 5) {
		fprintf(stderr, "usage: voqsw SWITCHES SEED SLS VLS LOAD... [hot=PERCENT] [spots=N]\n");
		return 2;
	}
	want.switches = atoi(argv[1]);
	want.seed = atoi(argv[2]);
	want.sls = atoi(argv[3]);
	want.vls = atoi(argv[4]);
	snprintf(text, sizeof(text), "random:%u,degree=4,hosts=%u,seed=%u", want.switches, HOSTS,
		 want.seed);
	made_route(text, NULL, 0, &made);
	if (want.plain) {
		CHECK_EQ(rsm_updown_router.route(&made.topo, &plain, &made.routes, text, sizeof(text)), 0);
		CHECK_EQ(judged(&made.topo, &made.routes, false, NULL), 0);
	}
	slow_links(&made.net);
	if (want.sls) {
		spec.topo = &made.topo;
		spec.lft = made.routes.lft;
		spec.n_lft = made.routes.n_lft;
		spec.sls = want.sls;
		spec.vls = want.vls;
		spec.even = want.even;
		spec.hosts = want.hosts;
		spec.inner = want.inner;
		if (rsm_voq_make(&spec, &voq, text, sizeof(text))) {
			fprintf(stderr, "voqsw: %s\n", text);
			return 1;
		}
		tell_levels(&voq);
	}
	for (int i = 5; i < argc; i++)
		run(&made, want.sls ? &voq : NULL, atof(argv[i]));
	if (want.sls)
		rsm_voq_free(&voq);
	made_free(&made);
	return 0;
}
