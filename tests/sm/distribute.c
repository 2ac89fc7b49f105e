// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A fabric of vfabric loses or gets a switch while its hosts send, and the new tables are distributed
 * (sm/plan.h): a line of JSON says what that cost. In virtual time, without OpenSM.
 *
 *	distribute SWITCHES SEED CHANGE SWITCH HOW LOAD [ENTRIES [SERIES]]
 *
 * CHANGE	add or remove
 * SWITCH	its number, from 0 on
 * HOW		dynamic, static, ports or turns
 * LOAD		percent of what the whole fabric carries; 0: as fast as it goes, in small buffers
 * ENTRIES	all of the tables, which are that long, are sent; 0: the blocks that differ, as OpenSM does
 * SERIES	microseconds between samples, printed as lines of their own
 */
#include "change.h"
#include "fabric.h"
#include "fault.h"
#include "papers.h"
#include "sma.h"
#include "traffic.h"

#define US	     1000000ull
#define PACKET	     (256 + 30) /* with headers */
#define WARM_UP	     (2000 * US)
#define SETTLE	     (500 * US)
#define WINDOW	     4		/* SMPs on the way, as OpenSM's default */
#define SM_TIME	     (10 * US)	/* that the SM takes for an SMP */
#define AGENT_TIME   (20 * US)
#define HOP_TIME     (US / 2)
#define DRAIN_TIME   (100 * US)	/* of RSM_STEP_WAIT: many times what a packet takes through */
#define ENDLESS	     (20000 * US)

static const char *const words[] = { "dynamic", "static", "ports", "turns" };

/* An SMP, and when it is at its switch. */
struct arrival {
	uint64_t when;
	uint32_t step;
};

struct run {
	struct fabric fabric;
	struct made whole, less;
	const struct made *before, *after;
	uint32_t changing;	/* node of the switch that comes or goes */
	uint64_t answered[WINDOW], clock;
	uint32_t sent, kinds[RSM_STEP_WAIT + 1];
	uint64_t interval, next_sample, bytes;
};

static void set_turn(struct fabric *f, uint32_t node, const struct rsm_step *step)
{
	for (unsigned int sl = 0; sl < 16; sl++)
		relay_set_vl(f, &f->nodes[node], step->in, step->out, sl,
			     step->kind == RSM_STEP_DISCARD ? RSM_VL_DISCARD : sl % f->config.vls);
}

static void set_port(struct fabric *f, uint32_t port, enum port_state state)
{
	if (f->ports[port].up)
		port_set_state(f, port, state);
}

static void take_step(struct run *run, const struct rsm_step *step)
{
	enum port_state state = step->kind == RSM_STEP_PORT_OFF ? PORT_INIT : PORT_ACTIVE;
	const struct rsm_topo *topo = &run->after->topo;
	struct fabric *f = &run->fabric;
	uint32_t node, first = step->block * RSM_LFT_BLOCK;

	if (step->end) {
		set_port(f, f->nodes[node_of(f, topo->ends[step->sw].guid - 1)].first + 1, state);
		return;
	}
	node = node_of(f, topo->switches[step->sw].guid);
	switch (step->kind) {
	case RSM_STEP_PORT_OFF:
	case RSM_STEP_PORT_ON:
		set_port(f, f->nodes[node].first + step->in, state);
		break;
	case RSM_STEP_DISCARD:
	case RSM_STEP_RESTORE:
		set_turn(f, node, step);
		break;
	default:
		for (uint32_t lid = first; lid < first + RSM_LFT_BLOCK && lid < run->after->routes.n_lft;
		     lid++)
			node_lft_set(f, node, lid, run->after->routes.lft[step->sw][lid]);
	}
}

