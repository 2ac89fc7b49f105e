// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a subscriber is to be told: what gives way to what, the limits, the rate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __func__, __LINE__, #condition);    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct rsm_counts counts;

/* DLID 0: about everything. */
static struct rsm_notice notice(uint16_t trap, uint32_t serial, uint16_t dlid)
{
	struct rsm_notice made = {
		.trap = trap,
		.flags = trap == REPATH_SM_UNPATH ? REPATH_SM_WAIT_FOR_REPATH : 0,
		.serial = serial,
		.mask = dlid ? REPATH_SM_MASK_DLID | REPATH_SM_MASK_SLID : 0,
	};

	made.path.dlid = dlid;
	return made;
}

static struct rsm_queued *add(struct rsm_host *host, struct rsm_notice made, bool coalesce)
{
	struct rsm_queued *last = host->queue;

	CHECK(rsm_queue_add(host, &made, coalesce, &counts));
	for (last = host->queue; last->next; last = last->next)
		;
	return last;
}

static void on_its_way(struct rsm_queued *queued)
{
	queued->sent = true;
	queued->attempts++;
}

static void test_order(void)
{
	struct rsm_host *host = rsm_host_new();
	struct rsm_queued *first = add(host, notice(REPATH_SM_UNPATH, 1, 7), false);
	struct rsm_queued *second = add(host, notice(REPATH_SM_REPATH, 1, 7), false);

	CHECK(second->number == first->number + 1);
	CHECK(rsm_queue_next(host) == first);
	on_its_way(first);
	CHECK(rsm_queue_next(host) == second);
	on_its_way(second);
	CHECK(!rsm_queue_next(host));
	CHECK(rsm_queue_answered(host, second->number));
	CHECK(rsm_queue_answered(host, first->number));
	CHECK(!rsm_queue_answered(host, 12345));
	CHECK(host->n_queued == 0);
	CHECK(add(host, notice(REPATH_SM_REPATH, 2, 7), false) == host->queue);
	rsm_host_free(host);
}

static void test_coalesce(void)
{
	struct rsm_host *host = rsm_host_new();

	/* The same path again, before the first was sent. */
	add(host, notice(REPATH_SM_REPATH, 1, 7), true);
	add(host, notice(REPATH_SM_REPATH, 1, 8), true);
	add(host, notice(REPATH_SM_REPATH, 2, 7), true);
	CHECK(host->n_queued == 2 && counts.coalesced == 1);
	/* Everything says more than each; and is itself said later, if it was not sent. */
	add(host, notice(REPATH_SM_REPATH, 3, 0), true);
	CHECK(host->n_queued == 1);
	add(host, notice(REPATH_SM_REPATH, 4, 9), true);
	CHECK(host->n_queued == 1 && host->queue->notice.serial == 4);
	/* What is on its way stays. UnPath does not take RePath's place. */
	on_its_way(host->queue);
	add(host, notice(REPATH_SM_REPATH, 5, 0), true);
	add(host, notice(REPATH_SM_UNPATH, 6, 0), true);
	CHECK(host->n_queued == 3);
	add(host, notice(REPATH_SM_REPATH, 6, 0), true);
	CHECK(host->n_queued == 3 && host->queue->next->notice.serial == 6);
	rsm_host_free(host);
}

static void test_lanes_stay(void)
{
	struct rsm_host *host = rsm_host_new();
	struct rsm_notice lane = notice(REPATH_SM_REPATH, 1, 7);

	lane.flags |= REPATH_SM_LANE;
	add(host, lane, true);
	add(host, notice(REPATH_SM_REPATH, 2, 7), true);
	add(host, notice(REPATH_SM_REPATH, 3, 0), true);
	CHECK(host->n_queued == 2 && host->queue->notice.flags == REPATH_SM_LANE);
	rsm_host_free(host);
}

