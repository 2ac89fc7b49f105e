// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugin.h"
#include "queue.h"
#include "report.h"
#include "signal.h"
#include "subscribers.h"

/* The transport sends a report twice before it says that it is lost. umad2sim never does. */
#define TRANSPORT_TRIES	2
#define TRANSPORT_SLACK	100
#define LONGEST_TIMEOUT	5000

/**
 * struct on_the_way - a report that was sent and not answered
 * @host: to whom
 * @number: of the notice
 * @deadline: when it is lost, should the transport not say so
 */
struct on_the_way {
	struct rsm_host *host;
	uint32_t number;
	uint64_t deadline;
};

/**
 * struct rsm_signal - all subscribers and what they are to be told
 * @mutex: for all below; never held while a MAD is sent
 * @answered: signalled when a report leaves @sent
 * @hosts: by ascending LID
 * @n_hosts: of them
 * @ready: hosts that may be sent something, each at most once
 * @sent: reports on the way, at most the window
 * @n_sent: of them
 * @counts: for the status
 */
struct rsm_signal {
	pthread_mutex_t mutex;
	pthread_cond_t answered;
	struct rsm_host **hosts;
	size_t n_hosts;
	struct rsm_ready ready;
	struct on_the_way *sent;
	int n_sent;
	struct rsm_counts counts;
};

static struct rsm_host *find_host(struct rsm_signal *signal, uint16_t lid)
{
	size_t low = 0, high = signal->n_hosts;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (signal->hosts[middle]->to.lid < lid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < signal->n_hosts && signal->hosts[low]->to.lid == lid ? signal->hosts[low] : NULL;
}

static void forget_sent(struct rsm_signal *signal, int i)
{
	signal->sent[i] = signal->sent[--signal->n_sent];
	pthread_cond_broadcast(&signal->answered);
}

static void lost(struct rsm *rsm, struct rsm_host *host, uint32_t number)
{
	struct rsm_signal *signal = rsm->signal;

	switch (rsm_queue_lost(host, number, rsm->opt.report_limit)) {
	case RSM_REPEAT:
		signal->counts.repeated++;
		break;
	case RSM_GIVEN_UP:
		signal->counts.given_up++;
		rsm_log(rsm, OSM_LOG_INFO, "LID %u does not answer: notice %u is given up",
			host->to.lid, number);
		break;
	case RSM_OUTDATED:
		signal->counts.outdated++;
		break;
	case RSM_UNKNOWN:
		return;
	}
	rsm_ready_add(&signal->ready, host);
}

/* From the transport's threads, or from within rsm_report_send(). */
static void report_done(struct rsm *rsm, uint16_t lid, uint32_t number, bool answered)
{
	struct rsm_signal *signal = rsm->signal;
	struct rsm_host *host;

	pthread_mutex_lock(&signal->mutex);
	for (int i = 0; i < signal->n_sent; i++) {
		if (signal->sent[i].host->to.lid == lid && signal->sent[i].number == number) {
			forget_sent(signal, i);
			break;
		}
	}
	/* Several agents at one LID count their notices apart, from numbers that do not meet. */
	for (host = find_host(signal, lid); host && host->to.lid == lid; host = host->twin) {
		if (!answered) {
			lost(rsm, host, number);
		} else if (rsm_queue_answered(host, number)) {
			signal->counts.answered++;
			rsm_ready_add(&signal->ready, host);
		}
	}
	pthread_mutex_unlock(&signal->mutex);
	rsm_wake(rsm);
}

static void fill_report(struct rsm *rsm, const struct rsm_notice *notice, uint32_t number,
			struct repath_sm_report *data)
{
	osm_subn_t *subn = &rsm->osm->subn;
	ib_gid_t gid = { .unicast = { subn->opt.subnet_prefix, subn->sm_port_guid } };

