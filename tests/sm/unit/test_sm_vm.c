// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When moves of VMs are made, and what is answered to who asks for them: what sm/vm.c and its parts call is here, and
 * the clock. What a move writes is test_vms.py's.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "check.h"
#include "engine.h"
#include "paths.h"
#include "plugin.h"
#include "slots.h"
#include "smp.h"
#include "vm.h"
#include "vm_socket.h"
#include "vm_learn.h"
#include "vm_list.h"
#include "vm_words.h"

#define WHO	7

static osm_opensm_t osm;
static struct rsm rsm = { .osm = &osm, .opt.vswitch = RSM_VSWITCH_PREPOPULATED };
static struct rsm_vm_line asked[8];
static unsigned int n_asked, started, went_on, planned, kept, repeated, compared;
static char answers[8][512];
static unsigned int n_answers;
static uint64_t now = 1000000;
static bool computes, answered, in_turn, unheard, stays;
static int outstanding;
static void (*when_locked)(void);

uint64_t rsm_now(void)
{
	return now;
}

uint64_t rsm_microseconds(void)
{
	return now * 1000;
}

void rsm_wake(struct rsm *r)
{
	(void)r;
}

bool rsm_engine_computes(void)
{
	return computes;
}

int rsm_smp_outstanding(struct rsm *r)
{
	(void)r;
	return outstanding;
}

int rsm_vm_socket_open(struct rsm *r, const char *path)
{
	(void)r;
	(void)path;
	return 0;
}

void rsm_vm_socket_close(void)
{
}

bool rsm_vm_socket_next(struct rsm_vm_line *line)
{
	if (!n_asked)
		return false;
	*line = asked[0];
	memmove(asked, asked + 1, --n_asked * sizeof(*asked));
	return true;
}

void rsm_vm_socket_answer(uint32_t who, const char *text)
{
	CHECK(who == WHO && n_answers < 8);
	snprintf(answers[n_answers++], sizeof(answers[0]), "%s", text);
}

int rsm_vm_words(char *line, struct rsm_vm_words *words, char *why, size_t size)
{
	static char vm[16], place[16];
	char verb[16];

	(void)why;
	(void)size;
	*words = (struct rsm_vm_words) { .vm = vm, .place = place };
	CHECK(sscanf(line, "%15s %15s %15s", verb, vm, place) >= 2);
	words->verb = !strcmp(verb, "move") ? RSM_VM_MOVE : !strcmp(verb, "begin") ? RSM_VM_BEGIN :
		      !strcmp(verb, "end") ? RSM_VM_END : RSM_VM_CANCEL;
	return 0;
}

int rsm_vm_find(struct rsm *r, const char *word, struct rsm_vm_move *move, char *why, size_t size)
{
	(void)r;
	(void)why;
	(void)size;
	move->lid = atoi(word);
	move->carried = !stays;
	return 0;
}

int rsm_vm_find_place(struct rsm *r, const char *word, rsm_vm_taken taken, void *context,
		      struct rsm_vm_move *move, char *why, size_t size)
{
	(void)r;
	move->to = (struct rsm_place) { atoi(word), 1 };
	if (!taken(context, &move->to))
		return 0;
	snprintf(why, size, "another comes there");
	return -EEXIST;
}

bool rsm_place_is(const struct rsm_place *a, const struct rsm_place *b)
{
	return a->sw == b->sw && a->port == b->port;
}

struct osm_port *rsm_place_port(struct rsm *r, const struct rsm_place *place)
{
	(void)r;
	(void)place;
	return NULL;
}

uint64_t rsm_vm_guid(const struct osm_port *port)
{
	(void)port;
	return 0;
}

int rsm_vm_set_guid(struct rsm *r, struct osm_port *port, uint64_t guid)
{
	(void)r;
	(void)port;
	(void)guid;
	return 0;
}

int rsm_vm_plan(struct rsm *r, struct rsm_vm_move *move, char *why, size_t size)
{
	(void)r;
	(void)move;
	(void)why;
	(void)size;
	planned++;
	return 0;
}

