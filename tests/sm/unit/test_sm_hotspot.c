// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* dFtree's algorithm 1: who is a hot spot, who contributes, who is told, and when it ends. */
#include <string.h>

#include "check.h"
#include "hotspot.h"

#define SECOND 1000000000ull
#define HOSTS 6
#define RATE 2000000000ull		/* bytes a second: 4x DDR */
#define SWITCH(host) (0x1000 + (host))
#define HOST(host) (0x2000 + (host))

static const struct hotspot_rules paper = {
	.wait_per_s = 100000, .used_percent = 50, .onset = 1, .calm = 1, .calm_percent = 100,
};

static struct hotspot_link links[HOSTS + 1];
static uint64_t now;

static struct {
	enum hotspot_lane lane;
	uint16_t hot, to;
} told[64];
static unsigned int ntold;
static uint16_t deaf;			/* nobody listens at that LID */

static bool tell(void *context, enum hotspot_lane lane, uint16_t hot, uint16_t to)
{
	CHECK(context == told);
	CHECK(ntold < 64);
	if (to == deaf)
		return false;
	told[ntold].lane = lane;
	told[ntold].hot = hot;
	told[ntold++].to = to;
	return true;
}

static int was_told(enum hotspot_lane lane, uint16_t hot, uint16_t to)
{
	int n = 0;

	for (unsigned int i = 0; i < ntold; i++)
		n += told[i].lane == lane && told[i].hot == hot && told[i].to == to;
	return n;
}

/* Hosts 1..6, LIDs 11..16; a link each. */
static struct hotspot *made(const struct hotspot_rules *rules)
{
	struct hotspot *h = hotspot_new(rules);

	now = SECOND;
	for (unsigned int i = 0; i < HOSTS; i++)
		links[i] = (struct hotspot_link){ .switch_guid = SWITCH(i + 1), .switch_port = 3,
			.host_guid = HOST(i + 1), .host_port = 1, .lid = 11 + i,
			.bytes_per_s = RATE };
	CHECK_EQ(hotspot_links(h, links, HOSTS, tell, told), 0);
	return h;
}

/* A sweep a second after the last: ticks at the switch, ticks at the host, percent that it sends. */
static void sweep(struct hotspot *h, const unsigned int figures[HOSTS][3])
{
	ntold = 0;
	now += SECOND;
	for (unsigned int i = 0; i < HOSTS; i++) {
		hotspot_waited(h, SWITCH(i + 1), 3, figures[i][0], now);
		hotspot_waited(h, HOST(i + 1), 1, figures[i][1], now);
		hotspot_sent(h, HOST(i + 1), 1, RATE / 4 / 100 * figures[i][2], now);
		hotspot_sent(h, SWITCH(i + 1), 3, 1, now);
	}
	hotspot_sweep(h, tell, told);
}

static const unsigned int quiet[HOSTS][3];

/* Experiment I: 1, 3 and 6 send to 5; 2 is the victim, 6 has more than half of its link. */
static const unsigned int hot5[HOSTS][3] = {
	{ 0, 9000000, 25 }, { 0, 9000000, 25 }, { 5000, 9000000, 25 },
	{ 0, 0, 0 }, { 7000000, 0, 0 }, { 0, 9000000, 51 },
};

static void experiment(void)
{
	struct hotspot *h = made(&paper);

	sweep(h, hot5);
	CHECK_EQ(ntold, 0);		/* since when those ticks are is not known */
	sweep(h, hot5);
	CHECK_EQ(ntold, 3);
	CHECK(was_told(HOTSPOT_SLOW, 15, 11) && was_told(HOTSPOT_SLOW, 15, 12) &&
	      was_told(HOTSPOT_SLOW, 15, 13));
	CHECK_EQ(hotspot_counts(h)->hot, 1);
	CHECK_EQ(hotspot_counts(h)->contributors, 3);
	sweep(h, hot5);
	CHECK_EQ(ntold, 0);		/* once */
	sweep(h, quiet);
	CHECK_EQ(ntold, 3);
	CHECK(was_told(HOTSPOT_FAST, 15, 11) && was_told(HOTSPOT_FAST, 15, 12) &&
	      was_told(HOTSPOT_FAST, 15, 13));
	CHECK_EQ(hotspot_counts(h)->hot, 0);
	CHECK_EQ(hotspot_counts(h)->contributors, 0);
	sweep(h, quiet);
	CHECK_EQ(ntold, 0);
	hotspot_free(h);
}

