/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * VMs with virtual functions of vSwitch HCAs: a VM that goes to another hypervisor takes its LID and
 * its GUID along. In the plugin's thread; OpenSM's lock is held exclusively.
 */
#ifndef RSM_VM_H
#define RSM_VM_H

#include <stddef.h>

#include <iba/ib_types.h>

#include "move_plan.h"
#include "place.h"

struct rsm;
struct osm_port;

#define RSM_GUIDS 8 /* in a block of GUIDInfo, IBA 14.2.5.5; the first is the port's own */

/**
 * enum rsm_vm_state - how far a move is
 * @RSM_VM_QUEUED: waits for others whose switches it needs, or for a sweep
 * @RSM_VM_CLOSING: switches are told to drop what is for the VM
 * @RSM_VM_WRITING: addresses and tables are on their way
 */
enum rsm_vm_state {
	RSM_VM_QUEUED,
	RSM_VM_CLOSING,
	RSM_VM_WRITING,
};

/**
 * struct rsm_vm_counts - SMPs of a move
 * @switches: physical switches with a new entry
 * @blocks: of their tables
 * @closing: of those, only to drop what is for the VM
 * @vswitch_blocks: of the two vSwitches' tables
 * @lids: PortInfo
 * @guids: GUIDInfo
 */
struct rsm_vm_counts {
	unsigned int switches, blocks, closing, vswitch_blocks, lids, guids;
};

/**
 * struct rsm_vm_move - one
 * @lid: the VM's
 * @other: the LID at the destination, which takes the VM's place; 0: there is none, or it stays
 * @from: where the VM is
 * @to: where it comes to
 * @carried: it takes the HCA's port along: its addresses need not be set
 * @limited: see struct rsm_move
 * @closing: what is for the VM is dropped first
 * @state: see enum rsm_vm_state
 * @ports: GUIDs of those whose addresses were set; 0: none were
 * @unheard: one of them has not answered
 * @looked: number of the look at the fabric that the plan is of
 * @began: microseconds
 * @plan: what to write
 * @counts: SMPs
 */
struct rsm_vm_move {
	uint16_t lid, other;
	struct rsm_place from, to;
	bool carried, limited, closing;
	enum rsm_vm_state state;
	uint64_t ports[2];
	bool unheard;
	unsigned int looked;
	uint64_t began;
	struct rsm_move_plan plan;
	struct rsm_vm_counts counts;
};

int rsm_vm_plan(struct rsm *rsm, struct rsm_vm_move *move, char *why, size_t size);
void rsm_vm_start(struct rsm *rsm, struct rsm_vm_move *move);
bool rsm_vm_go_on(struct rsm *rsm, struct rsm_vm_move *move);
void rsm_vm_fabric_changed(void);
void rsm_vm_free(void);

/* vm_address.c */
int rsm_vm_address_start(struct rsm *rsm);
bool rsm_vm_is_unheard(uint64_t port);
void rsm_vm_repeat(struct rsm *rsm);
uint64_t rsm_vm_guid(const struct osm_port *port);
int rsm_vm_set_guid(struct rsm *rsm, struct osm_port *port, uint64_t guid);
void rsm_vm_forget_guids(struct rsm *rsm, struct osm_port *port);
int rsm_vm_take_guids(struct rsm *rsm, struct osm_port *port, const ib_net64_t *guids);
void rsm_vm_exchange(struct rsm *rsm, struct osm_port *from, struct osm_port *to,
		     struct rsm_vm_counts *counts);

#endif
