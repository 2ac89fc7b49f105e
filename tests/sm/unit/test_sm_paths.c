// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is told what, and when, of tables that are computed and set, above all when they could not be
 * compared: then all are told, and all once more when they can be. The parts that sm/paths.c calls
 * are here, and write down what it says.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "check.h"
#include "engine.h"
#include "links.h"
#include "method.h"
#include "plugin.h"
#include "paths.h"
#include "prd.h"
#include "repath_sm.h"
#include "signal.h"
#include "slots.h"
#include "view.h"

/*
 * What was said: u, r to hosts whose paths changed, U, R to all; w: answers are waited for; x: what was known is
 * forgotten.
 */
static char said[32];
static rsm_computed hooked;
static bool compares = true, unpaths = true, ahead, no_view, no_changes;
static bool links_wait;		/* tables lead over a link that is not active yet, */
static bool anybody;		/* and whom to does not matter */
static uint64_t now;		/* milliseconds */
static uint32_t woken;
static bool known;		/* what the distinguisher has compared */
static unsigned long long changed;
static uint32_t moving;
static unsigned int looked;	/* how often hosts that are yet to be told were looked at */

#define TAKEN	77		/* a LID that somebody has */

static void say(char c)
{
	size_t n = strlen(said);

	CHECK(n + 1 < sizeof(said));
	said[n] = c;
	said[n + 1] = '\0';
}

static void is_said(const char *expected)
{
	if (strcmp(said, expected))
		fprintf(stderr, "\"%s\" was said, not \"%s\"\n", said, expected);
	CHECK(!strcmp(said, expected));
	said[0] = '\0';
}

struct rsm_prd *rsm_prd_new(void)
{
	return calloc(1, 1);
}

void rsm_prd_free(struct rsm_prd *prd)
{
	free(prd);
}

void rsm_prd_reset(struct rsm_prd *prd)
{
	(void)prd;
	known = false;
	say('x');
}

int rsm_prd_update(struct rsm_prd *prd, const struct rsm_net *net)
{
	(void)prd;
	CHECK_EQ(net->n_moved, moving);
	CHECK(!moving || (net->moved[0] == 5 && (moving == 1 || net->moved[1] == 6)));
	known = true;
	return 0;
}

int rsm_prd_changes(struct rsm_prd *prd, uint32_t keep, struct rsm_changes *changes)
{
	(void)prd;
	(void)keep;
	if (no_changes)
		return -ENOMEM;
	changes->n = changed;
	return 0;
}

void rsm_prd_hold(struct rsm_prd *prd, const uint16_t *lids, uint32_t n)
{
	(void)prd;
	(void)lids;
	(void)n;
}

void rsm_prd_take_along(struct rsm_prd *prd, uint16_t lid, uint64_t guid)
{
	(void)prd;
	(void)lid;
	(void)guid;
}

void rsm_prd_told(struct rsm_prd *prd)
{
	(void)prd;
}

bool rsm_prd_sm_shares(const struct rsm_prd *prd)
{
	(void)prd;
	return false;
}

uint32_t rsm_prd_walked(const struct rsm_prd *prd)
{
	(void)prd;
	return 0;
}

bool rsm_prd_is_news(const struct rsm_prd *prd, uint16_t lid)
{
	(void)prd;
	return known && lid == TAKEN;
}

bool rsm_prd_has(const struct rsm_prd *prd, uint16_t lid)
{
	(void)prd;
	return lid == TAKEN;
}

size_t rsm_prd_memory(const struct rsm_prd *prd)
{
	(void)prd;
	return 0;
}

void rsm_changes_free(struct rsm_changes *changes)
{
	memset(changes, 0, sizeof(*changes));
}

int rsm_view_make(struct rsm *rsm, struct osm_routing_engine *engine, bool computed,
		  struct rsm_net *net)
{
	(void)rsm;
	(void)engine;
	(void)computed;
	(void)net;
	return no_view ? -ENOMEM : 0;
}

void rsm_view_free(struct rsm_net *net)
{
	(void)net;
}

