// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "paths.h"
#include "plugin.h"
#include "slots.h"
#include "sweep.h"
#include "vm_answer.h"
#include "vm_jobs.h"

#define LOOK_MS		1	/* between two looks at answers */
#define PATIENCE_MS	10000	/* for answers; OpenSM repeats what it sends */
#define BEGUN_MS	(15 * 60 * 1000) /* after so long whoever has begun a move is not there any more */

/** rsm_vms_refuse - nothing was sent */
void rsm_vms_refuse(struct rsm *rsm, uint32_t who, const char *why)
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

/** rsm_vms_free_job - it is no more, and others may begin */
void rsm_vms_free_job(struct rsm *rsm, struct rsm_vm_job **at)
{
	struct rsm_vm_job *job = *at;

	*at = job->next;
	rsm_move_plan_free(&job->move.plan);
	free(job);
	rsm->vms->n--;
	rsm->vms->again = true;
}

/* Whoever goes along with its HCA, and has not gone yet, is routed to where it is again. */
static void give_up(struct rsm *rsm, struct rsm_vm_job **at, const char *why)
{
	const struct rsm_vm_job *job = *at;

	if (job->move.carried && job->move.state != RSM_VM_WRITING)
		rsm_slots_forget(job->move.lid);
	if (job->move.state == RSM_VM_QUEUED) {
		rsm_vms_refuse(rsm, job->who, why);
	} else {
		rsm->osm->subn.subnet_initialization_error = TRUE;
		tell_unfinished(rsm, job->who, why);
	}
	rsm_vms_free_job(rsm, at);
}

/** rsm_vms_job_of - where the move of a LID is linked, or would be */
struct rsm_vm_job **rsm_vms_job_of(struct rsm *rsm, uint16_t lid)
{
	struct rsm_vm_job **at = &rsm->vms->jobs;

	while (*at && (*at)->move.lid != lid)
		at = &(*at)->next;
	return at;
}

/** rsm_vms_cancel - it is routed to where it is, and its place is free */
void rsm_vms_cancel(struct rsm *rsm, struct rsm_vm_job **at)
{
	rsm_slots_forget((*at)->move.lid);
	rsm_vms_free_job(rsm, at);
}

/** rsm_vms_up - who was master once and is not, or is again, has tables that are not in force any more */
bool rsm_vms_up(const struct rsm *rsm)
{
	const osm_subn_t *subn = &rsm->osm->subn;

	return subn->sm_state == IB_SMINFO_STATE_MASTER && !subn->first_time_master_sweep &&
	       !subn->force_first_time_master_sweep;
}

/* When one that has begun is cancelled. */
static uint64_t ends_at(const struct rsm_vm_job *job)
{
	return __atomic_load_n(&job->overtaken, __ATOMIC_ACQUIRE) ? 0 : job->since + BEGUN_MS;
}

static uint64_t next_expiry(const struct rsm_vms *vms)
{
	uint64_t next = rsm_slots_due();

	for (const struct rsm_vm_job *job = vms->jobs; job; job = job->next)
		if (job->begun && ends_at(job) < next)
			next = ends_at(job);
	return next;
}

/**
 * rsm_vms_expire - cancel what has begun and does not end, and let go of what does not come
 *
 * Nobody waits for an answer; its end is refused.
 */
void rsm_vms_expire(struct rsm *rsm, uint64_t now)
{
	struct rsm_vm_job **at = &rsm->vms->jobs;

	if (now < next_expiry(rsm->vms))
		return;
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	if (now >= rsm_slots_due() && rsm_slots_are_late(now))
		rsm->osm->subn.subnet_initialization_error = TRUE;
	while (*at) {
		if ((*at)->begun && now >= ends_at(*at)) {
			rsm_log(rsm, OSM_LOG_ERROR, "LID %u began to move and %s: cancelled", (*at)->move.lid,
				(*at)->overtaken ? "another subnet manager has moved VMs" : "does not end");
			rsm_vms_cancel(rsm, at);
		} else {
			at = &(*at)->next;
		}
	}
	CL_PLOCK_RELEASE(&rsm->osm->lock);
}

static bool may_start(const struct rsm_vms *vms, const struct rsm_vm_job *job)
{
	for (const struct rsm_vm_job *i = vms->jobs; i && i != job; i = i->next)
		if (!i->begun && rsm_move_plans_meet(&i->move.plan, &job->move.plan))
			return false;
	return true;
}

static void start_some(struct rsm *rsm, uint64_t now)
{
	struct rsm_vms *vms = rsm->vms;
	struct rsm_vm_job **at = &vms->jobs;
	char why[256];

	vms->again = false;
	while (*at) {
		struct rsm_vm_job *job = *at;

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

/* Hosts are told of other paths before the answer. Of who has taken its port along they are when that has been found. */
static void finish(struct rsm *rsm, struct rsm_vm_job **at)
{
	struct rsm_vm_job *job = *at;
	struct rsm_vms *vms = rsm->vms;

	vms->smps += job->move.counts.blocks + job->move.counts.vswitch_blocks +
		     job->move.counts.closing;
	if (job->move.unheard) {
		tell_unfinished(rsm, job->who, "a hypervisor gives no answer: OpenSM will sweep");
	} else {
		vms->moves++;
		if (!job->move.carried)
			rsm_paths_moved(rsm, job->move.lid, job->move.other);
		rsm_vm_tell(job->who, "moved", &job->move, rsm_microseconds() - job->move.began);
	}
	rsm_vms_free_job(rsm, at);
}

static void go_on(struct rsm *rsm, uint64_t now)
{
	struct rsm_vm_job **at = &rsm->vms->jobs;
	unsigned int n = 0;

	while (*at) {
		struct rsm_vm_job *job = *at;

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
	struct rsm_vm_job **at = &rsm->vms->jobs;

	while (*at) {
		if ((*at)->begun)
			at = &(*at)->next;
		else
			give_up(rsm, at, "the subnet is not up: another subnet manager may have it");
	}
}

/**
 * rsm_vms_go_on - begin moves, and go on with those that have
 * @rsm: the plugin
 * @now: of rsm_now()
 *
 * OpenSM's lock comes late where it sweeps: what is so then counts.
 */
void rsm_vms_go_on(struct rsm *rsm, uint64_t now)
{
	struct rsm_vms *vms = rsm->vms;

	if (rsm_vms_up(rsm) && rsm_is_sweeping(rsm, now))
		return;
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
	now = rsm_now();
	if (!rsm_vms_up(rsm)) {
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

/** rsm_vms_when - when to look at them again; RSM_NEVER: when somebody says something */
uint64_t rsm_vms_when(const struct rsm_vms *vms, uint64_t now)
{
	for (const struct rsm_vm_job *job = vms->jobs; job; job = job->next)
		if (!job->begun)
			return now + LOOK_MS;
	return next_expiry(vms);
}