/* The fabric as it is before the change: routed, active, its discards in place. */
static void start_fabric(struct run *run, const struct rsm_turns *discarded, bool small)
{
	struct fabric_config config = { .seed = 1, .vls = small ? 1 : 4, .buffer = small ? 1 : 8192 };
	struct fabric *f = &run->fabric;
	const struct made *made = run->before;

	slow_links(&run->whole.net);
	CHECK_EQ(fabric_init(f, &run->whole.net, &config), 0);
	CHECK_EQ(sma_init(f), 0);
	for (uint32_t i = 0; i < run->whole.topo.n_ends; i++) {
		const struct rsm_topo_end *end = &run->whole.topo.ends[i];
		uint32_t port = f->nodes[node_of(f, end->guid - 1)].first + 1;

		f->ports[port].lid = end->lid;
		f->lids[end->lid] = port;
	}
	for (uint32_t i = 0; i < made->topo.n_switches; i++)
		for (uint32_t lid = 1; lid < made->routes.n_lft; lid++)
			node_lft_set(f, node_of(f, made->topo.switches[i].guid), lid,
				     made->routes.lft[i][lid]);
	for (uint32_t i = 0; i < discarded->n; i++)
		set_turn(f, node_of(f, discarded->turns[i].guid),
			 &(struct rsm_step) { .kind = RSM_STEP_DISCARD, .in = discarded->turns[i].in,
					      .out = discarded->turns[i].out });
	if (run->before == &run->less)
		CHECK_EQ(node_down(f, run->changing), 0);
	port_activate_all(f);
}

static void stop_fabric(struct run *run)
{
	sma_free(&run->fabric);
	fabric_free(&run->fabric);
}

/* Every host sends to all others. @gbps: a host's mean rate, or 0. */
static void send(struct run *run, double gbps)
{
	struct fabric *f = &run->fabric;

	for (uint32_t port = 0; port < f->nports; port++) {
		struct flow_spec spec = { .from = port, .pattern = FLOW_UNIFORM, .size = PACKET,
					  .gbps = gbps, .poisson = 1, .spread = 16 };

		if (!f->ports[port].is_switch && f->ports[port].num && f->ports[port].up)
			CHECK(traffic_add(f, &spec) != NONE);
	}
}

static uint64_t lost(const struct run *run)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < NDROPS; i++)
		sum += run->fabric.drops[i];
	return sum;
}

/* Runs the model, with samples of what has been so far. */
static void go_on(struct run *run, uint64_t until)
{
	struct fabric *f = &run->fabric;

	while (run->interval && run->next_sample <= until) {
		fabric_run(f, run->next_sample);
		printf("{\"us\": %.1f, \"smps\": %u, \"lost\": %llu, \"gbps\": %.4f}\n",
		       run->next_sample * 1e-6, run->sent, (unsigned long long)lost(run),
		       (f->traffic->bytes - run->bytes) * 8000.0 / run->interval);
		run->bytes = f->traffic->bytes;
		run->next_sample += run->interval;
	}
	fabric_run(f, until);
}

/* What a host of this fabric gets when all send as fast as it goes. */
static double saturation(struct run *run)
{
	static const struct rsm_turns nothing;
	struct traffic *t;
	double gbps;

	start_fabric(run, &nothing, false);
	send(run, 0);
	fabric_run(&run->fabric, WARM_UP);
	CHECK_EQ(traffic_measure(&run->fabric, 0), 0);
	fabric_run(&run->fabric, 3 * WARM_UP);
	t = run->fabric.traffic;
	gbps = t->bytes * 8000.0 / (2 * WARM_UP) / t->nflows;
	stop_fabric(run);
	return gbps;
}

/* Hops from the SM, a host of the first switch, to all switches. */
static void find_hops(const struct rsm_topo *topo, uint32_t *hops)
{
	bool again = true;

	for (uint32_t i = 0; i < topo->n_switches; i++)
		hops[i] = i ? topo->n_switches : 1;
	while (again) {
		again = false;
		for (uint32_t i = 0; i < topo->n_switches; i++) {
			for (unsigned int port = 1; port < topo->switches[i].n_ports; port++) {
				int32_t peer = topo->switches[i].ports[port].peer;

				if (peer < 0 || hops[peer] <= hops[i] + 1)
					continue;
				hops[peer] = hops[i] + 1;
				again = true;
			}
		}
	}
}