bool rsm_links_wait(const struct rsm *rsm, bool (*is_news)(const struct rsm *rsm, uint16_t lid))
{
	CHECK_EQ(is_news(rsm, TAKEN + 1), anybody);
	return links_wait && is_news(rsm, TAKEN);
}

uint64_t rsm_now(void)
{
	return now;
}

void rsm_wake(struct rsm *rsm)
{
	(void)rsm;
	woken++;
}

bool rsm_method_compares(const struct rsm *rsm)
{
	(void)rsm;
	return compares;
}

bool rsm_method_unpaths(const struct rsm *rsm)
{
	(void)rsm;
	return unpaths;
}

uint32_t rsm_method_keeps(const struct rsm *rsm)
{
	(void)rsm;
	return UINT32_MAX;
}

void rsm_method_tell_all(struct rsm *rsm, uint16_t trap)
{
	(void)rsm;
	say(trap == REPATH_SM_UNPATH ? 'U' : 'R');
}

bool rsm_method_tell(struct rsm *rsm, uint16_t trap, const struct rsm_changes *changes)
{
	(void)rsm;
	CHECK_EQ(changes->n, changed);
	say(trap == REPATH_SM_UNPATH ? 'u' : 'r');
	return ahead;
}

void rsm_signal_refresh(struct rsm *rsm, enum rsm_lock lock)
{
	(void)rsm;
	(void)lock;
}

unsigned int rsm_slots_expected(uint16_t *lids)
{
	(void)lids;
	return 0;
}

/* Whoever is to be told that nobody is at a LID hears it of those where nobody is. */
void rsm_signal_taken(struct rsm *rsm, bool (*is_taken)(const struct rsm *rsm, uint16_t lid))
{
	CHECK(is_taken(rsm, TAKEN) && !is_taken(rsm, TAKEN + 1));
	looked++;
}

void rsm_signal_push(struct rsm *rsm)
{
	(void)rsm;
}

void rsm_signal_await(struct rsm *rsm, int milliseconds)
{
	(void)rsm;
	(void)milliseconds;
	say('w');
}

void rsm_engines_hook(struct rsm *rsm, rsm_computed computed)
{
	(void)rsm;
	hooked = computed;
}

struct rsm_engine_cpu rsm_engine_cpu(const struct osm_routing_engine *engine)
{
	(void)engine;
	return (struct rsm_engine_cpu) { 0 };
}

uint64_t rsm_microseconds(void)
{
	return 0;
}