void rsm_vm_start(struct rsm *r, struct rsm_vm_move *move)
{
	(void)r;
	move->state = RSM_VM_WRITING;
	started++;
}

bool rsm_vm_go_on(struct rsm *r, struct rsm_vm_move *move)
{
	(void)r;
	move->unheard = unheard;
	went_on++;
	return answered;
}

void rsm_paths_moved(struct rsm *r, uint16_t lid, uint16_t other)
{
	(void)r;
	CHECK(lid == 5 && !other && !n_answers);
	compared++;
}

int rsm_vm_address_start(struct rsm *r)
{
	(void)r;
	return 0;
}

void rsm_vm_learn(struct rsm *r)
{
	(void)r;
}

void rsm_vm_learn_free(void)
{
}

void rsm_vm_list(struct rsm *r, uint32_t who, const char *after)
{
	(void)r;
	(void)who;
	(void)after;
}

void rsm_vm_repeat(struct rsm *r)
{
	(void)r;
	repeated++;
}

void rsm_vm_fabric_changed(void)
{
}

void rsm_vm_free(void)
{
}

void rsm_move_plan_free(struct rsm_move_plan *plan)
{
	(void)plan;
}

bool rsm_move_plans_meet(const struct rsm_move_plan *a, const struct rsm_move_plan *b)
{
	(void)a;
	(void)b;
	return in_turn;
}

bool rsm_slots_expect(uint16_t lid, const struct rsm_place *place, const struct rsm_place *from)
{
	(void)lid;
	(void)place;
	(void)from;
	kept++;
	return true;
}

bool rsm_slots_forget(uint16_t lid)
{
	(void)lid;
	return kept && kept--;
}

static uint64_t late_at;

uint64_t rsm_slots_due(void)
{
	return late_at ? late_at : RSM_NEVER;
}

bool rsm_slots_are_late(uint64_t at)
{
	bool late = late_at <= at;

	late_at = 0;
	return late;
}

bool rsm_slots_awaits(const struct rsm_place *place, uint16_t lid)
{
	(void)place;
	(void)lid;
	return false;
}

void rsm_slots_free(void)
{
}

struct rsm_slots_counts rsm_slots_counts(void)
{
	return (struct rsm_slots_counts) { 0 };
}

void osm_log(IN osm_log_t *const log, IN const osm_log_level_t level, IN const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

/* What OpenSM's lock is made of: until it is got, OpenSM may do what it likes. */
int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	(void)lock;
	if (when_locked)
		when_locked();
	when_locked = NULL;
	return 0;
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	(void)lock;
	return 0;
}

static uint64_t tick(uint64_t milliseconds)
{
	now += milliseconds;
	return rsm_vm_part.tick(&rsm, now);
}

static void event(osm_epi_event_id_t id)
{
	rsm_vm_part.event(&rsm, id, NULL);
}

static void ask(const char *text)
{
	asked[n_asked].who = WHO;
	snprintf(asked[n_asked++].text, sizeof(asked[0].text), "%s", text);
}

static void hears(const char *part)
{
	CHECK(n_answers > 0);
	if (!strstr(answers[0], part))
		fprintf(stderr, "\"%s\" is not in \"%s\"\n", part, answers[0]);
	CHECK(strstr(answers[0], part));
	memmove(answers, answers + 1, --n_answers * sizeof(answers[0]));
}

static void begin(void)
{
	osm.lock.state = CL_INITIALIZED;
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	osm.subn.first_time_master_sweep = FALSE;
	n_asked = compared = repeated = started = went_on = planned = kept = n_answers = 0;
	computes = in_turn = unheard = stays = false;
	answered = true;
	outstanding = 0;
	CHECK_EQ(rsm_vm_part.start(&rsm), 0);
}

static void end(void)
{
	CHECK_EQ(n_answers, 0);
	event(OSM_EVENT_ID_SUBNET_UP);
	rsm_vm_part.stop(&rsm);
}