	*data = (struct repath_sm_report) {
		.type = REPATH_SM_TYPE,
		.producer = { 0, 0, REPATH_SM_PRODUCER },
		.trap = cl_hton16(notice->trap),
		.issuer_lid = subn->sm_base_lid,
		.details = {
			.comp_mask = cl_hton64(notice->mask),
			.flags = notice->flags,
			.version = REPATH_SM_VERSION,
			.old_dlid = cl_hton16(notice->old_dlid),
			.sm_epoch = cl_hton32(rsm->epoch),
			.serial = cl_hton32(notice->serial),
			.number = cl_hton32(number),
		},
		.path = notice->path,
	};
	memcpy(data->issuer_gid, &gid, sizeof(gid));
}

static uint32_t timeout_of(const struct rsm *rsm, int attempt)
{
	uint64_t timeout = (uint64_t)rsm->opt.report_timeout << (attempt < 16 ? attempt : 16);

	return timeout < LONGEST_TIMEOUT ? timeout : LONGEST_TIMEOUT;
}

/* Takes one host from the ready ones and sends what is first there. Returns whether it did. */
static bool send_one(struct rsm *rsm, uint64_t now)
{
	struct rsm_signal *signal = rsm->signal;
	struct repath_sm_report data;
	struct rsm_queued *queued;
	struct rsm_host *host;
	osm_mad_addr_t to;
	uint32_t timeout;

	if (signal->n_sent == rsm->opt.window)
		return false;
	host = rsm_ready_take(&signal->ready, now, rsm->opt.host_rate);
	if (!host)
		return false;
	queued = rsm_queue_next(host);
	timeout = timeout_of(rsm, queued->attempts);
	if (queued->attempts++ == 0)
		signal->counts.by_trap[queued->notice.trap == REPATH_SM_REPATH]++;
	queued->sent = true;
	signal->counts.reports++;
	signal->sent[signal->n_sent++] = (struct on_the_way) {
		host, queued->number, now + TRANSPORT_TRIES * timeout + TRANSPORT_SLACK,
	};
	if (rsm_queue_next(host))
		rsm_ready_add(&signal->ready, host);
	fill_report(rsm, &queued->notice, queued->number, &data);
	to = host->to.address;
	pthread_mutex_unlock(&signal->mutex);
	if (rsm_report_send(rsm, &to, &data, timeout))
		report_done(rsm, cl_ntoh16(to.dest_lid), cl_ntoh32(data.details.number), false);
	pthread_mutex_lock(&signal->mutex);
	return true;
}

static void expire(struct rsm *rsm, uint64_t now)
{
	struct rsm_signal *signal = rsm->signal;

	for (int i = 0; i < signal->n_sent;) {
		struct on_the_way late = signal->sent[i];

		if (late.deadline > now) {
			i++;
			continue;
		}
		forget_sent(signal, i);
		lost(rsm, late.host, late.number);
	}
}

static void drop_host(struct rsm_signal *signal, struct rsm_host *host)
{
	for (int i = 0; i < signal->n_sent;) {
		if (signal->sent[i].host == host)
			forget_sent(signal, i);
		else
			i++;
	}
	rsm_ready_remove(&signal->ready, host);
	rsm_host_free(host);
}

/* Another SM speaks now: nothing of ours is true any more. */
static void forget_hosts(struct rsm_signal *signal)
{
	pthread_mutex_lock(&signal->mutex);
	while (signal->n_hosts)
		drop_host(signal, signal->hosts[--signal->n_hosts]);
	pthread_mutex_unlock(&signal->mutex);
}

/* Says what the window and the rates allow now. Returns when there may be more to do, without news. */
static uint64_t go_on(struct rsm *rsm, uint64_t now)
{
	struct rsm_signal *signal = rsm->signal;
	uint64_t next;

	expire(rsm, now);
	while (send_one(rsm, now))
		;
	next = signal->n_sent < rsm->opt.window ? rsm_ready_when(&signal->ready) : RSM_NEVER;
	for (int i = 0; i < signal->n_sent; i++)
		if (signal->sent[i].deadline < next)
			next = signal->sent[i].deadline;
	return next;
}

static uint64_t signal_tick(struct rsm *rsm, uint64_t now)
{
	struct rsm_signal *signal = rsm->signal;
	uint64_t next;

	if (rsm->osm->subn.sm_state != IB_SMINFO_STATE_MASTER)
		forget_hosts(signal);
	pthread_mutex_lock(&signal->mutex);
	next = go_on(rsm, now);
	pthread_mutex_unlock(&signal->mutex);
	return next;
}

/**
 * rsm_signal_push - send at once what the window and the rates allow
 * @rsm: the plugin
 *
 * The rest follows from the plugin's thread.
 */
void rsm_signal_push(struct rsm *rsm)
{
	struct rsm_signal *signal = rsm->signal;
	uint64_t now = rsm_now();

	pthread_mutex_lock(&signal->mutex);
	while (send_one(rsm, now))
		;
	pthread_mutex_unlock(&signal->mutex);
	rsm_wake(rsm);
}

/* Whether an answer is still to come: one that waits for the window, its rate or its repetition counts. */
static bool is_unanswered(const struct rsm_signal *signal)
{
	if (signal->n_sent)
		return true;
	for (const struct rsm_host *host = signal->ready.first; host; host = host->next_ready)
		if (host->queue)
			return true;
	return false;
}

/**
 * rsm_signal_await - wait until every report is answered or given up, or for a time
 * @rsm: the plugin
 * @milliseconds: at most
 *
 * What does not fit into the window, or is not answered, is sent from here, too: the plugin's thread may
 * wait for OpenSM's lock, which the caller has.
 */
void rsm_signal_await(struct rsm *rsm, int milliseconds)
{
	struct rsm_signal *signal = rsm->signal;
	uint64_t now = rsm_now(), until = now + milliseconds, next;
	struct timespec t;

	pthread_mutex_lock(&signal->mutex);
	while (is_unanswered(signal) && now < until) {
		next = go_on(rsm, now);
		if (next > until)
			next = until;
		t = (struct timespec) { next / 1000, next % 1000 * 1000000 };
		if (is_unanswered(signal))
			pthread_cond_timedwait(&signal->answered, &signal->mutex, &t);
		now = rsm_now();
	}
	pthread_mutex_unlock(&signal->mutex);
}

static bool coalesces(const struct rsm *rsm)
{
	if (rsm->opt.coalesce >= 0)
		return rsm->opt.coalesce;
	return rsm->opt.method == RSM_AFFECTED || rsm->opt.method == RSM_AUTO;
}

static bool add(struct rsm *rsm, struct rsm_host *host, const struct rsm_notice *notice)
{
	struct rsm_signal *signal = rsm->signal;

	if (notice->trap == REPATH_SM_UNPATH ? !host->to.unpath : !host->to.repath)
		return false;
	if (rsm->opt.dry_run) {
		rsm_log(rsm, OSM_LOG_INFO, "dry run: trap %u to LID %u: flags %#x mask %#llx DLID %u SL %u, was DLID %u",
			notice->trap, host->to.lid, notice->flags, (unsigned long long)notice->mask,
			cl_ntoh16(notice->path.dlid), cl_ntoh16(notice->path.qos_class_sl) & 15,
			notice->old_dlid);
		return true;
	}
	if (!rsm_queue_add(host, notice, coalesces(rsm), &signal->counts))
		return false;
	rsm_ready_add(&signal->ready, host);
	return true;
}

/**
 * rsm_signal_port - a notice to the subscribers at one LID
 * @rsm: the plugin
 * @lid: of the port
 * @notice: copied
 *
 * Return: whether there was one who wants this trap.
 */
bool rsm_signal_port(struct rsm *rsm, uint16_t lid, const struct rsm_notice *notice)
{
	struct rsm_signal *signal = rsm->signal;
	bool any = false;

	pthread_mutex_lock(&signal->mutex);
	for (struct rsm_host *host = find_host(signal, lid); host; host = host->twin)
		any |= add(rsm, host, notice);
	pthread_mutex_unlock(&signal->mutex);
	return any;
}

/**
 * rsm_signal_all - a notice to every subscriber
 * @rsm: the plugin
 * @notice: copied
 *
 * Return: to how many.
 */
unsigned int rsm_signal_all(struct rsm *rsm, const struct rsm_notice *notice)
{
	struct rsm_signal *signal = rsm->signal;
	unsigned int n = 0;

	pthread_mutex_lock(&signal->mutex);
	for (size_t i = 0; i < signal->n_hosts; i++)
		n += add(rsm, signal->hosts[i], notice);
	pthread_mutex_unlock(&signal->mutex);
	return n;
}

/**
 * rsm_signal_taken - LIDs may have got another owner
 * @rsm: the plugin
 * @is_taken: whether one has an owner
 *
 * That nobody is at a LID any more, which still is to be said, or to be repeated, may not be so by then: whoever has
 * connected to the new owner would be sent to where the old one is.
 */
void rsm_signal_taken(struct rsm *rsm, bool (*is_taken)(const struct rsm *rsm, uint16_t lid))
{
	struct rsm_signal *signal = rsm->signal;

	pthread_mutex_lock(&signal->mutex);
	for (size_t i = 0; i < signal->n_hosts; i++)
		for (struct rsm_queued *q = signal->hosts[i]->queue; q; q = q->next)
			if (q->notice.old_dlid && is_taken(rsm, q->notice.old_dlid))
				q->notice.old_dlid = 0;
	pthread_mutex_unlock(&signal->mutex);
}

static int compare(const struct rsm_subscriber *a, const struct rsm_subscriber *b)
{
	if (a->lid != b->lid)
		return a->lid < b->lid ? -1 : 1;
	return memcmp(&a->address.addr_type.gsi.remote_qp, &b->address.addr_type.gsi.remote_qp,
		      sizeof(a->address.addr_type.gsi.remote_qp));
}

/*
 * Hosts that are still there keep what they are to be told, and the numbers of their notices; and
 * before tables are set, the lane that the tables in use have for reports to them.
 */
static void merge(struct rsm_signal *signal, const struct rsm_subscriber *all, size_t n,
		  struct rsm_host **hosts, bool keep_lanes)
{
	size_t old = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct rsm_host *host;
		uint8_t lane = all[i].address.addr_type.gsi.service_level;

