// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queues by output: whoever has an SL of his own goes into the lane of the port that he leaves the next
 * switch by. Paths are followed here through tables and SLtoVL entries, by hand.
 */
#include <errno.h>

#include "change.h"
#include "check.h"
#include "layers.h"
#include "options.h"
#include "voqsw.h"

struct seen {
	uint64_t hops, right;
};

/* A path's hops between switches; of those, where the lane is that of its port. */
static void follow(const struct made *made, const struct rsm_voq *voq, uint32_t from, uint32_t to,
		   unsigned int layers, unsigned int vls, struct seen *seen)
{
	const struct rsm_topo_end *source = &made->topo.ends[from];
	uint16_t lid = made->topo.ends[to].lid, sl = rsm_voq_sl(voq, from, lid);
	uint32_t at = source->leaf, in = source->leaf_port;
	unsigned int layer = layers > 1 ? (from + to) % layers : 0;

	CHECK_EQ(sl / voq->spec.sls, layer);
	if (voq->spec.hosts && voq->considered == voq->crossings)
		CHECK_EQ(rsm_voq_end_vl(voq, from, sl, NULL),
			 rsm_voq_port_vl(voq, at, made->routes.lft[at][lid], layer));
	CHECK_EQ(rsm_voq_end_vl(voq, from, sl, NULL) % layers, layer);
	for (;;) {
		uint8_t out = made->routes.lft[at][lid];
		const struct rsm_topo_port *port = &made->topo.switches[at].ports[out];
		uint8_t vl = rsm_voq_vl(voq, at, in, out, sl, NULL), next;

		CHECK(vl % layers == layer && vl / layers < vls);
		if (port->peer == RSM_TOPO_END)
			break;
		next = made->routes.lft[port->peer][lid];
		seen->hops++;
		seen->right += vl == rsm_voq_port_vl(voq, port->peer, next, layer);
		if (rsm_voq_queued(voq, at, in, out, next) > 0)
			CHECK_EQ(vl, rsm_voq_port_vl(voq, port->peer, next, layer));
		at = port->peer;
		in = port->peer_port;
	}
}

/* For repath fabric check, which knows 16 SLs. */
static uint8_t sl_of(void *context, uint16_t slid, uint16_t dlid)
{
	const struct rsm_voq *voq = context;
	uint32_t from = 0;

	while (voq->spec.topo->ends[from].lid != slid)
		from++;
	return rsm_voq_sl(voq, from, dlid);
}

/* An SL that there is none of is nobody's. */
static uint8_t vl_of(void *context, int32_t sw, uint16_t in, uint32_t out, uint8_t sl)
{
	const struct rsm_voq *voq = context;

	if (sl >= voq->spec.layers * voq->spec.sls)
		return RSM_VL_DISCARD;
	return sw < 0 ? rsm_voq_end_vl(voq, out, sl, NULL) : rsm_voq_vl(voq, sw, in, out, sl, NULL);
}

static void check_subnet(const struct made *made, struct rsm_voq *voq)
{
	struct rsm_routes routes = {
		.lft = made->routes.lft,
		.n_lft = made->routes.n_lft,
		.context = voq,
		.sl = sl_of,
		.vl = vl_of,
	};

	CHECK_EQ(judged(&made->topo, &routes, false, NULL), 0);
}

static uint8_t two_layers(void *context, uint16_t slid, uint16_t dlid)
{
	const struct made *made = context;
	uint32_t from = 0, to = 0;

	while (made->topo.ends[from].lid != slid)
		from++;
	while (made->topo.ends[to].lid != dlid)
		to++;
	return (from + to) % 2;
}

/* A network with up-down tables, and queues as @spec has them. */
static void make_queues(const char *net, struct rsm_voq_spec *spec, struct made *made, struct rsm_voq *voq)
{
	char why[128];

	made_route(net, NULL, 0, made);
	spec->topo = &made->topo;
	spec->lft = made->routes.lft;
	spec->n_lft = made->routes.n_lft;
	spec->context = made;
	CHECK_EQ(rsm_voq_make(spec, voq, why, sizeof(why)), 0);
}

