/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What one subscriber is still to be told, and which subscribers may be told something now. No
 * locking and no OpenSM: signal.c has the first, report.c the second.
 */
#ifndef RSM_QUEUE_H
#define RSM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "signal.h"
#include "subscribers.h"

#define RSM_QUEUE_MOST 1024 /* notices for one subscriber; more give way to one with mask 0 */

/**
 * struct rsm_queued - one notice that is not answered
 * @next: in the order in which they were said
 * @notice: what is said
 * @number: as the receiver sees it
 * @attempts: how often it was sent
 * @sent: it is on its way
 */
struct rsm_queued {
	struct rsm_queued *next;
	struct rsm_notice notice;
	uint32_t number;
	int attempts;
	bool sent;
};

/**
 * struct rsm_host - a subscriber
 * @to: its address
 * @twin: the next one at the same LID
 * @queue: first of what it is to be told
 * @tail: where the next one is linked
 * @n_queued: of them
 * @number: of its last notice
 * @repathed: serial of the last RePath of a route
 * @doubted: it has not answered since a report to it was lost: one at a time is sent
 * @silent: times that nothing was on its way to it any more and nothing answered, in a row
 * @next_ready: in struct rsm_ready
 * @ready: it is there
 * @credit: microseconds of rate that it has saved up
 * @credited: when that was, in milliseconds
 */
struct rsm_host {
	struct rsm_subscriber to;
	struct rsm_host *twin;
	struct rsm_queued *queue;
	struct rsm_queued **tail;
	size_t n_queued;
	uint32_t number;
	uint32_t repathed;
	bool doubted;
	int silent;
	struct rsm_host *next_ready;
	bool ready;
	int64_t credit;
	uint64_t credited;
};

/**
 * struct rsm_counts - since the start
 * @by_trap: notices of trap 68 and of trap 69 that were sent at least once
 * @reports: MADs sent
 * @answered: notices
 * @repeated: MADs that were lost and are sent again
 * @given_up: notices that were never answered
 * @outdated: notices that were lost and are not sent again, because later ones were
 * @coalesced: notices that gave way to one that says more
 * @collapsed: times that a full queue gave way to one notice about everything
 */
struct rsm_counts {
	unsigned long long by_trap[2];
	unsigned long long reports;
	unsigned long long answered;
	unsigned long long repeated;
	unsigned long long given_up;
	unsigned long long outdated;
	unsigned long long coalesced;
	unsigned long long collapsed;
};

enum rsm_lost { RSM_UNKNOWN, RSM_REPEAT, RSM_GIVEN_UP, RSM_OUTDATED };

struct rsm_host *rsm_host_new(void);
void rsm_host_free(struct rsm_host *host);
bool rsm_queue_add(struct rsm_host *host, const struct rsm_notice *notice, bool coalesce,
		   struct rsm_counts *counts);
struct rsm_queued *rsm_queue_next(const struct rsm_host *host);
bool rsm_queue_answered(struct rsm_host *host, uint32_t number);
enum rsm_lost rsm_queue_lost(struct rsm_host *host, uint32_t number, int limit);

/**
 * struct rsm_ready - hosts with something to be sent, first come, first served
 * @first: of them
 * @last: of them
 * @when: when the first of those that are over their rate may be sent something
 */
struct rsm_ready {
	struct rsm_host *first;
	struct rsm_host *last;
	uint64_t when;
};

void rsm_ready_add(struct rsm_ready *ready, struct rsm_host *host);
void rsm_ready_remove(struct rsm_ready *ready, struct rsm_host *host);
struct rsm_host *rsm_ready_take(struct rsm_ready *ready, uint64_t now, int rate);
uint64_t rsm_ready_when(const struct rsm_ready *ready);

#endif
