// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hosts that do not answer, beside one that does: sm/signal.c with its queues. Hosts, the transport and the
 * clock are the test's.
 */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "plugin.h"
#include "report.h"
#include "signal.h"
#include "subscribers.h"

#define WINDOW	64
#define LIMIT	8
#define LIVE	9
#define MOST	4096

/* A report that was sent, and what the transport has said of it. */
struct sent {
	uint16_t lid;
	uint32_t number;
	bool done;
	uint16_t old_dlid;
};

static osm_opensm_t osm;
static struct rsm rsm = {
	.osm = &osm,
	.opt = { .window = WINDOW, .report_limit = LIMIT, .report_timeout = 200 },
};
static struct sent sent[MOST];
static unsigned int n_sent;
static rsm_report_done done;
/* Gone by since any machine has started: nobody who waits until then by the system's clock waits. */
static uint64_t now = 1000;
static unsigned int per_look;
static uint16_t n_hosts;

uint64_t rsm_now(void)
{
	return now += per_look;
}

void rsm_wake(struct rsm *r)
{
	(void)r;
}

int rsm_report_bind(struct rsm *r, rsm_report_done call)
{
	(void)r;
	done = call;
	return 0;
}

void rsm_report_unbind(void)
{
}

int rsm_report_send(struct rsm *r, const osm_mad_addr_t *to, const struct repath_sm_report *data,
		    uint32_t timeout)
{
	(void)r;
	(void)timeout;
	CHECK(n_sent < MOST);
	sent[n_sent++] = (struct sent) { cl_ntoh16(to->dest_lid), cl_ntoh32(data->details.number), false,
					  cl_ntoh16(data->details.old_dlid) };
	return 0;
}

/* At LIDs LIVE, LIVE + 1 ... */
struct rsm_subscriber *rsm_subscribers(struct rsm *r, enum rsm_lock lock, size_t *n)
{
	struct rsm_subscriber *all = calloc(n_hosts + 1, sizeof(*all));

	(void)r;
	(void)lock;
	for (*n = 0; *n < n_hosts; ++*n) {
		all[*n] = (struct rsm_subscriber) { .lid = LIVE + *n, .unpath = true, .repath = true };
		all[*n].address.dest_lid = cl_hton16(LIVE + *n);
	}
	return all;
}

void osm_log(IN osm_log_t *const log, IN const osm_log_level_t level, IN const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

static void start(uint16_t hosts)
{
	n_sent = 0;
	n_hosts = hosts;
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	osm.subn.first_time_master_sweep = FALSE;
	CHECK_EQ(rsm_signal_part.start(&rsm), 0);
	rsm_signal_refresh(&rsm, RSM_UNLOCKED);
}

static void stop(void)
{
	rsm_signal_part.stop(&rsm);
}

static void queue(uint16_t lid, uint16_t first, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct rsm_notice notice = {
			.trap = REPATH_SM_REPATH,
			.mask = REPATH_SM_MASK_DLID,
			.path.dlid = cl_hton16(first + i),
		};

		CHECK(rsm_signal_port(&rsm, lid, &notice));
	}
}

static uint64_t tick(void)
{
	return rsm_signal_part.tick(&rsm, now);
}

static unsigned int in_flight(uint16_t lid)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < n_sent; i++)
		n += !sent[i].done && (!lid || sent[i].lid == lid);
	return n;
}

/* The transport says of the oldest one to a host what became of it. */
static void tell(uint16_t lid, bool answered)
{
	for (unsigned int i = 0; i < n_sent; i++) {
		if (sent[i].done || sent[i].lid != lid)
			continue;
		sent[i].done = true;
		done(&rsm, lid, sent[i].number, answered);
		return;
	}
	CHECK(!"on its way");
}

/* Two of three hang, with as many paths as the window takes. */
static void hung(void)
{
	start(3);
	queue(LIVE + 1, 100, WINDOW / 2);
	queue(LIVE + 2, 100, WINDOW / 2);
	rsm_signal_push(&rsm);
	CHECK(in_flight(LIVE + 1) == WINDOW / 2 && in_flight(LIVE + 2) == WINDOW / 2);
	queue(LIVE, 100, 1);
	rsm_signal_push(&rsm);
	CHECK_EQ(in_flight(LIVE), 0);
	for (int i = 0; i < WINDOW / 2; i++) {
		tell(LIVE + 1, false);
		tell(LIVE + 2, false);
		tick();
	}
	/* From now on who lives finds room, however often the others are told again. */
	while (in_flight(LIVE + 1) || in_flight(LIVE + 2)) {
		CHECK(in_flight(LIVE + 1) <= 1 && in_flight(LIVE + 2) <= 1);
		CHECK(in_flight(LIVE));
		tell(LIVE, true);
		queue(LIVE, 100, 1);
		tick();
		CHECK_EQ(in_flight(LIVE), 1);
		for (uint16_t lid = LIVE + 1; lid <= LIVE + 2; lid++)
			if (in_flight(lid))
				tell(lid, false);
		tick();
	}
	stop();
}