/* Returns the hops where a packet is in the lane of its port, out of @hops. */
static uint64_t network(const char *net, unsigned int layers, unsigned int sls, unsigned int vls,
			bool even, bool hosts, uint64_t *hops)
{
	struct rsm_voq_spec spec = { .layers = layers, .sls = sls, .vls = vls, .even = even,
				     .hosts = hosts };
	struct seen seen = { 0 };
	struct rsm_voq voq;
	struct made made;

	spec.layer = layers > 1 ? two_layers : NULL;
	make_queues(net, &spec, &made, &voq);
	CHECK(voq.considered <= voq.crossings && voq.used_sls <= sls);
	for (uint32_t from = 0; from < made.topo.n_ends; from++)
		for (uint32_t to = 0; to < made.topo.n_ends; to++)
			if (from != to)
				follow(&made, &voq, from, to, layers, vls, &seen);
	printf("%s, %u x %u SLs, %u VLs: %u of %u crossings, %u SLs, %llu of %llu hops\n", net, layers,
	       sls, vls, voq.considered, voq.crossings, voq.used_sls,
	       (unsigned long long)seen.right, (unsigned long long)seen.hops);
	if (layers * sls <= 16)
		check_subnet(&made, &voq);
	rsm_voq_free(&voq);
	made_free(&made);
	if (hops)
		*hops = seen.hops;
	return seen.right;
}

/* Without a limit every path has its queue everywhere; with fewer SLs, fewer have. */
static void test_budgets(void)
{
	for (unsigned int seed = 1; seed <= 5; seed++) {
		uint64_t hops, some, few;
		char net[64];

		snprintf(net, sizeof(net), "random:8,degree=4,hosts=4,seed=%u", seed);
		CHECK_EQ(network(net, 1, 128, 8, false, false, &hops), hops);
		CHECK_EQ(network(net, 1, 128, 8, false, true, &hops), hops);
		some = network(net, 1, 8, 8, false, false, NULL);
		few = network(net, 1, 4, 8, false, false, NULL);
		CHECK(few < some && some < hops);
		network(net, 1, 8, 8, true, true, NULL);
		network(net, 1, 4, 4, false, true, NULL);
		network(net, 2, 4, 4, false, true, NULL);
		network(net, 2, 4, 4, true, true, NULL);
		network(net, 1, 1, 8, false, true, NULL);
	}
}

/* Table 1: the service levels of a full VOQ are 12 and 40 in the paper's networks of 8 and 16 switches. */
static void test_full(unsigned int switches, unsigned int seeds, uint16_t least, uint16_t most)
{
	uint16_t seen_least = UINT16_MAX, seen_most = 0;

	for (unsigned int seed = 1; seed <= seeds; seed++) {
		struct rsm_voq_spec spec = { .layers = 1, .sls = 511, .vls = 8 };
		struct rsm_voq voq;
		struct made made;
		char net[64];

		snprintf(net, sizeof(net), "random:%u,degree=4,hosts=4,seed=%u", switches, seed);
		make_queues(net, &spec, &made, &voq);
		CHECK_EQ(voq.considered, voq.crossings);
		seen_least = voq.used_sls < seen_least ? voq.used_sls : seen_least;
		seen_most = voq.used_sls > seen_most ? voq.used_sls : seen_most;
		rsm_voq_free(&voq);
		made_free(&made);
	}
	printf("%u switches: a full VOQ has %u to %u SLs\n", switches, seen_least, seen_most);
	CHECK_EQ(seen_least, least);
	CHECK_EQ(seen_most, most);
}

/* Of a path: those that come from a switch and go to one have queues, others are not there. */
static unsigned int inner_crossings(const struct made *made, const struct rsm_voq *voq, uint32_t from, uint32_t to)
{
	const struct rsm_topo_switch *switches = made->topo.switches;
	uint32_t at = made->topo.ends[from].leaf, in = made->topo.ends[from].leaf_port;
	uint16_t lid = made->topo.ends[to].lid;
	unsigned int n = 0;

	for (;;) {
		uint8_t out = made->routes.lft[at][lid], next;
		int32_t peer = switches[at].ports[out].peer;
		bool inner;

		if (peer < 0)
			return n;
		next = made->routes.lft[peer][lid];
		inner = switches[at].ports[in].peer >= 0 && switches[peer].ports[next].peer >= 0;
		CHECK_EQ(rsm_voq_queued(voq, at, in, out, next), inner ? 1 : -1);
		n += inner;
		in = switches[at].ports[out].peer_port;
		at = peer;
	}
}

