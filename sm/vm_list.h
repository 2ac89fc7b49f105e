/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* VMs that the subnet manager knows of. */
#ifndef RSM_VM_LIST_H
#define RSM_VM_LIST_H

#include <stdint.h>

struct rsm;

void rsm_vm_list(struct rsm *rsm, uint32_t who, const char *after);

#endif