void osm_log(IN osm_log_t *const log, IN const osm_log_level_t level, IN const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

static osm_opensm_t osm;
static struct rsm rsm = { .osm = &osm };

static void event(osm_epi_event_id_t id)
{
	rsm_paths_part.event(&rsm, id, NULL);
}

static void compute(unsigned long long n)
{
	changed = n;
	event(OSM_EVENT_ID_HEAVY_SWEEP_START);
	hooked(&rsm, NULL, 1);
}

static void set(void)
{
	rsm_paths_part.event(&rsm, OSM_EVENT_ID_UCAST_ROUTING_DONE, (void *)UCAST_ROUTING_HEAVY_SWEEP);
}

static void route(unsigned long long n, const char *expected)
{
	compute(n);
	set();
	is_said(expected);
}

static void start(void)
{
	compares = unpaths = true;
	ahead = no_view = no_changes = false;
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	CHECK_EQ(rsm_paths_part.start(&rsm), 0);
}

static void stop(void)
{
	rsm_paths_part.stop(&rsm);
	said[0] = '\0';
}

static void compared(void)
{
	start();
	route(0, "");
	route(3, "ur");
	/* Some are told what will be: OpenSM waits until they have heard it, but not when it is there. */
	ahead = true;
	route(3, "uwr");
	unpaths = false;
	route(3, "r");
	/* Computed twice before any is set: what hosts are told is the last. */
	compute(3);
	compute(0);
	set();
	is_said("");
	/* OpenSM's cache of routes computes nothing. */
	changed = 2;
	set();
	is_said("r");
	/* A method that does not compare: each time. */
	compares = false;
	route(0, "r");
	stop();
}

/* @failing: of the two things that take memory. */
static void without_memory(bool *failing)
{
	start();
	route(3, "ur");
	*failing = true;
	route(3, "xR");
	route(0, "xR");
	*failing = false;
	/* What is new is not compared with what they were told; the next again is. */
	route(0, "R");
	route(0, "");
	route(3, "ur");

	/* Not compared, and then, before it is set, compared with nothing. */
	*failing = true;
	compute(3);
	*failing = false;
	compute(0);
	set();
	is_said("xR");
	route(0, "");

	/* Compared, and then not. */
	unpaths = false;
	compute(3);
	*failing = true;
	compute(3);
	set();
	is_said("xR");
	*failing = false;
	route(0, "R");
	route(0, "");

	/* With OpenSM's cache of routes. */
	*failing = true;
	set();
	is_said("xR");
	*failing = false;
	set();
	is_said("R");
	changed = 1;
	set();
	is_said("r");
	stop();
}

static void move(uint16_t other, unsigned long long n, const char *expected)
{
	uint32_t before = rsm.serial;

	moving = other ? 2 : 1;
	changed = n;
	rsm_paths_moved(&rsm, 5, other);
	moving = 0;
	/* Who is told is told by a serial number of its own: reports come late. */
	CHECK_EQ(rsm.serial, before + (strpbrk(expected, "rR") != NULL));
	is_said(expected);
}

/* VMs move between sweeps: by RePath, and only if paths are others. */
static void moved(void)
{
	start();
	route(0, "");
	move(6, 3, "r");
	move(0, 2, "r");
	move(6, 0, "");
	route(0, "");
	/* What is computed is compared with it, and told when it is set. */
	compute(3);
	is_said("u");
	move(6, 3, "");
	set();
	is_said("r");
	compares = false;
	move(6, 0, "r");
	compares = true;

	no_changes = true;
	move(6, 3, "xR");
	no_changes = false;
	move(6, 0, "R");
	route(0, "R");
	move(6, 0, "");
	move(6, 3, "r");

	osm.subn.sm_state = IB_SMINFO_STATE_STANDBY;
	event(OSM_EVENT_ID_STATE_CHANGE);
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	move(6, 0, "x");
	stop();
}

/* To be freed. */
static char *status(void)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	rsm_paths_part.status(&rsm, out);
	fclose(out);
	return text;
}

static unsigned long long routed(bool told)
{
	const char *what = told ? "\"told\":" : "\"routings\":";
	unsigned long long n;
	char *text = status();

	CHECK(strstr(text, what));
	n = strtoull(strstr(text, what) + strlen(what), NULL, 10);
	free(text);
	return n;
}

static void has_waited(unsigned long long waits, unsigned long long late, unsigned long long ms)
{
	char *text = status(), expected[80];

	snprintf(expected, sizeof(expected), "\"waits\":%llu,\"late\":%llu,\"waited_ms\":%llu,", waits, late, ms);
	CHECK(strstr(text, expected));
	free(text);
}

static uint64_t tick(void)
{
	return rsm_paths_part.tick(&rsm, now);
}

