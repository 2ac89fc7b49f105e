/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* VMs that were there before this subnet manager was: from the ports themselves. */
#ifndef RSM_VM_LEARN_H
#define RSM_VM_LEARN_H

struct rsm;

void rsm_vm_learn(struct rsm *rsm);

#endif
