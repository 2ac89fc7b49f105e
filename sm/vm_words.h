/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lines of the socket, and whom and where they mean. */
#ifndef RSM_VM_WORDS_H
#define RSM_VM_WORDS_H

#include "vm.h"

/**
 * enum rsm_vm_verb - what is to be done
 * @RSM_VM_PLAN: say what a move would cost
 * @RSM_VM_BEGIN: a VM begins to move: its place is taken
 * @RSM_VM_END: it is there
 * @RSM_VM_CANCEL: it stays
 * @RSM_VM_MOVE: both
 * @RSM_VM_START: a VM is there, with its GUID
 * @RSM_VM_STOP: it is not
 * @RSM_VM_LIST: say where VMs are
 */
enum rsm_vm_verb {
	RSM_VM_PLAN,
	RSM_VM_BEGIN,
	RSM_VM_END,
	RSM_VM_CANCEL,
	RSM_VM_MOVE,
	RSM_VM_START,
	RSM_VM_STOP,
	RSM_VM_LIST,
};

/**
 * struct rsm_vm_words - a line
 * @verb: see enum rsm_vm_verb
 * @vm: who; NULL: nobody, where the verb wants none
 * @place: where to, if the verb has it
 * @limited: see struct rsm_vm_move
 * @closing: see struct rsm_vm_move
 */
struct rsm_vm_words {
	enum rsm_vm_verb verb;
	const char *vm, *place;
	bool limited, closing;
};

/* Whether somebody else comes to a place. */
typedef bool (*rsm_vm_taken)(void *context, const struct rsm_place *place);

int rsm_vm_words(char *line, struct rsm_vm_words *words, char *why, size_t size);
int rsm_vm_find(struct rsm *rsm, const char *word, struct rsm_vm_move *move, char *why,
		size_t size);
int rsm_vm_find_place(struct rsm *rsm, const char *word, rsm_vm_taken taken, void *context,
		      struct rsm_vm_move *move, char *why, size_t size);

#endif
