/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is said to who moves VMs: lines of JSON. */
#ifndef RSM_VM_ANSWER_H
#define RSM_VM_ANSWER_H

#include <stdint.h>

struct rsm_vm_move;

__attribute__((format(printf, 2, 3)))
void rsm_vm_answer(uint32_t who, const char *format, ...);
void rsm_vm_tell(uint32_t who, const char *state, const struct rsm_vm_move *move, uint64_t us);

#endif
