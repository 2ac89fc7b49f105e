// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What an orchestrator says of VMs that start, move and end. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"
#include "slots.h"
#include "sweep.h"
#include "vm_answer.h"
#include "vm_jobs.h"
#include "vm_learn.h"
#include "vm_list.h"
#include "vm_socket.h"
#include "vm_words.h"

#define MOST_MOVES	64

/**
 * struct mover - for whom a place is sought
 * @rsm: the plugin
 * @move: its, with the LID once that is known
 */
struct mover {
	struct rsm *rsm;
	const struct rsm_vm_move *move;
};

/* Also by who has been moved there, and has not been seen yet. */
static bool is_taken(void *context, const struct rsm_place *place)
{
	struct mover *mover = context;

	for (const struct rsm_vm_job *job = mover->rsm->vms->jobs; job; job = job->next)
		if (rsm_place_is(&job->move.to, place))
			return true;
	return rsm_slots_awaits(place, mover->move->lid);
}

static void ask_move(struct rsm *rsm, uint32_t who, const struct rsm_vm_words *words)
{
	struct rsm_vms *vms = rsm->vms;
	struct rsm_vm_job *job, **at;
	char why[256] = "too many moves at once";
	struct mover mover = { rsm, NULL };

	job = vms->n < MOST_MOVES ? calloc(1, sizeof(*job)) : NULL;
	if (!job) {
		rsm_vms_refuse(rsm, who, why);
		return;
	}
	mover.move = &job->move;
	job->who = who;
	job->id = vms->next_id++;
	job->begun = words->verb == RSM_VM_BEGIN;
	job->since = rsm_now();
	job->move.limited = words->limited;
	job->move.closing = words->closing;
	if (rsm_vm_find(rsm, words->vm, &job->move, why, sizeof(why)) ||
	    rsm_vm_find_place(rsm, words->place, is_taken, &mover, &job->move, why, sizeof(why)))
		goto err;
	if (*rsm_vms_job_of(rsm, job->move.lid)) {
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
	    !rsm_slots_expect(job->move.lid, &job->move.from, NULL)) {
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
	rsm_vms_refuse(rsm, who, why);
	rsm_move_plan_free(&job->move.plan);
	free(job);
}

/*
 * The end of what was begun: the move itself, or nothing. What waits for its turn can be called off, too, and so can
 * what was moved and does not come.
 */
static void end_move(struct rsm *rsm, uint32_t who, const struct rsm_vm_words *words)
{
	struct rsm_vm_move vm = { 0 };
	char why[256] = "";
	struct rsm_vm_job **at;

	if (rsm_vm_find(rsm, words->vm, &vm, why, sizeof(why)) && !vm.lid) {
		rsm_vms_refuse(rsm, who, why);
		return;
	}
	at = rsm_vms_job_of(rsm, vm.lid);
	if (words->verb == RSM_VM_CANCEL && !*at && rsm_slots_forget(vm.lid)) {
		/* OpenSM's next sweep routes it to where it is. */
		rsm->osm->subn.subnet_initialization_error = TRUE;
		rsm_vm_answer(who, "{\"state\":\"cancelled\"}");
		return;
	}
	if (!*at || !((*at)->begun || (words->verb == RSM_VM_CANCEL && (*at)->move.state == RSM_VM_QUEUED))) {
		rsm_vms_refuse(rsm, who, "no move of it has begun");
		return;
	}
	if (words->verb == RSM_VM_CANCEL) {
		if (!(*at)->begun)
			rsm_vms_refuse(rsm, (*at)->who, "it was called off");
		/* It may be expected by the move before. */
		rsm->osm->subn.subnet_initialization_error |= !(*at)->begun && (*at)->move.carried;
		rsm_vms_cancel(rsm, at);
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
	struct mover mover = { rsm, &move };
	char why[256] = "no such GUID";
	uint64_t guid = strtoull(words->vm, NULL, 0);
	osm_port_t *port;
	int rc = -ENOENT;
	bool is_there;

	if (words->verb == RSM_VM_START)
		rc = guid > UINT16_MAX ? rsm_vm_find_place(rsm, words->place, is_taken, &mover, &move,
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
		rsm_vms_refuse(rsm, who, why);
		return;
	}
	rsm_vm_answer(who, "{\"state\":\"%s\",\"lid\":%u,\"port\":\"0x%016" PRIx64 "\",\"guid_smps\":%d}",
	       words->verb == RSM_VM_START ? "started" : "stopped",
	       cl_ntoh16(osm_port_get_base_lid(port)), cl_ntoh64(osm_port_get_guid(port)), !is_there);
}

static void obey(struct rsm *rsm, struct rsm_vm_line *line)
{
	struct rsm_vm_words words;
	char why[256];

	if (rsm_vm_words(line->text, &words, why, sizeof(why))) {
		rsm_vms_refuse(rsm, line->who, why);
		return;
	}
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	if (!rsm_vms_up(rsm)) {
		rsm_vms_refuse(rsm, line->who, "the subnet is not up");
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
	case RSM_VM_LIST:
		rsm_vm_list(rsm, line->who, words.vm);
		break;
	case RSM_VM_START:
	case RSM_VM_STOP:
		start_or_stop(rsm, line->who, &words);
		break;
	}
out:
	CL_PLOCK_RELEASE(&rsm->osm->lock);
}

static uint64_t vm_tick(struct rsm *rsm, uint64_t now)
{
	struct rsm_vms *vms = rsm->vms;
	struct rsm_vm_line line;

	if (!vms)
		return RSM_NEVER;
	rsm_vms_expire(rsm, now);
	while (rsm_vm_socket_next(&line))
		obey(rsm, &line);
	if (vms->jobs || __atomic_load_n(&vms->swept, __ATOMIC_ACQUIRE))
		rsm_vms_go_on(rsm, now);
	return rsm_vms_when(vms, now);
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
	case OSM_EVENT_ID_HEAVY_SWEEP_DONE:
		rsm_vm_learn(rsm);
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
		rsm_vms_free_job(rsm, &rsm->vms->jobs);
	free(rsm->vms);
	rsm->vms = NULL;
	rsm_vm_free();
	rsm_vm_learn_free();
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