		while (old < signal->n_hosts && compare(&signal->hosts[old]->to, &all[i]) < 0)
			drop_host(signal, signal->hosts[old++]);
		if (old < signal->n_hosts && !compare(&signal->hosts[old]->to, &all[i]))
			host = signal->hosts[old++];
		else
			host = rsm_host_new();
		if (!host)
			continue;
		if (keep_lanes && host->to.lid)
			lane = host->to.address.addr_type.gsi.service_level;
		host->to = all[i];
		host->to.address.addr_type.gsi.service_level = lane;
		host->twin = NULL;
		if (kept && hosts[kept - 1]->to.lid == host->to.lid)
			hosts[kept - 1]->twin = host;
		hosts[kept++] = host;
	}
	while (old < signal->n_hosts)
		drop_host(signal, signal->hosts[old++]);
	free(signal->hosts);
	signal->hosts = hosts;
	signal->n_hosts = kept;
}

/**
 * rsm_signal_refresh - read who has subscribed
 * @rsm: the plugin
 * @lock: what the caller has
 */
void rsm_signal_refresh(struct rsm *rsm, enum rsm_lock lock)
{
	struct rsm_signal *signal = rsm->signal;
	struct rsm_subscriber *all;
	struct rsm_host **hosts;
	size_t n;

	all = rsm_subscribers(rsm, lock, &n);
	hosts = calloc(n ? n : 1, sizeof(*hosts));
	if (hosts) {
		pthread_mutex_lock(&signal->mutex);
		merge(signal, all, n, hosts, lock == RSM_COMPUTING);
		pthread_mutex_unlock(&signal->mutex);
	}
	free(all);
}