/* Who lives again is told all that is left at once. */
static void awake(void)
{
	start(2);
	queue(LIVE + 1, 100, WINDOW);
	rsm_signal_push(&rsm);
	for (int i = 0; i < WINDOW; i++)
		tell(LIVE + 1, false);
	tick();
	CHECK_EQ(in_flight(0), 1);
	tell(LIVE + 1, true);
	tick();
	CHECK_EQ(in_flight(0), WINDOW - 1);
	while (in_flight(0))
		tell(LIVE + 1, true);
	tick();
	CHECK_EQ(in_flight(0), 0);
	stop();
}

static unsigned int subscribers(void)
{
	char text[1024] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	unsigned int n = 99;

	CHECK(out);
	rsm_signal_part.status(&rsm, out);
	fclose(out);
	CHECK(sscanf(text, "{\"subscribers\":%u", &n) == 1);
	return n;
}

/* Handed over without a word: what was true of the old tables is not said again. */
static void handed_over(void)
{
	start(2);
	queue(LIVE, 100, 2 * WINDOW);
	rsm_signal_push(&rsm);
	osm.subn.sm_state = IB_SMINFO_STATE_STANDBY;
	tell(LIVE, true);
	tick();
	CHECK(n_sent == WINDOW && !subscribers());
	/* Answers that come still are nobody's. */
	tell(LIVE, true);
	tell(LIVE, false);
	CHECK_EQ(tick(), RSM_NEVER);
	stop();

	/* There and back before the plugin looks, or OpenSM lets others have the lock. */
	start(2);
	queue(LIVE, 100, 2 * WINDOW);
	rsm_signal_push(&rsm);
	osm.subn.first_time_master_sweep = TRUE;
	rsm_signal_part.event(&rsm, OSM_EVENT_ID_HEAVY_SWEEP_START, NULL);
	for (int i = 0; i < WINDOW; i++)
		tell(LIVE, true);
	tick();
	CHECK_EQ(n_sent, WINDOW);
	/* What the first sweep of the new master finds is said. */
	rsm_signal_refresh(&rsm, RSM_UNLOCKED);
	queue(LIVE + 1, 7, 1);
	tick();
	CHECK(n_sent == WINDOW + 1 && sent[WINDOW].lid == LIVE + 1);
	osm.subn.first_time_master_sweep = FALSE;
	rsm_signal_part.event(&rsm, OSM_EVENT_ID_HEAVY_SWEEP_START, NULL);
	tell(LIVE + 1, false);
	tick();
	CHECK_EQ(n_sent, WINDOW + 2);
	stop();
}

/*
 * Who waits for answers waits also while one is to be sent again, or has found no room, and sends it himself: the
 * plugin's thread may be held up by the lock that he has.
 */
static void awaited(void)
{
	uint64_t until;

	start(1);
	queue(LIVE, 100, 1);
	rsm_signal_push(&rsm);
	tell(LIVE, false);
	CHECK_EQ(in_flight(LIVE), 0);
	per_look = 1;
	until = now + 20;
	rsm_signal_await(&rsm, 20);
	CHECK(now >= until);
	CHECK_EQ(in_flight(LIVE), 1);
	tell(LIVE, true);
	until = now + 20;
	rsm_signal_await(&rsm, 20);
	CHECK(now < until);

	queue(LIVE, 100, WINDOW + 2);
	rsm_signal_push(&rsm);
	CHECK_EQ(in_flight(LIVE), WINDOW);
	tell(LIVE, true);
	rsm_signal_await(&rsm, 20);
	CHECK_EQ(in_flight(LIVE), WINDOW);
	/* The transport has forgotten them all. */
	per_look = 1000;
	rsm_signal_await(&rsm, 10000);
	CHECK(in_flight(LIVE) > WINDOW);
	per_look = 0;
	stop();
}

static bool is_taken(const struct rsm *r, uint16_t lid)
{
	(void)r;
	return lid == 50;
}