/* RePath is not before the links that it leads over are active, which is near the end of a sweep. */
static void links(void)
{
	start();
	rsm.opt.link_wait = 500;
	route(0, "");
	links_wait = true;
	now = 1000;
	woken = 0;
	route(0, "");
	CHECK(!woken && tick() == RSM_NEVER);
	route(3, "u");
	CHECK(woken && tick() == 1020);
	CHECK_EQ(routed(true), routed(false) - 1);
	has_waited(1, 0, 0);
	links_wait = false;
	now = 1200;
	CHECK(tick() == RSM_NEVER);
	is_said("r");
	CHECK_EQ(routed(true), routed(false));
	has_waited(1, 0, 200);
	event(OSM_EVENT_ID_SUBNET_UP);
	is_said("");

	/* They are not made active: at the end of the sweep, or when it has lasted too long. */
	links_wait = true;
	route(3, "u");
	now = 1300;
	event(OSM_EVENT_ID_SUBNET_UP);
	is_said("r");
	has_waited(2, 1, 100);
	route(3, "u");
	now = 1799;
	CHECK(tick() == 1800);
	is_said("");
	now = 1800;
	CHECK(tick() == RSM_NEVER);
	is_said("r");
	has_waited(3, 2, 500);

	/* OpenSM as it is has an end for each sweep. One that has none: with the next, or where it only routes anew. */
	route(3, "u");
	event(OSM_EVENT_ID_HEAVY_SWEEP_START);
	is_said("r");
	route(3, "u");
	changed = 4;
	hooked(&rsm, NULL, 1);
	is_said("u");
	now = 10000;
	CHECK(tick() == RSM_NEVER);
	is_said("");
	rsm_paths_part.event(&rsm, OSM_EVENT_ID_UCAST_ROUTING_DONE, (void *)UCAST_ROUTING_REROUTE);
	is_said("r");

	/* A VM that moves meanwhile, with its port or without: what is said first is of when it was not there. */
	route(3, "u");
	rsm_paths_take_along(&rsm, 5, 1);
	is_said("r");
	route(3, "u");
	move(6, 3, "rr");
	CHECK(tick() == RSM_NEVER);
	has_waited(7, 5, 0);

	/* What could not be compared may lead over any. */
	anybody = true;
	no_view = true;
	route(3, "x");
	no_view = false;
	event(OSM_EVENT_ID_SUBNET_UP);
	is_said("R");
	links_wait = false;
	route(0, "R");
	route(0, "");
	links_wait = true;
	anybody = false;

	/* Another subnet manager has the subnet: it tells. */
	route(3, "u");
	osm.subn.sm_state = IB_SMINFO_STATE_STANDBY;
	event(OSM_EVENT_ID_STATE_CHANGE);
	now = 20000;
	CHECK(tick() == RSM_NEVER);
	is_said("x");
	CHECK_EQ(routed(true), routed(false));
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	route(3, "u");
	osm.subn.first_time_master_sweep = TRUE;
	event(OSM_EVENT_ID_HEAVY_SWEEP_START);
	osm.subn.first_time_master_sweep = FALSE;
	is_said("x");

	/* Who does not compare waits for each link; and nobody if that is switched off. */
	compares = unpaths = false;
	anybody = true;
	route(0, "");
	event(OSM_EVENT_ID_SUBNET_UP);
	is_said("r");
	rsm.opt.link_wait = 0;
	route(0, "r");
	links_wait = false;
	stop();
}

/* Another subnet manager is master meanwhile: who comes back knows nothing of what it has told. */
static void standby(void)
{
	start();
	no_view = true;
	route(3, "xR");
	osm.subn.sm_state = IB_SMINFO_STATE_STANDBY;
	event(OSM_EVENT_ID_STATE_CHANGE);
	is_said("");
	no_view = false;
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	event(OSM_EVENT_ID_STATE_CHANGE);
	route(0, "x");
	route(3, "ur");

	/* By handover, there and back: OpenSM has no event for either. */
	osm.subn.first_time_master_sweep = TRUE;
	route(0, "x");
	osm.subn.first_time_master_sweep = FALSE;
	route(0, "");
	/* It looks around when the other one is gone, and is master before tables are computed. */
	osm.subn.sm_state = IB_SMINFO_STATE_DISCOVERING;
	event(OSM_EVENT_ID_HEAVY_SWEEP_START);
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	hooked(&rsm, NULL, 1);
	set();
	is_said("x");
	stop();
}

int main(void)
{
	cl_plock_init(&osm.lock);
	compared();
	without_memory(&no_view);
	without_memory(&no_changes);
	standby();
	moved();
	links();
	CHECK(looked);
	cl_plock_destroy(&osm.lock);
	puts("ok");
	return 0;
}
