// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an orchestrator says, and moves in the order in which it says them: one waits for those whose
 * switches it needs, and all wait for OpenSM's sweeps, which would cross them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "plugin.h"
#include "slots.h"
#include "sweep.h"
#include "vm.h"
#include "vm_answer.h"
#include "vm_socket.h"
#include "vm_words.h"

#define MOST_MOVES	64
#define LOOK_MS		1	/* between two looks at answers */
#define PATIENCE_MS	10000	/* for answers; OpenSM repeats what it sends */
#define BEGUN_MS	(15 * 60 * 1000) /* after so long whoever has begun a move is not there any more */

/**
 * struct job - a move that somebody has asked for
 * @next: asked for later
 * @who: waits for the answer
 * @id: number of it
 * @begun: only its place is taken; it is made when it is ended
 * @since: when it was begun, or its SMPs were, milliseconds
 * @move: it
 */
struct job {
	struct job *next;
	uint32_t who, id;
	bool begun;
	uint64_t since;
	struct rsm_vm_move move;
};

/**
 * struct rsm_vms - what the part knows; the plugin's thread alone looks at it, but at @swept and @awaited
 * @jobs: in the order in which they came
 * @n: of them
 * @next_id: number of the next
 * @again: one is through: others may begin
 * @swept: a heavy sweep has ended; what was not heard before it is to be said again
 * @awaited: blocks that are not answered yet
 * @at_once: most that were on their way together
 * @moves: made
 * @failed: not made
 * @smps: sent to switches
 */
struct rsm_vms {
	struct job *jobs;
	unsigned int n;
	uint32_t next_id;
	bool again;
	bool swept;
	int awaited;
	unsigned int at_once;
	unsigned long long moves, failed, smps;
};

static void refuse(struct rsm *rsm, uint32_t who, const char *why)
{
	rsm->vms->failed++;
	rsm_vm_answer(who, "{\"error\":\"%s\"}", why);
}

/* SMPs were sent, and it is not known what became of them. OpenSM's next sweep sets what is not as it is to be. */
static void tell_unfinished(struct rsm *rsm, uint32_t who, const char *why)
{
	rsm->vms->failed++;
	rsm_vm_answer(who, "{\"error\":\"%s\",\"state\":\"unfinished\"}", why);
}

static void free_job(struct rsm *rsm, struct job **at)
{
	struct job *job = *at;

	*at = job->next;
	rsm_move_plan_free(&job->move.plan);
	free(job);
	rsm->vms->n--;
	rsm->vms->again = true;
}

/* Whoever goes along with its HCA, and has not gone yet, is routed to where it is again. */
static void give_up(struct rsm *rsm, struct job **at, const char *why)
{
	const struct job *job = *at;

	if (job->move.carried && job->move.state != RSM_VM_WRITING)
		rsm_slots_forget(job->move.lid);
	if (job->move.state == RSM_VM_QUEUED)
		refuse(rsm, job->who, why);
	else
		tell_unfinished(rsm, job->who, why);
	free_job(rsm, at);
}

static struct job **job_of(struct rsm *rsm, uint16_t lid)
{
	struct job **at = &rsm->vms->jobs;

	while (*at && (*at)->move.lid != lid)
		at = &(*at)->next;
	return at;
}

static bool is_taken(void *context, const struct rsm_place *place)
{
	struct rsm *rsm = context;

	for (const struct job *job = rsm->vms->jobs; job; job = job->next)
		if (rsm_place_is(&job->move.to, place))
			return true;
	return false;
}

static void ask_move(struct rsm *rsm, uint32_t who, const struct rsm_vm_words *words)
{
	struct rsm_vms *vms = rsm->vms;
	struct job *job, **at;
	char why[256] = "too many moves at once";

	job = vms->n < MOST_MOVES ? calloc(1, sizeof(*job)) : NULL;
	if (!job) {
		refuse(rsm, who, why);
		return;
	}
	job->who = who;
	job->id = vms->next_id++;
	job->begun = words->verb == RSM_VM_BEGIN;
	job->since = rsm_now();
	job->move.limited = words->limited;
	job->move.closing = words->closing;
	if (rsm_vm_find(rsm, words->vm, &job->move, why, sizeof(why)) ||
	    rsm_vm_find_place(rsm, words->place, is_taken, rsm, &job->move, why, sizeof(why)))
		goto err;
	if (*job_of(rsm, job->move.lid)) {
		snprintf(why, sizeof(why), "it moves already");
		goto err;
	}
	if ((job->begun || words->verb == RSM_VM_PLAN) &&
	    rsm_vm_plan(rsm, &job->move, why, sizeof(why)))
		goto err;
	if (words->verb == RSM_VM_PLAN) {
		rsm_vm_tell(who, "planned", &job->move, 0);
		rsm_move_plan_free(&job->move.plan);
		free(job);
		return;
	}
	/* It goes away before it is told that it is there. */
	if (job->begun && job->move.carried &&
	    !rsm_slots_expect(job->move.lid, &job->move.from, true)) {
		snprintf(why, sizeof(why), "too many VFs are on their way");
		goto err;
	}
	if (job->begun)
		rsm_vm_tell(who, "begun", &job->move, 0);
	for (at = &vms->jobs; *at; at = &(*at)->next)
		;
	*at = job;
	vms->n++;
	vms->again = true;
	return;
err:
	refuse(rsm, who, why);
	rsm_move_plan_free(&job->move.plan);
	free(job);
}