static void test_inner(void)
{
	struct rsm_voq_spec spec = { .layers = 1, .sls = 128, .vls = 8, .inner = true };
	unsigned int all, n = 0;
	struct rsm_voq voq;
	struct made made;
	char why[128];

	make_queues("random:16,degree=4,hosts=4,seed=1", &spec, &made, &voq);
	CHECK_EQ(voq.considered, voq.crossings);
	for (uint32_t from = 0; from < made.topo.n_ends; from++)
		for (uint32_t to = 0; to < made.topo.n_ends; to++)
			n += from == to ? 0 : inner_crossings(&made, &voq, from, to);
	CHECK(n > voq.crossings);
	all = voq.used_sls;
	rsm_voq_free(&voq);
	spec.inner = false;
	CHECK_EQ(rsm_voq_make(&spec, &voq, why, sizeof(why)), 0);
	CHECK(all < voq.used_sls);
	rsm_voq_free(&voq);
	made_free(&made);
}

static void test_refuses(void)
{
	struct rsm_options opt = { .voqsw_sls = 8 };
	struct rsm_voq_spec s = { .layers = 2, .sls = 4, .vls = 8 };
	struct made made;
	struct rsm_voq voq;
	char why[128];

	made_route("random:8,degree=3,hosts=1,seed=1", NULL, 0, &made);
	s.topo = &made.topo;
	CHECK_EQ(rsm_voq_make(&s, &voq, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "2 layers of 4 SLs and 8 VLs"));
	CHECK_EQ(rsm_voqsw_router.route(&made.topo, &opt, &made.routes, why, sizeof(why)), 0);
	CHECK(made.routes.sl(made.routes.context, 1, 2) < 8);
	CHECK(made.routes.vl(made.routes.context, 0, 1, 2, 3) < 8);
	CHECK(made.routes.vl(made.routes.context, -1, 0, 2, 7) < 8);
	made.routes.free(made.routes.context);
	made.topo.vls = 0;
	CHECK_EQ(rsm_voqsw_router.route(&made.topo, &opt, &made.routes, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "updown has 1 layers: 8 SLs and 0 VLs are too few"));
	made_free(&made);

	/* Two layers want two lanes: one that is left to them is too few, though there are eight. */
	made_route("tree:4,2", NULL, 0, &made);
	opt = (struct rsm_options) { .voqsw_sls = 8, .voqsw_engine = 1, .vftree_lanes = 2, .voqsw_vls = 1 };
	CHECK_EQ(rsm_voqsw_router.route(&made.topo, &opt, &made.routes, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "vftree has 2 layers: 8 SLs and 1 VLs are too few"));
	opt.voqsw_vls = 2;
	CHECK_EQ(rsm_voqsw_router.route(&made.topo, &opt, &made.routes, why, sizeof(why)), 0);
	CHECK(strstr(made.routes.remark, "no queue: vftree has 2 layers for 8 SLs and 2 VLs"));
	for (uint8_t sl = 0; sl < 8; sl++)
		CHECK_EQ(made.routes.vl(made.routes.context, 0, 1, 2, sl), sl / 4);
	made.routes.free(made.routes.context);
	made_free(&made);
}

/* Every lane up to what the links have or the option lets, and no other. */
static void test_lanes(void)
{
	static const struct { int wanted, lanes; } cases[] = { { 0, 8 }, { 1, 1 }, { 3, 3 }, { 8, 8 }, { 15, 8 } };
	struct made made;

	made_route("random:8,degree=4,hosts=4,seed=1", NULL, 0, &made);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rsm_options opt = { .voqsw_sls = 16, .voqsw_vls = cases[i].wanted };
		unsigned int seen = 0;
		char why[128];

		*made.routes.remark = '\0';
		CHECK_EQ(rsm_voqsw_router.route(&made.topo, &opt, &made.routes, why, sizeof(why)), 0);
		for (uint32_t sw = 0; sw < made.topo.n_switches; sw++)
			for (unsigned int in = 0; in < made.topo.switches[sw].n_ports; in++)
				for (unsigned int out = 1; out < made.topo.switches[sw].n_ports; out++)
					for (uint8_t sl = 0; sl < 16; sl++)
						seen |= 1 << made.routes.vl(made.routes.context, sw, in, out, sl);
		CHECK_EQ(seen, (1u << cases[i].lanes) - 1);
		CHECK_EQ(!strcmp(made.routes.remark, "no queue: updown has 1 layers for 16 SLs and 1 VLs"),
			 cases[i].lanes == 1);
		CHECK_EQ(!*made.routes.remark, cases[i].lanes > 1);
		made.routes.free(made.routes.context);
	}
	made_free(&made);
}