/* Who can not be told yet is told when he can be, and not told of an end if he never was. */
static void no_subscriber(void)
{
	struct hotspot *h = made(&paper);

	deaf = 12;
	sweep(h, hot5);
	sweep(h, hot5);
	CHECK_EQ(ntold, 2);
	CHECK_EQ(hotspot_counts(h)->contributors, 2);
	sweep(h, quiet);
	deaf = 0;
	CHECK_EQ(ntold, 2);
	deaf = 12;
	sweep(h, hot5);
	CHECK_EQ(ntold, 2);
	deaf = 0;
	sweep(h, hot5);
	CHECK_EQ(ntold, 1);
	CHECK(was_told(HOTSPOT_SLOW, 15, 12));
	CHECK_EQ(hotspot_counts(h)->slow, 5);
	hotspot_free(h);
}

static void new_contributor(void)
{
	struct hotspot *h = made(&paper);
	unsigned int figures[HOSTS][3];

	memcpy(figures, hot5, sizeof(figures));
	sweep(h, figures);
	sweep(h, figures);
	figures[3][1] = 100001;
	figures[3][2] = 49;
	sweep(h, figures);
	CHECK_EQ(ntold, 1);
	CHECK(was_told(HOTSPOT_SLOW, 15, 14));
	/* The hot spot is a host like others for another hot spot, not for itself. */
	figures[0][0] = 200000;
	figures[4][1] = 200000;
	sweep(h, figures);
	CHECK_EQ(ntold, 4);
	CHECK(was_told(HOTSPOT_SLOW, 11, 15) && was_told(HOTSPOT_SLOW, 11, 12));
	CHECK_EQ(hotspot_counts(h)->contributors, 8);
	hotspot_free(h);
}

/* The rate counts, whatever the time between two sweeps. */
static void intervals(void)
{
	struct hotspot *h = made(&paper);

	hotspot_waited(h, SWITCH(5), 3, 0, now);
	hotspot_waited(h, HOST(1), 1, 0, now);
	hotspot_sent(h, HOST(1), 1, 0, now);
	now += 10 * SECOND;
	hotspot_waited(h, SWITCH(5), 3, 999999, now);
	hotspot_sweep(h, tell, told);
	CHECK_EQ(hotspot_counts(h)->hot, 0);
	now += SECOND / 10;
	ntold = 0;
	hotspot_waited(h, SWITCH(5), 3, 10001, now);
	hotspot_waited(h, HOST(1), 1, 1010100, now);
	hotspot_sent(h, HOST(1), 1, RATE / 4 / 100 * 49 * 10.1, now);
	hotspot_sweep(h, tell, told);
	CHECK_EQ(hotspot_counts(h)->hot, 1);
	CHECK_EQ(ntold, 1);
	/* A port that was not read says nothing new, neither end. */
	ntold = 0;
	for (int i = 0; i < 5; i++)
		hotspot_sweep(h, tell, told);
	CHECK_EQ(ntold, 0);
	CHECK_EQ(hotspot_counts(h)->hot, 1);
	hotspot_waited(h, 0x7777, 1, 1 << 30, now);	/* nobody's port */
	hotspot_free(h);
}

static void hysteresis(void)
{
	struct hotspot_rules rules = paper;
	unsigned int figures[HOSTS][3];
	struct hotspot *h;

	rules.onset = 2;
	rules.calm = 3;
	rules.calm_percent = 50;
	h = made(&rules);
	memcpy(figures, hot5, sizeof(figures));
	sweep(h, quiet);
	sweep(h, figures);
	sweep(h, quiet);
	sweep(h, figures);
	CHECK_EQ(hotspot_counts(h)->hot, 0);
	sweep(h, figures);
	CHECK_EQ(ntold, 3);
	/* Between the two thresholds it stays as it is, and nobody is added. */
	figures[4][0] = 60000;
	figures[3][1] = 200000;
	for (int i = 0; i < 5; i++)
		sweep(h, figures);
	CHECK_EQ(ntold, 0);
	CHECK_EQ(hotspot_counts(h)->hot, 1);
	figures[4][0] = 49999;
	sweep(h, figures);
	sweep(h, figures);
	figures[4][0] = 60000;
	sweep(h, figures);
	figures[4][0] = 49999;
	sweep(h, figures);
	sweep(h, figures);
	CHECK_EQ(hotspot_counts(h)->hot, 1);
	sweep(h, figures);
	CHECK_EQ(hotspot_counts(h)->hot, 0);
	CHECK_EQ(ntold, 3);
	hotspot_free(h);
}