/* It is routed to where it is, and its place is free. */
static void cancel(struct rsm *rsm, struct job **at)
{
	rsm_slots_forget((*at)->move.lid);
	free_job(rsm, at);
}

/* The end of what was begun: the move itself, or nothing. */
static void end_move(struct rsm *rsm, uint32_t who, const struct rsm_vm_words *words)
{
	struct rsm_vm_move vm = { 0 };
	char why[256] = "";
	struct job **at;

	if (rsm_vm_find(rsm, words->vm, &vm, why, sizeof(why)) && !vm.lid) {
		refuse(rsm, who, why);
		return;
	}
	at = job_of(rsm, vm.lid);
	if (!*at || !(*at)->begun) {
		refuse(rsm, who, "no move of it has begun");
		return;
	}
	if (words->verb == RSM_VM_CANCEL) {
		cancel(rsm, at);
		rsm_vm_answer(who, "{\"state\":\"cancelled\"}");
		return;
	}
	(*at)->begun = false;
	(*at)->who = who;
	rsm->vms->again = true;
}

static void start_or_stop(struct rsm *rsm, uint32_t who, const struct rsm_vm_words *words)
{
	struct rsm_vm_move move = { 0 };
	char why[256] = "no such GUID";
	uint64_t guid = strtoull(words->vm, NULL, 0);
	osm_port_t *port;
	int rc = -ENOENT;
	bool is_there;

	if (words->verb == RSM_VM_START)
		rc = guid > UINT16_MAX ? rsm_vm_find_place(rsm, words->place, is_taken, rsm, &move,
							   why, sizeof(why)) : -EINVAL;
	else if (!rsm_vm_find(rsm, words->vm, &move, why, sizeof(why)))
		rc = 0;
	port = rc && rc != -EEXIST ? NULL :
		rsm_place_port(rsm, words->verb == RSM_VM_START ? &move.to : &move.from);
	/* Who has not heard the answer says it again. */
	is_there = rc == -EEXIST && port && rsm_vm_guid(port) == guid;
	if (is_there) {
		rc = 0;
	} else if (!rc && port) {
		rc = rsm_vm_set_guid(rsm, port, words->verb == RSM_VM_START ? guid : 0);
		if (rc == -EEXIST)
			snprintf(why, sizeof(why), "another port has that GUID");
	}
	if (rc || !port) {
		refuse(rsm, who, why);
		return;
	}
	rsm_vm_answer(who, "{\"state\":\"%s\",\"lid\":%u,\"port\":\"0x%016" PRIx64 "\",\"guid_smps\":%d}",
	       words->verb == RSM_VM_START ? "started" : "stopped",
	       cl_ntoh16(osm_port_get_base_lid(port)), cl_ntoh64(osm_port_get_guid(port)), !is_there);
}

/* Who was master once and is not has tables that are not in force any more. */
static bool is_up(const struct rsm *rsm)
{
	return rsm->osm->subn.sm_state == IB_SMINFO_STATE_MASTER &&
	       !rsm->osm->subn.first_time_master_sweep;
}

static void obey(struct rsm *rsm, struct rsm_vm_line *line)
{
	struct rsm_vm_words words;
	char why[256];

	if (rsm_vm_words(line->text, &words, why, sizeof(why))) {
		refuse(rsm, line->who, why);
		return;
	}
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	if (!is_up(rsm)) {
		refuse(rsm, line->who, "the subnet is not up");
		goto out;
	}
	switch (words.verb) {
	case RSM_VM_PLAN:
	case RSM_VM_BEGIN:
	case RSM_VM_MOVE:
		ask_move(rsm, line->who, &words);
		break;
	case RSM_VM_END:
	case RSM_VM_CANCEL:
		end_move(rsm, line->who, &words);
		break;
	case RSM_VM_START:
	case RSM_VM_STOP:
		start_or_stop(rsm, line->who, &words);
		break;
	}
out:
	CL_PLOCK_RELEASE(&rsm->osm->lock);
}