static int by_time(const void *a, const void *b)
{
	const struct arrival *one = a, *other = b;

	if (one->when != other->when)
		return one->when < other->when ? -1 : 1;
	return (one->step > other->step) - (one->step < other->step);
}

/* One kind of steps: all are answered at its end. */
static void distribute_kind(struct run *run, const struct rsm_plan *plan, uint32_t first,
			    uint32_t end, const uint32_t *hops)
{
	struct arrival *arrivals = calloc(end - first, sizeof(*arrivals));
	const struct rsm_topo *topo = &run->after->topo;
	uint64_t last = run->clock;

	CHECK(arrivals);
	for (uint32_t i = first; i < end; i++) {
		const struct rsm_step *step = &plan->steps[i];
		uint32_t far = step->end ? hops[topo->ends[step->sw].leaf] + 1 : hops[step->sw];
		uint64_t *slot = &run->answered[(i - first) % WINDOW];

		if (*slot > run->clock)
			run->clock = *slot;
		run->clock += SM_TIME;
		arrivals[i - first] = (struct arrival) { run->clock + far * HOP_TIME + AGENT_TIME, i };
		*slot = arrivals[i - first].when + far * HOP_TIME;
		if (*slot > last)
			last = *slot;
	}
	qsort(arrivals, end - first, sizeof(*arrivals), by_time);
	for (uint32_t i = 0; i < end - first; i++) {
		go_on(run, arrivals[i].when);
		take_step(run, &plan->steps[arrivals[i].step]);
		run->kinds[plan->steps[arrivals[i].step].kind]++;
		run->sent++;
	}
	run->clock = last;
	go_on(run, last);
	free(arrivals);
}

static void distribute(struct run *run, const struct rsm_plan *plan)
{
	uint32_t *hops = calloc(run->after->topo.n_switches + 1, sizeof(*hops));

	CHECK(hops);
	find_hops(&run->after->topo, hops);
	for (uint32_t first = 0, end; first < plan->n; first = end) {
		for (end = first; end < plan->n && plan->steps[end].kind == plan->steps[first].kind;)
			end++;
		if (plan->steps[first].kind != RSM_STEP_WAIT) {
			distribute_kind(run, plan, first, end, hops);
			continue;
		}
		run->clock += DRAIN_TIME;
		run->kinds[RSM_STEP_WAIT]++;
		go_on(run, run->clock);
	}
	free(hops);
}

/* SMPs that tell the SM what there is: four of a switch, two of each port and host. */
static uint64_t discovery(const struct rsm_topo *topo)
{
	uint64_t smps = 0;

	for (uint32_t i = 0; i < topo->n_switches; i++)
		smps += 4 + 2 * (topo->switches[i].n_ports - 1);
	return (smps + 2 * topo->n_ends) * SM_TIME;
}

/* Its new ports carry data at once: nobody's route leads there yet. */
static void change(struct run *run)
{
	struct fabric *f = &run->fabric;

	if (run->after == &run->less) {
		CHECK_EQ(node_down(f, run->changing), 0);
		return;
	}
	CHECK_EQ(node_up(f, run->changing), 0);
	for (unsigned int port = 1; port <= f->nodes[run->changing].nports; port++) {
		uint32_t at = f->nodes[run->changing].first + port;

		if (f->ports[at].peer == NONE)
			continue;
		port_set_state(f, at, PORT_ACTIVE);
		port_set_state(f, f->ports[at].peer, PORT_ACTIVE);
	}
}