/* It says so only of some changes: by handover it becomes standby in silence, and master again. */
static void signal_event(struct rsm *rsm, osm_epi_event_id_t id, void *data)
{
	const osm_subn_t *subn = &rsm->osm->subn;
	bool other = subn->sm_state != IB_SMINFO_STATE_MASTER;

	(void)data;
	if (id == OSM_EVENT_ID_HEAVY_SWEEP_START)
		other |= subn->first_time_master_sweep;
	else if (id != OSM_EVENT_ID_STATE_CHANGE)
		return;
	if (other)
		forget_hosts(rsm->signal);
}

static int signal_start(struct rsm *rsm)
{
	struct rsm_signal *signal = calloc(1, sizeof(*signal));
	pthread_condattr_t attr;

	if (!signal)
		return -ENOMEM;
	signal->sent = calloc(rsm->opt.window, sizeof(*signal->sent));
	if (!signal->sent) {
		free(signal);
		return -ENOMEM;
	}
	pthread_mutex_init(&signal->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&signal->answered, &attr);
	rsm->signal = signal;
	if (!rsm_report_bind(rsm, report_done))
		return 0;
	rsm->signal = NULL;
	free(signal->sent);
	free(signal);
	return -ENODEV;
}

/* The plugin's thread has ended, and with the agent the transport's calls end. */
static void signal_stop(struct rsm *rsm)
{
	struct rsm_signal *signal = rsm->signal;

	rsm_report_unbind();
	while (signal->n_hosts)
		drop_host(signal, signal->hosts[--signal->n_hosts]);
	free(signal->hosts);
	free(signal->sent);
	free(signal);
	rsm->signal = NULL;
}

static void signal_status(struct rsm *rsm, FILE *out)
{
	struct rsm_signal *signal = rsm->signal;
	const struct rsm_counts *counts = &signal->counts;
	size_t queued = 0;

	/* OpenSM does not say when one comes. */
	if (rsm->osm->subn.sm_state == IB_SMINFO_STATE_MASTER)
		rsm_signal_refresh(rsm, RSM_UNLOCKED);
	pthread_mutex_lock(&signal->mutex);
	for (size_t i = 0; i < signal->n_hosts; i++)
		queued += signal->hosts[i]->n_queued;
	fprintf(out,
		"{\"subscribers\":%zu,\"queued\":%zu,\"on_the_way\":%d,\"unpath\":%llu,\"repath\":%llu,"
		"\"reports\":%llu,\"bytes\":%llu,\"answered\":%llu,\"repeated\":%llu,"
		"\"given_up\":%llu,\"outdated\":%llu,\"coalesced\":%llu,\"collapsed\":%llu}",
		signal->n_hosts, queued, signal->n_sent, counts->by_trap[0], counts->by_trap[1],
		counts->reports, counts->reports * MAD_BLOCK_SIZE, counts->answered,
		counts->repeated, counts->given_up, counts->outdated, counts->coalesced, counts->collapsed);
	pthread_mutex_unlock(&signal->mutex);
}

const struct rsm_part rsm_signal_part = {
	.name = "signal",
	.start = signal_start,
	.stop = signal_stop,
	.event = signal_event,
	.tick = signal_tick,
	.status = signal_status,
};