static uint64_t next_expiry(const struct rsm_vms *vms)
{
	uint64_t next = RSM_NEVER;

	for (const struct job *job = vms->jobs; job; job = job->next)
		if (job->begun && job->since + BEGUN_MS < next)
			next = job->since + BEGUN_MS;
	return next;
}

/* Nobody waits for an answer; what ends it later is refused. */
static void expire(struct rsm *rsm, uint64_t now)
{
	struct job **at = &rsm->vms->jobs;

	if (now < next_expiry(rsm->vms))
		return;
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	while (*at) {
		if ((*at)->begun && now >= (*at)->since + BEGUN_MS) {
			rsm_log(rsm, OSM_LOG_ERROR, "LID %u began to move and does not end: cancelled",
				(*at)->move.lid);
			cancel(rsm, at);
		} else {
			at = &(*at)->next;
		}
	}
	CL_PLOCK_RELEASE(&rsm->osm->lock);
}

static bool may_start(const struct rsm_vms *vms, const struct job *job)
{
	for (const struct job *i = vms->jobs; i && i != job; i = i->next)
		if (!i->begun && rsm_move_plans_meet(&i->move.plan, &job->move.plan))
			return false;
	return true;
}

static void start_some(struct rsm *rsm, uint64_t now)
{
	struct rsm_vms *vms = rsm->vms;
	struct job **at = &vms->jobs;
	char why[256];

	vms->again = false;
	while (*at) {
		struct job *job = *at;

		if (job->begun || job->move.state != RSM_VM_QUEUED) {
			at = &job->next;
			continue;
		}
		if (rsm_vm_plan(rsm, &job->move, why, sizeof(why))) {
			give_up(rsm, at, why);
			continue;
		}
		if (may_start(vms, job)) {
			rsm_vm_start(rsm, &job->move);
			job->since = now;
			__atomic_add_fetch(&vms->awaited,
					   job->move.counts.blocks + job->move.counts.vswitch_blocks,
					   __ATOMIC_RELAXED);
		}
		at = &job->next;
	}
}

static void finish(struct rsm *rsm, struct job **at)
{
	struct job *job = *at;
	struct rsm_vms *vms = rsm->vms;

	vms->smps += job->move.counts.blocks + job->move.counts.vswitch_blocks +
		     job->move.counts.closing;
	if (job->move.unheard) {
		tell_unfinished(rsm, job->who, "a hypervisor gives no answer: OpenSM will sweep");
	} else {
		vms->moves++;
		rsm_vm_tell(job->who, "moved", &job->move, rsm_microseconds() - job->move.began);
	}
	free_job(rsm, at);
}

static void go_on(struct rsm *rsm, uint64_t now)
{
	struct job **at = &rsm->vms->jobs;
	unsigned int n = 0;

	while (*at) {
		struct job *job = *at;

		if (!job->begun && job->move.state != RSM_VM_QUEUED) {
			if (++n > rsm->vms->at_once)
				rsm->vms->at_once = n;
			if (rsm_vm_go_on(rsm, &job->move)) {
				finish(rsm, at);
				continue;
			}
			rsm->vms->again |= job->move.state == RSM_VM_QUEUED;
			if (now > job->since + PATIENCE_MS) {
				give_up(rsm, at, "some switches give no answer: OpenSM will sweep");
				continue;
			}
		}
		at = &job->next;
	}
}

/* Another subnet manager routes: nothing is sent that would cross it. What has only begun waits for its end. */
static void give_all_up(struct rsm *rsm)
{
	struct job **at = &rsm->vms->jobs;

	while (*at) {
		if ((*at)->begun)
			at = &(*at)->next;
		else
			give_up(rsm, at, "the subnet is not up: another subnet manager may have it");
	}
}