/* A host whose link has fewer of them, and a switch's port to it, keep to those: on others packets are lost. */
static void test_slow_link(bool hosts)
{
	struct rsm_options opt = { .voqsw_sls = 16, .voqsw_hosts = hosts };
	unsigned int to = 0, from = 0;
	struct made made;
	char why[128];

	made_route("random:8,degree=4,hosts=4,seed=1", NULL, 0, &made);
	for (uint32_t i = 0; i < made.topo.n_ends; i++) {
		struct rsm_topo_end *end = &made.topo.ends[i];

		end->vls = made.topo.switches[end->leaf].ports[end->leaf_port].vls = 2;
	}
	CHECK_EQ(rsm_voqsw_router.route(&made.topo, &opt, &made.routes, why, sizeof(why)), 0);
	for (uint32_t i = 0; i < made.topo.n_ends; i++)
		for (uint8_t sl = 0; sl < 16; sl++) {
			const struct rsm_topo_end *end = &made.topo.ends[i];

			from |= 1 << made.routes.vl(made.routes.context, -1, 0, i, sl);
			for (unsigned int in = 0; in < made.topo.switches[end->leaf].n_ports; in++)
				to |= 1 << made.routes.vl(made.routes.context, end->leaf, in, end->leaf_port, sl);
		}
	CHECK_EQ(from, 3);
	CHECK_EQ(to, 3);
	made.routes.free(made.routes.context);
	made_free(&made);
}

/* Two layers on whichever of three lanes the engine says: what a queue adds stays inside of that lane. */
static void test_engines_lanes(void)
{
	struct rsm_voq_spec spec = { .layers = 2, .sls = 8, .vls = 2, .lanes = 3, .layer = two_layers };
	unsigned int seen[3] = { 0 };
	struct made made;
	struct rsm_voq voq;

	make_queues("random:8,degree=4,hosts=4,seed=1", &spec, &made, &voq);
	for (uint8_t lane = 0; lane < 3; lane++)
		for (uint16_t sl = 0; sl < 16; sl++) {
			uint8_t lanes[2] = { lane, (lane + 1) % 3 };

			for (uint32_t sw = 0; sw < made.topo.n_switches; sw++)
				for (unsigned int out = 1; out < made.topo.switches[sw].n_ports; out++) {
					uint8_t vl = rsm_voq_vl(&voq, sw, 0, out, sl, lanes);

					CHECK_EQ(vl % 3, lanes[sl / 8]);
					seen[vl % 3] |= 1 << vl / 3;
				}
			for (uint32_t i = 0; i < made.topo.n_ends; i++)
				CHECK_EQ(rsm_voq_end_vl(&voq, i, sl, lanes) % 3, lanes[sl / 8]);
		}
	CHECK(seen[0] == 3 && seen[1] == 3 && seen[2] == 3);
	rsm_voq_free(&voq);
	made_free(&made);
}

static uint8_t by_both(void *context, uint16_t slid, uint16_t dlid)
{
	const unsigned int *n = context;

	return (slid + dlid) % *n;
}

