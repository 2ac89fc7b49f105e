// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Congestion control: a port that is congested itself marks, one that only waits for credits does not;
 * sources slow down and come back; a flow that only shares a cable with them gets more.
 */
#include "congestion.h"
#include "fault.h"
#include "made.h"

#define US 1000000ull
#define LINK 32.0	/* Gbit/s */
#define HOT 3		/* flows to the hot spot; then comes the victim */

static struct net net;
static struct fabric f;

static uint32_t at(const char *id)
{
	return fabric_port(&f, net_find(&net, id), 1);
}

static void add(const char *a, const char *b, unsigned int window)
{
	struct flow_spec s = { .from = at(a), .to = at(b), .window = window };

	CHECK(traffic_add(&f, &s) != NONE);
}

/* H1 to H4 are at one switch, H5 to H8 at the other. */
static void up(unsigned int window)
{
	made_up(&f, &net, "mesh:2,hosts=4", 8);
	add("H2", "H6", window);
	add("H7", "H6", window);
	add("H8", "H6", window);
	add("H1", "H5", window);
}

static void control(unsigned int threshold, unsigned int marking)
{
	struct congestion c = { .threshold = threshold, .marking = marking, .increase = 1,
				.limit = 127, .timer = 20 * US };

	CHECK_EQ(congestion_on(&f, &c), 0);
}

static double gbps(unsigned int flow)
{
	return f.traffic->flows[flow].bytes * 8000.0 / (f.clock.now - f.traffic->since);
}

static double hot(void)
{
	double sum = 0;

	for (unsigned int i = 0; i < HOT; i++)
		sum += gbps(i);
	return sum;
}

static void run(void)
{
	fabric_run(&f, f.clock.now + 2000 * US);
	CHECK_EQ(traffic_measure(&f, 0), 0);
	fabric_run(&f, f.clock.now + 10000 * US);
}

static void test_victim(unsigned int window)
{
	double without;

	up(window);
	run();
	without = gbps(HOT);
	CHECK(hot() > 0.98 * LINK);
	control(15, 0);
	run();
	printf("window %u: the victim gets %.2f, and %.2f of Gbit/s; hot spot %.2f\n", window, without,
	       gbps(HOT), hot());
	CHECK(gbps(HOT) > 1.3 * without);
	CHECK(hot() > 0.6 * LINK);
	for (unsigned int i = 0; i < HOT; i++)
		CHECK(f.traffic->flows[i].ccti > 0);
	CHECK(f.congestion->told > 0);
	CHECK(f.congestion->told <= f.congestion->marked);
	traffic_stop(&f);
	fabric_run(&f, f.clock.now + 127 * 21 * US);
	for (unsigned int i = 0; i <= HOT; i++)
		CHECK_EQ(f.traffic->flows[i].ccti, 0);
	made_down(&f, &net);
}

/* A host behind a slow bus: the switch before it marks, not the one before that. */
static void test_whose_it_is(void)
{
	uint32_t host, cable;

	made_up(&f, &net, "mesh:2,hosts=4", 8);
	CHECK_EQ(fault_set(&f, at("H6"), "drain", 300), 0);
	add("H2", "H6", 0);
	control(15, 1000000);
	run();
	host = f.ports[at("H6")].peer * f.config.vls;
	cable = fabric_port(&f, net_find(&net, "S1"), 2) * f.config.vls;
	CHECK(f.lanes[cable].sent > 1000);
	CHECK(f.congestion->passed[host] > 1000);
	CHECK_EQ(f.congestion->passed[cable], 0);
	CHECK_EQ(f.congestion->marked, 0);
	/* Of ten that could be marked one is. */
	control(15, 9);
	f.congestion->passed[host] = 0;
	CHECK_EQ(traffic_measure(&f, 0), 0);
	fabric_run(&f, f.clock.now + 100 * US);
	CHECK(f.congestion->marked >= f.traffic->received / 10);
	CHECK(f.congestion->marked <= f.traffic->received / 10 + 2);
	/* Never. */
	control(0, 0);
	f.congestion->marked = 0;
	fabric_run(&f, f.clock.now + 1000 * US);
	CHECK_EQ(f.congestion->marked, 0);
	made_down(&f, &net);
}

static void test_alone(void)
{
	made_up(&f, &net, "mesh:2,hosts=4", 8);
	add("H1", "H5", 0);
	control(15, 0);
	run();
	CHECK_EQ(f.congestion->marked, 0);
	CHECK(gbps(0) > 0.98 * LINK);
	made_down(&f, &net);
}

int main(void)
{
	test_alone();
	test_whose_it_is();
	test_victim(0);
	test_victim(64);
	return 0;
}