static void test_lost(void)
{
	struct rsm_host *host = rsm_host_new();
	struct rsm_queued *unpath = add(host, notice(REPATH_SM_UNPATH, 1, 7), false);
	struct rsm_queued *repath;
	uint32_t number = unpath->number;

	on_its_way(unpath);
	CHECK(rsm_queue_lost(host, number, 3) == RSM_REPEAT && !unpath->sent);
	CHECK(rsm_queue_lost(host, number, 3) == RSM_UNKNOWN);
	on_its_way(unpath);
	/* After its RePath an UnPath says nothing any more, even if that was answered. */
	repath = add(host, notice(REPATH_SM_REPATH, 1, 7), false);
	on_its_way(repath);
	CHECK(rsm_queue_answered(host, repath->number));
	CHECK(rsm_queue_lost(host, number, 3) == RSM_OUTDATED && !host->n_queued);
	repath = add(host, notice(REPATH_SM_REPATH, 2, 7), false);
	number = repath->number;
	for (int i = 0; i < 3; i++) {
		on_its_way(repath);
		CHECK(rsm_queue_lost(host, number, 3) == (i < 2 ? RSM_REPEAT : RSM_GIVEN_UP));
	}
	CHECK(!host->n_queued);
	rsm_host_free(host);
}

/* One that does not answer is told one thing at a time, from the first that is lost to the next answer. */
static void test_doubted(void)
{
	struct rsm_host *host = rsm_host_new();
	struct rsm_queued *queued[4];
	int given_up = 0, sent = 0;

	for (int i = 0; i < 4; i++) {
		queued[i] = add(host, notice(REPATH_SM_REPATH, 1, 7 + i), false);
		CHECK(rsm_queue_next(host) == queued[i]);
		on_its_way(queued[i]);
	}
	CHECK(rsm_queue_lost(host, queued[1]->number, 3) == RSM_REPEAT);
	CHECK(!rsm_queue_next(host));
	CHECK(rsm_queue_lost(host, queued[0]->number, 3) == RSM_REPEAT);
	CHECK(rsm_queue_lost(host, queued[3]->number, 3) == RSM_REPEAT);
	CHECK(!rsm_queue_next(host));
	CHECK(rsm_queue_lost(host, queued[2]->number, 3) == RSM_REPEAT);
	for (int i = 0; i < 2; i++) {
		CHECK(rsm_queue_next(host) == queued[0]);
		on_its_way(queued[0]);
		CHECK(!rsm_queue_next(host));
		if (!i)
			CHECK(rsm_queue_lost(host, queued[0]->number, 3) == RSM_REPEAT);
	}
	/* It lives: all that there is. */
	CHECK(rsm_queue_answered(host, queued[0]->number));
	for (int i = 1; i < 4; i++) {
		CHECK(rsm_queue_next(host) == queued[i]);
		on_its_way(queued[i]);
	}
	/* And then no more: the first as often as any, and when it is silent for as long the others once. */
	for (int i = 1; i < 4; i++)
		CHECK(rsm_queue_lost(host, queued[i]->number, 6) == RSM_REPEAT);
	while ((queued[0] = rsm_queue_next(host))) {
		on_its_way(queued[0]);
		sent++;
		CHECK(!rsm_queue_next(host));
		given_up += rsm_queue_lost(host, queued[0]->number, 6) == RSM_GIVEN_UP;
	}
	CHECK(given_up == 3 && !host->n_queued && sent == 4 + 2 + 1);
	/* What is said later is said as often again. */
	queued[0] = add(host, notice(REPATH_SM_REPATH, 9, 7), false);
	for (int i = 0; i < 6; i++) {
		on_its_way(queued[0]);
		CHECK(rsm_queue_lost(host, queued[0]->number, 6) == (i < 5 ? RSM_REPEAT : RSM_GIVEN_UP));
	}
	rsm_host_free(host);
}

static void test_collapse(void)
{
	struct rsm_host *host = rsm_host_new();

	memset(&counts, 0, sizeof(counts));
	for (int dlid = 1; dlid <= RSM_QUEUE_MOST; dlid++)
		add(host, notice(REPATH_SM_REPATH, 1, dlid), false);
	CHECK(host->n_queued == RSM_QUEUE_MOST && !counts.collapsed);
	add(host, notice(REPATH_SM_REPATH, 1, RSM_QUEUE_MOST + 1), false);
	CHECK(host->n_queued == 1 && !host->queue->notice.mask && counts.collapsed == 1);
	rsm_host_free(host);
}

