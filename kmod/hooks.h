/* SPDX-License-Identifier: GPL-2.0 */
/* Probes on ib_core: where tracking hears of queue pairs and contexts. */
#ifndef REPATH_HOOKS_H
#define REPATH_HOOKS_H

int repath_hooks_init(void);
void repath_hooks_exit(void);

#endif /* REPATH_HOOKS_H */