static void becomes_standby(void)
{
	osm.subn.sm_state = IB_SMINFO_STATE_STANDBY;
}

static void becomes_master_anew(void)
{
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	osm.subn.first_time_master_sweep = TRUE;
}

/* As a HANDOVER makes it, before it sweeps. */
static void is_handed_the_subnet(void)
{
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	osm.subn.force_first_time_master_sweep = TRUE;
}

static void sweeps(void)
{
	event(OSM_EVENT_ID_HEAVY_SWEEP_START);
}

/* What waits is not made by the tables of who is master no more. @changes is not, unless it comes with the lock. */
static void handed_over(void (*changes)(void), bool late)
{
	begin();
	sweeps();
	ask("move 5 9");
	ask("begin 6 8");
	tick(0);
	hears("begun");
	CHECK_EQ(n_answers, 0);
	if (late) {
		event(OSM_EVENT_ID_SUBNET_UP);
		when_locked = changes;
	} else {
		changes();
	}
	/* A sweep that has found another master does not end. */
	tick(late ? 1 : 60000);
	hears("the subnet is not up");
	CHECK(!started && !went_on);
	/* Who comes back knows of the one that had begun, and nothing of the other. */
	osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	osm.subn.first_time_master_sweep = osm.subn.force_first_time_master_sweep = FALSE;
	event(OSM_EVENT_ID_SUBNET_UP);
	ask("end 5");
	ask("end 6");
	tick(1);
	hears("no move of it has begun");
	hears("\"moved\",\"lid\":6");
	CHECK_EQ(started, 1);
	end();
}

/* One that is under way is not gone on with, either, nor one that waits for it. */
static void handed_over_meanwhile(void)
{
	begin();
	answered = false;
	in_turn = true;
	ask("move 5 9");
	ask("move 6 8");
	tick(0);
	CHECK_EQ(started, 1);
	went_on = 0;
	becomes_standby();
	answered = true;
	tick(1);
	hears("the subnet is not up: another subnet manager may have it\",\"state\":\"unfinished\"}");
	hears("the subnet is not up: another subnet manager may have it\"}");
	CHECK(started == 1 && !went_on);
	end();
}

/* However long a sweep takes: while an engine computes, and while answers are awaited. */
static void long_sweep(void)
{
	begin();
	sweeps();
	ask("move 5 9");
	outstanding = 1;
	for (int i = 0; i < 30000; i++)
		CHECK(tick(1) != RSM_NEVER);
	outstanding = 0;
	computes = true;
	for (int i = 0; i < 30000; i++)
		tick(1);
	computes = false;
	for (int i = 0; i < 100; i++)
		tick(1);
	CHECK(!started && !n_answers);
	event(OSM_EVENT_ID_SUBNET_UP);
	tick(1);
	hears("moved");
	CHECK_EQ(started, 1);

	/* Asked for late in one. */
	sweeps();
	now += 60000;
	ask("move 5 9");
	for (int i = 0; i < 100; i++)
		tick(1);
	CHECK_EQ(started, 1);
	event(OSM_EVENT_ID_SUBNET_UP);
	tick(1);
	hears("moved");
	end();
}

/* One that never says that it has ended, and does nothing any more. */
static void broken_sweep(void)
{
	begin();
	sweeps();
	ask("move 5 9");
	outstanding = 3;
	for (int i = 0; i < 20000; i++)
		tick(1);
	outstanding = 0;
	CHECK(!n_answers);
	for (int i = 0; i < 60000 && !n_answers; i++)
		tick(1);
	hears("moved");
	end();
}

/* It begins while the lock is waited for. */
static void sweep_with_the_lock(void)
{
	begin();
	ask("move 5 9");
	tick(0);
	hears("moved");
	sweeps();
	ask("move 5 9");
	tick(0);
	event(OSM_EVENT_ID_SUBNET_UP);
	when_locked = sweeps;
	tick(1);
	CHECK(started == 1 && !n_answers);
	event(OSM_EVENT_ID_SUBNET_UP);
	tick(1);
	hears("moved");
	end();
}

