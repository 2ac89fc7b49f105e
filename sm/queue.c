// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "queue.h"

#define SECOND	1000000 /* credit, in microseconds */
#define BURST	16 /* reports to one host in a row, whatever its rate */

static uint32_t hosts_made;

/** rsm_host_new - a host; two at the same LID do not have the same numbers for a long time */
struct rsm_host *rsm_host_new(void)
{
	struct rsm_host *host = calloc(1, sizeof(*host));

	if (!host)
		return NULL;
	host->number = hosts_made++ << 20;
	host->tail = &host->queue;
	return host;
}

static void unlink_after(struct rsm_host *host, struct rsm_queued **link)
{
	struct rsm_queued *gone = *link;

	*link = gone->next;
	if (host->tail == &gone->next)
		host->tail = link;
	free(gone);
	host->n_queued--;
}

/** rsm_host_free - and all that it was to be told; it is not ready */
void rsm_host_free(struct rsm_host *host)
{
	while (host->queue)
		unlink_after(host, &host->queue);
	free(host);
}

static bool is_route(const struct rsm_notice *notice)
{
	return (notice->flags & REPATH_SM_KIND) == REPATH_SM_ROUTE;
}

static bool same_path(const struct rsm_notice *a, const struct rsm_notice *b)
{
	return a->mask && b->mask && a->path.dlid == b->path.dlid && a->path.slid == b->path.slid;
}

static bool is_way_back(const struct rsm_notice *notice)
{
	return (notice->flags & REPATH_SM_KIND) == REPATH_SM_WAY_BACK;
}

/* Whether nobody needs the old one who has heard the new one. Lanes and moves stand for themselves. */
static bool says_more(const struct rsm_notice *now, const struct rsm_notice *then)
{
	if (is_way_back(then))
		return (is_way_back(now) || (is_route(now) && now->trap == REPATH_SM_REPATH)) && same_path(now, then);
	if (!is_route(now) || !is_route(then))
		return false;
	if (now->trap == REPATH_SM_UNPATH && then->trap == REPATH_SM_REPATH)
		return false;
	return !now->mask || same_path(now, then);
}

/* A notice about everything that was not sent yet, and with it now's: said later, it is as good. */
static bool absorbed(struct rsm_host *host, const struct rsm_notice *now)
{
	if (now->trap != REPATH_SM_REPATH || !is_route(now))
		return false;
	for (struct rsm_queued *i = host->queue; i; i = i->next) {
		if (!i->attempts && i->notice.trap == REPATH_SM_REPATH && !i->notice.mask &&
		    is_route(&i->notice)) {
			i->notice.serial = now->serial;
			host->repathed = now->serial;
			return true;
		}
	}
	return false;
}

/* What is on its way stays: its answer is still to come. */
static void coalesce_with(struct rsm_host *host, const struct rsm_notice *now,
			  struct rsm_counts *counts)
{
	struct rsm_queued **link = &host->queue;

	while (*link) {
		if (!(*link)->sent && says_more(now, &(*link)->notice)) {
			unlink_after(host, link);
			counts->coalesced++;
		} else {
			link = &(*link)->next;
		}
	}
}

static bool append(struct rsm_host *host, const struct rsm_notice *notice)
{
	struct rsm_queued *added = calloc(1, sizeof(*added));

	if (!added)
		return false;
	added->notice = *notice;
	added->number = ++host->number;
	if (notice->trap == REPATH_SM_REPATH && is_route(notice))
		host->repathed = notice->serial;
	*host->tail = added;
	host->tail = &added->next;
	host->n_queued++;
	return true;
}

/**
 * rsm_queue_add - one more notice for a host
 * @host: to be told
 * @notice: copied
 * @coalesce: those that it makes needless go, and it goes if it is needless
 * @counts: of what went
 *
 * Return: whether there is now something to be sent that says this.
 */
bool rsm_queue_add(struct rsm_host *host, const struct rsm_notice *notice, bool coalesce,
		   struct rsm_counts *counts)
{
	struct rsm_notice all = *notice;

	if (!host->queue)
		host->silent = 0;
	if (coalesce && absorbed(host, notice)) {
		counts->coalesced++;
		return true;
	}
	if (coalesce)
		coalesce_with(host, notice, counts);
	/* It is for others' sake, and does not push out what is for this one's. */
	if (is_way_back(notice) && host->n_queued >= RSM_QUEUE_MOST)
		return false;
	if (host->n_queued < RSM_QUEUE_MOST || !is_route(notice))
		return append(host, notice);
	all.mask = 0;
	all.flags &= ~REPATH_SM_AHEAD;
	all.path = (struct repath_sm_path) { 0 };
	if (absorbed(host, &all))
		return true;
	coalesce_with(host, &all, counts);
	counts->collapsed++;
	return append(host, &all);
}

static bool is_any_sent(const struct rsm_host *host)
{
	const struct rsm_queued *i = host->queue;

	while (i && !i->sent)
		i = i->next;
	return i;
}

