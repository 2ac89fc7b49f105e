/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* VMs that were there before this subnet manager was: from the ports themselves. */
#ifndef RSM_VM_LEARN_H
#define RSM_VM_LEARN_H

#include <stdbool.h>

struct osm_port;
struct rsm;

void rsm_vm_learn(struct rsm *rsm);
void rsm_vm_learn_free(void);
bool rsm_vm_knows(const struct osm_port *port);
unsigned int rsm_vm_unknown(struct rsm *rsm);

#endif