/* OpenSM's lock comes late where it sweeps: what is so then counts. */
static void make_moves(struct rsm *rsm, uint64_t now)
{
	struct rsm_vms *vms = rsm->vms;

	if (is_up(rsm) && rsm_is_sweeping(rsm, now))
		return;
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	now = rsm_now();
	if (!is_up(rsm)) {
		give_all_up(rsm);
	} else if (!rsm_is_sweeping(rsm, now)) {
		if (__atomic_exchange_n(&vms->swept, false, __ATOMIC_ACQUIRE))
			rsm_vm_repeat(rsm);
		if (vms->again)
			start_some(rsm, now);
		go_on(rsm, now);
		if (vms->again)
			start_some(rsm, now);
	}
	CL_PLOCK_RELEASE(&rsm->osm->lock);
}

static uint64_t vm_tick(struct rsm *rsm, uint64_t now)
{
	struct rsm_vms *vms = rsm->vms;
	struct rsm_vm_line line;

	if (!vms)
		return RSM_NEVER;
	expire(rsm, now);
	while (rsm_vm_socket_next(&line))
		obey(rsm, &line);
	if (vms->jobs || __atomic_load_n(&vms->swept, __ATOMIC_ACQUIRE))
		make_moves(rsm, now);
	for (const struct job *job = vms->jobs; job; job = job->next)
		if (!job->begun)
			return now + LOOK_MS;
	return next_expiry(vms);
}

static void vm_event(struct rsm *rsm, osm_epi_event_id_t id, void *data)
{
	struct rsm_vms *vms = rsm->vms;

	(void)data;
	if (!vms)
		return;
	switch (id) {
	case OSM_EVENT_ID_HEAVY_SWEEP_START:
		rsm_sweep_begins(rsm_now());
		rsm_vm_fabric_changed();
		break;
	case OSM_EVENT_ID_UCAST_ROUTING_DONE:
		rsm_vm_fabric_changed();
		break;
	case OSM_EVENT_ID_SUBNET_UP:
		rsm_sweep_ends();
		__atomic_store_n(&vms->swept, true, __ATOMIC_RELEASE);
		rsm_wake(rsm);
		break;
	case OSM_EVENT_ID_LFT_CHANGE:
		if (__atomic_load_n(&vms->awaited, __ATOMIC_RELAXED) > 0 &&
		    !__atomic_sub_fetch(&vms->awaited, 1, __ATOMIC_RELAXED))
			rsm_wake(rsm);
		break;
	default:
		break;
	}
}

static void vm_status(struct rsm *rsm, FILE *out)
{
	static const char *const modes[] = { "off", "prepopulated", "dynamic" };
	struct rsm_slots_counts c;

	if (!rsm->vms) {
		fprintf(out, "null");
		return;
	}
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	c = rsm_slots_counts();
	CL_PLOCK_RELEASE(&rsm->osm->lock);
	fprintf(out,
		"{\"lids\":\"%s\",\"slots\":%u,\"moved\":%u,\"odd\":%u,\"expected\":%u,"
		"\"computed\":%llu,\"computed_us\":%llu,\"reused\":%llu,\"moves\":%llu,"
		"\"failed\":%llu,\"smps\":%llu,\"waiting\":%u,\"at_once\":%u}",
		modes[rsm->opt.vswitch], c.slots, c.moved, c.odd, c.expected, c.computed,
		c.computed_us, c.reused, rsm->vms->moves, rsm->vms->failed, rsm->vms->smps, rsm->vms->n,
		rsm->vms->at_once);
}

static int vm_start(struct rsm *rsm)
{
	int rc;

	if (rsm->opt.vswitch == RSM_VSWITCH_OFF)
		return 0;
	rsm->vms = calloc(1, sizeof(*rsm->vms));
	rc = rsm->vms ? rsm_vm_address_start(rsm) : -ENOMEM;
	if (rc)
		goto err;
	if (!*rsm->opt.vswitch_socket)
		return 0;
	rc = rsm_vm_socket_open(rsm, rsm->opt.vswitch_socket);
	if (!rc)
		return 0;
	rsm_log(rsm, OSM_LOG_ERROR, "vswitch_socket %s: %s", rsm->opt.vswitch_socket,
		strerror(-rc));
err:
	free(rsm->vms);
	rsm->vms = NULL;
	return rc;
}

static void vm_stop(struct rsm *rsm)
{
	if (!rsm->vms)
		return;
	rsm_vm_socket_close();
	while (rsm->vms->jobs)
		free_job(rsm, &rsm->vms->jobs);
	free(rsm->vms);
	rsm->vms = NULL;
	rsm_vm_free();
	rsm_slots_free();
}

const struct rsm_part rsm_vm_part = {
	.name = "vms",
	.start = vm_start,
	.stop = vm_stop,
	.event = vm_event,
	.tick = vm_tick,
	.status = vm_status,
};