/* Of the way back once, and not beside what is new of it; where there is no room it is the one to go. */
static void test_ways_back(void)
{
	struct rsm_host *host = rsm_host_new();
	struct rsm_notice back = notice(REPATH_SM_REPATH, 1, 7);
	struct rsm_queued *lost;

	memset(&counts, 0, sizeof(counts));
	back.flags = REPATH_SM_WAY_BACK;
	add(host, back, true);
	add(host, notice(REPATH_SM_REPATH, 1, 8), true);
	add(host, back, true);
	CHECK(host->n_queued == 2 && host->queue->notice.path.dlid == 8 && counts.coalesced == 1);
	/* It does not take the place of a record, nor of a question for all, nor do these say what it says. */
	add(host, notice(REPATH_SM_UNPATH, 2, 7), true);
	add(host, back, true);
	CHECK(host->n_queued == 3);
	add(host, notice(REPATH_SM_REPATH, 2, 0), true);
	CHECK(host->n_queued == 2 && host->queue->notice.flags == REPATH_SM_WAY_BACK);
	add(host, notice(REPATH_SM_REPATH, 2, 7), true);
	CHECK(host->n_queued == 2);
	rsm_host_free(host);

	host = rsm_host_new();
	lost = add(host, back, true);
	on_its_way(lost);
	add(host, notice(REPATH_SM_REPATH, 2, 7), true);
	CHECK(rsm_queue_lost(host, lost->number, 3) == RSM_OUTDATED);
	rsm_host_free(host);

	host = rsm_host_new();
	for (int dlid = 1; dlid <= RSM_QUEUE_MOST; dlid++)
		add(host, notice(REPATH_SM_REPATH, 1, dlid + 100), false);
	CHECK(!rsm_queue_add(host, &back, true, &counts));
	CHECK(host->n_queued == RSM_QUEUE_MOST && !counts.collapsed);
	rsm_host_free(host);
}

static void test_rate(void)
{
	struct rsm_ready ready = { 0 };
	struct rsm_host *hosts[2] = { rsm_host_new(), rsm_host_new() };
	int taken = 0;

	for (int dlid = 1; dlid < 100; dlid++)
		add(hosts[0], notice(REPATH_SM_REPATH, 1, dlid), false);
	add(hosts[1], notice(REPATH_SM_REPATH, 1, 1), false);
	/* 16 in a row, and then 100 a second; the other host is not held up by it. */
	rsm_ready_add(&ready, hosts[0]);
	while (rsm_ready_take(&ready, 1000, 100)) {
		taken++;
		rsm_ready_add(&ready, hosts[0]);
	}
	CHECK(taken == 16);
	rsm_ready_add(&ready, hosts[1]);
	CHECK(rsm_ready_take(&ready, 1000, 100) == hosts[1]);
	CHECK(!rsm_ready_take(&ready, 1000, 100));
	CHECK(rsm_ready_when(&ready) > 1000 && rsm_ready_when(&ready) <= 1011);
	CHECK(rsm_ready_take(&ready, rsm_ready_when(&ready), 100) == hosts[0]);
	rsm_ready_add(&ready, hosts[0]);
	CHECK(!rsm_ready_take(&ready, 1011, 100));
	CHECK(rsm_ready_take(&ready, 1011, 0) == hosts[0]);
	rsm_ready_add(&ready, hosts[0]);
	rsm_ready_add(&ready, hosts[1]);
	rsm_ready_remove(&ready, hosts[1]);
	rsm_ready_remove(&ready, hosts[0]);
	CHECK(!ready.first && rsm_ready_when(&ready) == UINT64_MAX);
	rsm_host_free(hosts[0]);
	rsm_host_free(hosts[1]);
}

int main(void)
{
	test_order();
	test_coalesce();
	test_lanes_stay();
	test_lost();
	test_doubted();
	test_collapse();
	test_ways_back();
	test_rate();
	return 0;
}