static void report(struct run *run, enum rsm_distribution how, double gbps, uint64_t began,
		   const uint64_t *drops, uint64_t before)
{
	uint32_t cycle[64];

	printf("{\"how\": \"%s\", \"smps\": %u, \"off\": %u, \"discard\": %u, \"restore\": %u, "
	       "\"lft\": %u, \"on\": %u, \"waits\": %u, \"us\": %.1f, \"host_gbps\": %.4f, ",
	       words[how], run->sent, run->kinds[RSM_STEP_PORT_OFF], run->kinds[RSM_STEP_DISCARD],
	       run->kinds[RSM_STEP_RESTORE], run->kinds[RSM_STEP_LFT], run->kinds[RSM_STEP_PORT_ON],
	       run->kinds[RSM_STEP_WAIT], (run->clock - began) * 1e-6, gbps);
	printf("\"lost_before\": %llu", (unsigned long long)before);
	for (unsigned int i = 0; i < NDROPS; i++)
		if (run->fabric.drops[i] > drops[i])
			printf(", \"%s\": %llu", drop_name[i],
			       (unsigned long long)(run->fabric.drops[i] - drops[i]));
	printf(", \"lost\": %llu, ", (unsigned long long)(lost(run) - before));
	traffic_stop(&run->fabric);
	fabric_run(&run->fabric, run->fabric.clock.now + ENDLESS);
	printf("\"deadlock\": %u}\n", deadlock_find(&run->fabric, cycle, 64));
}

static int word(const char *text)
{
	for (int how = 0; how < 4; how++)
		if (!strcmp(text, words[how]))
			return how;
	fprintf(stderr, "dynamic, static, ports or turns, not %s\n", text);
	exit(2);
}

static void made_pair(struct run *run, const char **argv, uint32_t entries)
{
	uint32_t number = atoi(argv[4]);
	char spec[64];

	snprintf(spec, sizeof(spec), "random:%s,degree=3,hosts=1,seed=%s", argv[1], argv[2]);
	made_route(spec, NULL, entries, &run->whole);
	CHECK(number < run->whole.topo.n_switches);
	made_route(spec, &run->whole.topo.switches[number], entries, &run->less);
	run->before = strcmp(argv[3], "add") ? &run->whole : &run->less;
	run->after = strcmp(argv[3], "add") ? &run->less : &run->whole;
}

int main(int argc, const char **argv)
{
	static const struct rsm_turns nothing;
	const struct rsm_turns *discarded = &nothing;
	uint64_t drops[NDROPS], before = 0, began;
	struct run run = { .clock = WARM_UP };
	enum rsm_distribution how;
	struct rsm_plan plan;
	double load, gbps;
	uint32_t entries;

	if (argc < 7) {
		fprintf(stderr, "usage: distribute SWITCHES SEED CHANGE SWITCH HOW LOAD "
			"[ENTRIES [SERIES]]\n");
		return 2;
	}
	how = word(argv[5]);
	load = atof(argv[6]);
	entries = argc > 7 ? atoi(argv[7]) : 0;
	made_pair(&run, argv, entries);
	if (how == RSM_DISTRIBUTE_TURNS)
		discarded = &run.before->turns;
	/* The number is that of the whole fabric's, by GUID; vfabric has nodes of its own. */
	for (uint32_t i = 0; i < run.whole.net.n; i++)
		if (run.whole.net.nodes[i].guid == run.whole.topo.switches[atoi(argv[4])].guid)
			run.changing = i;
	gbps = load > 0 ? saturation(&run) * load / 100 : 0;
	made_plan(run.before, run.after, discarded, how, entries > 0, &plan);
	start_fabric(&run, discarded, !load);
	send(&run, gbps);
	CHECK_EQ(traffic_measure(&run.fabric, 0), 0);
	if (argc > 8) {
		run.interval = atof(argv[8]) * US;
		run.next_sample = run.interval;
	}
	go_on(&run, WARM_UP);
	change(&run);
	run.clock += discovery(&run.after->topo);
	go_on(&run, run.clock);
	began = run.clock;
	memcpy(drops, run.fabric.drops, sizeof(drops));
	before = lost(&run);
	distribute(&run, &plan);
	go_on(&run, run.clock + SETTLE);
	report(&run, how, gbps, began, drops, before);
	stop_fabric(&run);
	rsm_plan_free(&plan);
	made_free(&run.less);
	made_free(&run.whole);
	return 0;
}