static void other_links(void)
{
	struct hotspot *h = made(&paper);
	struct hotspot_link others[HOSTS];

	sweep(h, hot5);
	sweep(h, hot5);
	/* In another order, without host 1, and 2 behind another switch port: the rest goes on. */
	for (unsigned int i = 0; i < HOSTS; i++)
		others[i] = links[HOSTS - 1 - i];
	others[4].switch_port = 9;
	ntold = 0;
	CHECK_EQ(hotspot_links(h, others, HOSTS - 1, tell, told), 0);
	CHECK_EQ(ntold, 0);
	CHECK_EQ(hotspot_counts(h)->hot, 1);
	CHECK_EQ(hotspot_counts(h)->contributors, 2);
	sweep(h, hot5);
	CHECK_EQ(ntold, 0);
	sweep(h, quiet);
	CHECK_EQ(ntold, 2);
	CHECK(was_told(HOTSPOT_FAST, 15, 12) && was_told(HOTSPOT_FAST, 15, 13));
	CHECK_EQ(hotspot_links(h, links, HOSTS, tell, told), 0);
	sweep(h, hot5);
	sweep(h, hot5);
	CHECK_EQ(hotspot_counts(h)->contributors, 3);
	/* The hot spot has another LID: who was told the old one is told that it has ended. */
	links[4].lid = 99;
	ntold = 0;
	CHECK_EQ(hotspot_links(h, links, HOSTS, tell, told), 0);
	CHECK_EQ(ntold, 3);
	CHECK_EQ(was_told(HOTSPOT_FAST, 15, 13), 1);
	CHECK_EQ(hotspot_counts(h)->hot, 0);
	sweep(h, hot5);
	CHECK_EQ(was_told(HOTSPOT_SLOW, 99, 13), 1);
	/* And it is gone. */
	ntold = 0;
	CHECK_EQ(hotspot_links(h, links, 4, tell, told), 0);
	CHECK_EQ(ntold, 3);
	CHECK_EQ(hotspot_counts(h)->contributors, 0);
	CHECK_EQ(hotspot_counts(h)->ended, hotspot_counts(h)->begun);
	CHECK_EQ(hotspot_counts(h)->slow, hotspot_counts(h)->fast + 1);	/* host 1 went away */
	CHECK_EQ(hotspot_links(h, NULL, 0, tell, told), 0);
	sweep(h, hot5);
	hotspot_free(h);
}

/* The paper's listing, word by word, beside it: the same is told in every sweep. */
static void at_random(void)
{
	struct hotspot *h = made(&paper);
	uint8_t hot[HOSTS] = { 0 }, member[HOSTS][HOSTS] = { { 0 } };
	unsigned int figures[HOSTS][3], seen = 0;
	uint32_t random = 7;

	sweep(h, quiet);
	for (int round = 0; round < 20000; round++) {
		unsigned int expected = 0;

		for (unsigned int i = 0; i < HOSTS * 3; i++) {
			random = random * 1664525 + 1013904223;
			figures[i / 3][i % 3] = i % 3 < 2 ? (random >> 16) * 4 : (random >> 16) % 101;
		}
		sweep(h, figures);
		for (unsigned int p = 0; p < HOSTS; p++) {
			if (figures[p][0] > 100000) {
				hot[p] = 1;
				for (unsigned int c = 0; c < HOSTS; c++) {
					if (c == p || figures[c][1] <= 100000 || member[p][c] ||
					    figures[c][2] >= 50)
						continue;
					member[p][c] = 1;
					expected++;
					CHECK_EQ(was_told(HOTSPOT_SLOW, 11 + p, 11 + c), 1);
				}
			} else if (figures[p][0] < 100000 && hot[p]) {
				hot[p] = 0;
				for (unsigned int c = 0; c < HOSTS; c++) {
					if (!member[p][c])
						continue;
					member[p][c] = 0;
					expected++;
					CHECK_EQ(was_told(HOTSPOT_FAST, 11 + p, 11 + c), 1);
				}
			}
		}
		CHECK_EQ(ntold, expected);
		seen += expected;
	}
	CHECK(seen > 10000);
	hotspot_free(h);
}

int main(void)
{
	experiment();
	no_subscriber();
	new_contributor();
	intervals();
	hysteresis();
	other_links();
	at_random();
	return 0;
}
