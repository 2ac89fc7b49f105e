// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Traps: what they say, that they are sent until the subnet manager represses them, and no longer. */
#include <string.h>

#include "made.h"
#include "manager.h"

#define AGAIN_MS 200
#define MOST 20

static struct net net;
static struct fabric f;
static struct manager manager;

static void up(void)
{
	made_up(&f, &net, "mesh:2", 8);
	manager = (struct manager){ .ctl = -1, .epoll = -1 };
	f.manager = &manager;
}

static void down(void)
{
	free(manager.traps);
	f.manager = NULL;
	made_down(&f, &net);
}

static uint32_t at(const char *id, unsigned int num)
{
	return fabric_port(&f, net_find(&net, id), num);
}

static unsigned int number(const struct trap *trap)
{
	return be16_at(trap->notice + 4);
}

/* The SM's answer, to whom the upper 16 bits of the transaction ID name; what is between belongs to who sends it on. */
static void repress_of(unsigned int sender, uint32_t node, uint64_t tid)
{
	uint8_t mad[256] = { 1, CLASS_SM, 1, SMP_REPRESS };

	put_be64(mad + 8, 0x123400000000ull | (uint32_t)tid);
	put_be16(mad + 8, sender);
	trap_repress(&f, node, mad);
}

static void repress(uint32_t node, uint64_t tid)
{
	repress_of(UINT16_MAX, node, tid);
}

static void test_notices(void)
{
	uint32_t node = net_find(&net, "S1");
	uint16_t lid = 7;

	f.ports[at("S1", 0)].lid = lid;
	trap_link_state(&f, node);
	trap_flow_control(&f, at("S1", 2));
	trap_capabilities(&f, at("H1", 1));
	CHECK_EQ(manager.ntraps, 3);
	CHECK_EQ(number(&manager.traps[0]), 128);
	CHECK_EQ(be16_at(manager.traps[0].notice + 10), lid);
	CHECK_EQ(number(&manager.traps[1]), 131);
	CHECK_EQ(be16_at(manager.traps[1].notice + 12), lid);
	CHECK_EQ(manager.traps[1].notice[14], 2);
	CHECK_EQ(number(&manager.traps[2]), 144);
	CHECK_EQ(be16_at(manager.traps[2].notice + 12), f.ports[at("H1", 1)].lid);
	CHECK_EQ(manager.traps[2].notice[15], 0);
	CHECK_EQ(be16_at(manager.traps[2].notice + 20), 0);
	/* Another change of the same port is another notice. */
	sma_describe(&f, net_find(&net, "H1"), "a new name");
	CHECK_EQ(manager.ntraps, 4);
	CHECK_EQ(number(&manager.traps[3]), 144);
	CHECK_EQ(manager.traps[3].notice[15], 1);
	CHECK_EQ(be16_at(manager.traps[3].notice + 20), 1);
	/* Nobody is told of what is as it was, or can not be. */
	CHECK_EQ(sma_enable(&f, at("S1", 2), 3, 7), 0);
	CHECK_EQ(sma_enable(&f, at("S1", 2), 4, 0), -1);
	CHECK_EQ(sma_enable(&f, at("S1", 2), 1, 8), -1);
	CHECK_EQ(manager.ntraps, 4);
	CHECK_EQ(sma_enable(&f, at("S1", 2), 1, 0), 0);
	CHECK_EQ(sma_enable(&f, at("S1", 2), 1, 3), 0);
	CHECK_EQ(sma_enable(&f, at("H1", 1), 1, 1), 0);
	CHECK_EQ(manager.ntraps, 7);
	for (int i = 0; i < 3; i++) {
		const uint8_t *notice = manager.traps[4 + i].notice;

		CHECK_EQ(number(&manager.traps[4 + i]), 144);
		CHECK_EQ(be16_at(notice + 12), i < 2 ? lid : f.ports[at("H1", 1)].lid);
		CHECK_EQ(notice[15], 1);
		CHECK(be32_at(notice + 16));
		CHECK_EQ(be16_at(notice + 20), 2 * (i + 1));
	}
	/* News of the same kind takes the place of what is not answered yet, and its answer is another. */
	trap_link_state(&f, node);
	CHECK_EQ(manager.ntraps, 7);
	repress(node, 1);
	CHECK_EQ(manager.ntraps, 7);
	while (manager.ntraps)
		repress(manager.traps[0].node, manager.traps[0].tid);
}

static void test_repressed(void)
{
	uint32_t node = net_find(&net, "S2");
	uint64_t now;

	trap_link_state(&f, node);
	CHECK_EQ(trap_resend(&f, 0), AGAIN_MS);
	CHECK_EQ(manager.traps[0].tries, 1);
	trap_resend(&f, AGAIN_MS - 1);
	CHECK_EQ(manager.traps[0].tries, 1);
	trap_resend(&f, AGAIN_MS);
	CHECK_EQ(manager.traps[0].tries, 2);
	repress(node, manager.traps[0].tid + 1);
	repress(net_find(&net, "S1"), manager.traps[0].tid);
	/* A program's trap of that node has come to have the same number. */
	repress_of(0, node, manager.traps[0].tid);
	CHECK_EQ(manager.ntraps, 1);
	repress(node, manager.traps[0].tid);
	CHECK_EQ(manager.ntraps, 0);
	CHECK_EQ(trap_resend(&f, 2 * AGAIN_MS), -1);

	/* Nobody answers: it ends all the same. */
	trap_link_state(&f, node);
	for (now = 0; manager.ntraps; now += AGAIN_MS) {
		CHECK(now < (MOST + 1) * AGAIN_MS);
		trap_resend(&f, now);
	}
	CHECK_EQ(now, MOST * AGAIN_MS);
}

int main(void)
{
	up();
	test_notices();
	test_repressed();
	down();
	return 0;
}