/* A LID that was free when that was said for the first time is somebody's when it is said again. */
static void taken(void)
{
	struct rsm_notice notice = {
		.trap = REPATH_SM_REPATH,
		.flags = REPATH_SM_MOVED,
		.mask = REPATH_SM_MASK_DLID | REPATH_SM_MASK_DGID,
	};

	start(1);
	for (uint16_t i = 0; i < 2; i++) {
		notice.old_dlid = 50 + i;
		notice.path.dlid = cl_hton16(60 + i);
		CHECK(rsm_signal_port(&rsm, LIVE, &notice));
	}
	rsm_signal_push(&rsm);
	CHECK(n_sent == 2 && sent[0].old_dlid == 50 && sent[1].old_dlid == 51);
	rsm_signal_taken(&rsm, is_taken);
	tell(LIVE, false);
	tell(LIVE, false);
	tick();
	CHECK(n_sent == 3 && !sent[2].old_dlid);
	tell(LIVE, true);
	tick();
	CHECK(n_sent == 4 && sent[3].old_dlid == 51);
	tell(LIVE, true);
	tick();
	CHECK_EQ(n_sent, 4);
	stop();
}

/* The option file has this line more. The test's own options stay. */
static void set(const char *line)
{
	char path[] = "/tmp/test_sm_signal.XXXXXX", why[512];
	struct rsm_options opt;
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line) && !close(fd));
	CHECK_EQ(rsm_options_read(&opt, path, why, sizeof(why)), 0);
	unlink(path);
	rsm.opt.method = opt.method;
	rsm.opt.coalesce = opt.coalesce;
	rsm.opt.host_rate = opt.host_rate;
}

/* How many of three RePaths about everything, which are said while the window is full, are sent when it is not. */
static unsigned int sent_of_three(const char *method, const char *coalesce)
{
	const struct rsm_notice all = { .trap = REPATH_SM_REPATH };
	char lines[128];

	snprintf(lines, sizeof(lines), "host_rate 0\nmethod %s\n%s\n", method, coalesce);
	set(lines);
	start(1);
	queue(LIVE, 100, WINDOW);
	rsm_signal_push(&rsm);
	for (int i = 0; i < 3; i++)
		CHECK(rsm_signal_port(&rsm, LIVE, &all));
	while (in_flight(LIVE))
		tell(LIVE, true);
	tick();
	stop();
	return n_sent - WINDOW;
}

/* One says as much as three. The papers' methods send all of them, unless the option says something else. */
static void coalesced(void)
{
	static const struct {
		const char *method;
		unsigned int sent;
	} is[] = {
		{ "wildcard", 3 }, { "repath-only", 3 }, { "hybrid", 3 }, { "affected", 1 }, { "auto", 1 },
	};

	for (size_t i = 0; i < sizeof(is) / sizeof(*is); i++) {
		CHECK_EQ(sent_of_three(is[i].method, ""), is[i].sent);
		CHECK_EQ(sent_of_three(is[i].method, "coalesce auto"), is[i].sent);
		CHECK_EQ(sent_of_three(is[i].method, "coalesce off"), 3);
		CHECK_EQ(sent_of_three(is[i].method, "coalesce on"), 1);
	}
}

/* Each host has its own rate, after some in a row. Nothing else has to happen for the next one. */
static void rated(void)
{
	uint64_t next;

	set("host_rate 100\n");
	start(2);
	queue(LIVE, 100, 20);
	queue(LIVE + 1, 100, 1);
	rsm_signal_push(&rsm);
	CHECK_EQ(in_flight(LIVE), 16);
	CHECK_EQ(in_flight(LIVE + 1), 1);
	while (in_flight(LIVE))
		tell(LIVE, true);
	for (int i = 1; i <= 4; i++) {
		next = tick();
		CHECK_EQ(n_sent, 16 + i);
		CHECK(next >= now + 10 && next <= now + 11);
		now += 9;
		tick();
		CHECK_EQ(n_sent, 16 + i);
		now += 1;
	}
	tick();
	CHECK_EQ(n_sent, 16 + 4 + 1);
	stop();

	set("host_rate 0\n");
	start(1);
	queue(LIVE, 100, 20);
	rsm_signal_push(&rsm);
	CHECK_EQ(in_flight(LIVE), 20);
	stop();
}

int main(void)
{
	taken();
	hung();
	awaited();
	awake();
	handed_over();
	coalesced();
	rated();
	puts("ok");
	return 0;
}