/**
 * rsm_queue_next - the first that may be sent now, or NULL
 * @host: to be told
 *
 * Who has not answered one may hang. All hosts share the window: as much of it as its reports wait in is
 * taken from the others.
 */
struct rsm_queued *rsm_queue_next(const struct rsm_host *host)
{
	struct rsm_queued *i = host->queue;

	if (host->doubted && is_any_sent(host))
		return NULL;
	while (i && i->sent)
		i = i->next;
	return i;
}

static struct rsm_queued **find(struct rsm_host *host, uint32_t number)
{
	struct rsm_queued **link = &host->queue;

	while (*link && (*link)->number != number)
		link = &(*link)->next;
	return link;
}

/** rsm_queue_answered - the host has heard it; returns whether that is news */
bool rsm_queue_answered(struct rsm_host *host, uint32_t number)
{
	struct rsm_queued **link = find(host, number);

	if (!*link)
		return false;
	unlink_after(host, link);
	host->doubted = false;
	host->silent = 0;
	return true;
}

/* Said too late now: the RePath that it wanted the host to wait for was said, or the next notice. */
static bool outdated(const struct rsm_host *host, const struct rsm_queued *lost)
{
	if (!is_route(&lost->notice) && !is_way_back(&lost->notice))
		return false;
	if (lost->notice.flags & REPATH_SM_WAIT_FOR_REPATH &&
	    (int32_t)(host->repathed - lost->notice.serial) >= 0)
		return true;
	for (struct rsm_queued *i = lost->next; i; i = i->next)
		if (says_more(&i->notice, &lost->notice))
			return true;
	return false;
}

/**
 * rsm_queue_lost - a report was not answered: it waits to be sent again, or goes
 * @host: that it was for
 * @number: of the notice
 * @limit: how often it is sent; when nothing was answered for as many times, each that is still there is
 *	sent once more
 *
 * Return: see enum rsm_lost.
 */
enum rsm_lost rsm_queue_lost(struct rsm_host *host, uint32_t number, int limit)
{
	struct rsm_queued **link = find(host, number);

	if (!*link || !(*link)->sent)
		return RSM_UNKNOWN;
	(*link)->sent = false;
	host->doubted = true;
	host->silent += !is_any_sent(host);
	if (outdated(host, *link)) {
		unlink_after(host, link);
		return RSM_OUTDATED;
	}
	if ((*link)->attempts >= limit || host->silent > limit) {
		unlink_after(host, link);
		return RSM_GIVEN_UP;
	}
	return RSM_REPEAT;
}

/** rsm_ready_add - the host has something to be sent */
void rsm_ready_add(struct rsm_ready *ready, struct rsm_host *host)
{
	if (host->ready)
		return;
	host->ready = true;
	host->next_ready = NULL;
	if (ready->first)
		ready->last->next_ready = host;
	else
		ready->first = host;
	ready->last = host;
}

/** rsm_ready_remove - the host goes, or has nothing to be sent any more */
void rsm_ready_remove(struct rsm_ready *ready, struct rsm_host *host)
{
	struct rsm_host **link = &ready->first, *before = NULL;

	if (!host->ready)
		return;
	while (*link != host) {
		before = *link;
		link = &before->next_ready;
	}
	*link = host->next_ready;
	if (ready->last == host)
		ready->last = before;
	host->ready = false;
}

/* Whether the host may be sent one more now; else when. */
static bool afford(struct rsm_host *host, uint64_t now, int rate, uint64_t *when)
{
	int64_t price, most;

	if (!rate)
		return true;
	price = SECOND / rate;
	most = BURST * price;
	host->credit += (int64_t)(now - host->credited) * 1000;
	if (!host->credited || host->credit > most)
		host->credit = most;
	host->credited = now;
	if (host->credit >= price) {
		host->credit -= price;
		return true;
	}
	if (now + (price - host->credit) / 1000 + 1 < *when)
		*when = now + (price - host->credit) / 1000 + 1;
	return false;
}

/**
 * rsm_ready_take - the first host that may be sent something now
 * @ready: the hosts
 * @now: in milliseconds
 * @rate: reports a second to one host, 0: as many as there are
 *
 * Return: a host that has something to be sent and is no longer ready, or NULL.
 */
struct rsm_host *rsm_ready_take(struct rsm_ready *ready, uint64_t now, int rate)
{
	struct rsm_host *host = ready->first, *next;

	ready->when = UINT64_MAX;
	for (; host; host = next) {
		next = host->next_ready;
		if (!rsm_queue_next(host)) {
			rsm_ready_remove(ready, host);
		} else if (afford(host, now, rate, &ready->when)) {
			rsm_ready_remove(ready, host);
			return host;
		}
	}
	return NULL;
}

/** rsm_ready_when - when rsm_ready_take() will find one that was over its rate */
uint64_t rsm_ready_when(const struct rsm_ready *ready)
{
	return ready->first ? ready->when : UINT64_MAX;
}
