/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Moves in the order in which they are asked for: one waits for those whose switches it needs, and all wait
 * for OpenSM's sweeps, which would cross them. In the plugin's thread; OpenSM's lock is held exclusively where
 * a job is added or goes, which rsm_vms_expire() and rsm_vms_go_on() take themselves.
 */
#ifndef RSM_VM_JOBS_H
#define RSM_VM_JOBS_H

#include "vm.h"

/**
 * struct rsm_vm_job - a move that somebody has asked for
 * @next: asked for later
 * @who: waits for the answer
 * @id: number of it
 * @begun: only its place is taken; it is made when it is ended
 * @overtaken: begun, and another subnet manager has moved the VM, or another one to its place
 * @since: when it was begun, or its SMPs were, milliseconds
 * @move: it
 */
struct rsm_vm_job {
	struct rsm_vm_job *next;
	uint32_t who, id;
	bool begun, overtaken;
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
	struct rsm_vm_job *jobs;
	unsigned int n;
	uint32_t next_id;
	bool again;
	bool swept;
	int awaited;
	unsigned int at_once;
	unsigned long long moves, failed, smps;
};

void rsm_vms_refuse(struct rsm *rsm, uint32_t who, const char *why);
void rsm_vms_free_job(struct rsm *rsm, struct rsm_vm_job **at);
void rsm_vms_cancel(struct rsm *rsm, struct rsm_vm_job **at);
struct rsm_vm_job **rsm_vms_job_of(struct rsm *rsm, uint16_t lid);
bool rsm_vms_up(const struct rsm *rsm);
void rsm_vms_expire(struct rsm *rsm, uint64_t now);
void rsm_vms_go_on(struct rsm *rsm, uint64_t now);
uint64_t rsm_vms_when(const struct rsm_vms *vms, uint64_t now);

#endif