/* Where a link has fewer VLs for a while OpenSM takes their lowest bits: as long as these tell lanes apart, they do. */
static void test_masked(void)
{
	/* The last would have a queue less in each of three lanes: they come first. */
	static const struct { unsigned int vls, layers, step; } cases[] = {
		{ 8, 2, 2 }, { 8, 3, 4 }, { 8, 4, 4 }, { 8, 5, 8 }, { 4, 2, 2 }, { 15, 4, 4 }, { 15, 3, 3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned int layers = cases[i].layers, step = cases[i].step, mask = step - 1, seen = 0;
		struct rsm_voqsw_base base = { .name = "sums", .sl = by_both, .context = &layers, .layers = layers };
		struct rsm_options opt = { .voqsw_sls = 16, .voqsw_hosts = true };
		struct rsm_voqsw v;
		struct made made;
		char why[128];

		made_route("random:8,degree=4,hosts=4,seed=1", NULL, 0, &made);
		made.topo.vls = cases[i].vls;
		base.lft = made.routes.lft;
		CHECK_EQ(rsm_voqsw_make(&made.topo, &opt, &base, &v, why, sizeof(why)), 0);
		for (uint32_t sw = 0; sw < made.topo.n_switches; sw++)
			for (unsigned int out = 1; out < made.topo.switches[sw].n_ports; out++)
				for (uint8_t sl = 0; made.topo.switches[sw].ports[out].peer >= 0 &&
						     sl < 16 / layers * layers; sl++) {
					uint8_t vl = rsm_voqsw_vl(&v, sw, 1, out, sl, NULL);
					unsigned int layer = sl / (16 / layers);

					CHECK_EQ(vl % step, layer);
					CHECK(step & mask || (vl & mask) == layer);
					seen |= 1 << vl;
				}
		CHECK_EQ((unsigned int)__builtin_popcount(seen), cases[i].vls / layers * layers);
		rsm_voqsw_free(&v);
		made_free(&made);
	}
}

/* As OpenSM's dfsssp, which draws lots: here it is a higher one each time, for 8 at most. */
static uint8_t by_lot(void *context, uint16_t slid, uint16_t dlid)
{
	unsigned int *asked = context;

	(void)slid;
	(void)dlid;
	return (*asked)++ / 16 % 8;
}

static void test_lots(void)
{
	struct rsm_options opt = { .voqsw_sls = 16 };
	unsigned int asked = 0;
	struct rsm_layers layers = { .ask = by_lot, .context = &asked };
	struct rsm_voqsw_base base = { .name = "lots", .sl = rsm_layers_sl, .context = &layers };
	struct rsm_voqsw v;
	struct made made;
	char why[128];

	made_route("mesh:2,hosts=1", NULL, 0, &made);
	CHECK_EQ(rsm_layers_make(&made.topo, &layers), 0);
	base.lft = made.routes.lft;
	base.layers = layers.n;
	CHECK_EQ(rsm_voqsw_make(&made.topo, &opt, &base, &v, why, sizeof(why)), 0);
	for (unsigned int i = 0; i < 1000; i++)
		for (uint16_t from = 0; from <= made.topo.max_lid; from++)
			for (uint16_t to = 0; to <= made.topo.max_lid; to++) {
				uint8_t sl = rsm_voqsw_sl(&v, from, to);

				CHECK(sl < v.voq.spec.layers * v.voq.spec.sls);
				CHECK(v.end_of[from] == UINT32_MAX || sl == rsm_voqsw_sl(&v, from, to));
			}
	rsm_voqsw_free(&v);
	rsm_layers_free(&layers);
	made_free(&made);
}

static uint8_t by_sum(void *context, uint16_t slid, uint16_t dlid)
{
	const unsigned int *highest = context;

	return (slid * 7 + dlid) % (*highest + 1);
}

/* What was said is what was asked, whatever else is in the byte; and as many are too many. */
static void test_layers(void)
{
	unsigned int highest = 15;
	struct rsm_layers layers = { .ask = by_sum, .context = &highest };
	struct made made;
	uint16_t lid;

	made_route("random:8,degree=3,hosts=3,seed=1", NULL, 0, &made);
	CHECK_EQ(rsm_layers_make(&made.topo, &layers), 0);
	CHECK_EQ(layers.n, 16);
	for (uint32_t from = 0; from < made.topo.n_ends; from++)
		for (uint32_t to = 1; to <= made.topo.max_lid; to++) {
			highest = 15;
			lid = made.topo.ends[from].lid;
			if (to != lid) {
				uint8_t said = by_sum(&highest, lid, to);

				highest = 0;
				CHECK_EQ(rsm_layers_sl(&layers, lid, to), said);
			}
		}
	rsm_layers_free(&layers);
	highest = 0;
	layers = (struct rsm_layers) { .ask = by_sum, .context = &highest };
	CHECK_EQ(rsm_layers_make(&made.topo, &layers), 0);
	CHECK_EQ(layers.n, 1);
	rsm_layers_free(&layers);
	lid = made.topo.max_lid;
	made.topo.max_lid = 0xbfff;
	made.topo.n_ends += 0xc000;
	CHECK_EQ(rsm_layers_make(&made.topo, &layers), -E2BIG);
	made.topo.n_ends -= 0xc000;
	made.topo.max_lid = lid;
	made_free(&made);
}

int main(void)
{
	test_budgets();
	test_full(8, 8, 12, 20);
	test_full(16, 8, 44, 48);
	test_inner();
	test_lanes();
	test_slow_link(false);
	test_slow_link(true);
	test_engines_lanes();
	test_masked();
	test_lots();
	test_layers();
	test_refuses();
	return 0;
}