/* That something was sent is told apart from that nothing was. */
static void unfinished(void)
{
	unsigned int n = 0;

	begin();
	answered = false;
	in_turn = true;
	ask("move 5 9");
	ask("move 6 9");
	ask("move 6 8");
	tick(0);
	hears("{\"error\":\"another comes there\"}");
	while (!n_answers && n++ < 60000)
		tick(1);
	hears("{\"error\":\"some switches give no answer: OpenSM will sweep\",\"state\":\"unfinished\"}");
	answered = true;
	unheard = true;
	tick(1);
	tick(1);
	hears("{\"error\":\"a hypervisor gives no answer: OpenSM will sweep\",\"state\":\"unfinished\"}");
	/* What was not heard is said again behind each sweep, whether somebody wants something or not. */
	CHECK_EQ(repeated, 0);
	event(OSM_EVENT_ID_SUBNET_UP);
	tick(0);
	tick(1);
	CHECK_EQ(repeated, 1);
	sweeps();
	tick(1);
	CHECK_EQ(repeated, 1);
	event(OSM_EVENT_ID_SUBNET_UP);
	tick(1);
	CHECK_EQ(repeated, 2);
	end();
}

/*
 * Hosts are told of other paths before the answer; of a VM that takes its port along when a sweep has found that, and
 * of one that may have arrived when OpenSM has swept.
 */
static void told_of_paths(void)
{
	begin();
	stays = true;
	ask("move 5 9");
	tick(0);
	hears("moved");
	CHECK_EQ(compared, 1);
	unheard = true;
	ask("move 5 9");
	tick(0);
	hears("OpenSM will sweep");
	unheard = stays = false;
	ask("move 5 9");
	tick(0);
	hears("moved");
	CHECK_EQ(compared, 1);
	end();
}

/* Who begins and never ends takes places from others, but not for good. */
static void forgotten(void)
{
	uint64_t next;

	begin();
	for (unsigned int i = 0; i < 64; i++) {
		char line[32];

		snprintf(line, sizeof(line), "begin %u %u", 100 + i, 200 + i);
		ask(line);
		next = tick(1);
		hears("begun");
	}
	CHECK(kept == 64 && next != RSM_NEVER && next > now);
	ask("move 5 9");
	tick(1);
	hears("too many moves at once");
	ask("end 100");
	tick(1);
	hears("\"moved\",\"lid\":100");
	/* One that begins late has its time. */
	next = tick(0);
	now = next - 1;
	ask("begin 5 9");
	CHECK_EQ(tick(0), next);
	hears("begun");
	kept = 64;
	while (now - next < 64 || now < next)
		tick(1);
	next = tick(0);
	CHECK(kept == 1 && next != RSM_NEVER && !n_answers);
	ask("end 163");
	ask("move 6 210");
	ask("end 5");
	tick(0);
	hears("no move of it has begun");
	hears("\"moved\",\"lid\":5");
	hears("\"moved\",\"lid\":6");
	CHECK_EQ(tick(0), RSM_NEVER);
	end();
}

/* Who has moved and does not come where it was to come: OpenSM's next sweep sees to it, at the time. */
static void does_not_come(void)
{
	begin();
	late_at = now + 1000;
	tick(999);
	CHECK(!osm.subn.subnet_initialization_error);
	tick(1);
	CHECK(osm.subn.subnet_initialization_error && !late_at);
	osm.subn.subnet_initialization_error = FALSE;
	end();
}

int main(void)
{
	does_not_come();
	for (int late = 0; late < 2; late++) {
		handed_over(becomes_standby, late);
		handed_over(becomes_master_anew, late);
		handed_over(is_handed_the_subnet, late);
	}
	handed_over_meanwhile();
	long_sweep();
	broken_sweep();
	sweep_with_the_lock();
	unfinished();
	told_of_paths();
	forgotten();
	puts("ok");
	return 0;
}
