/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SMPs of the plugin's own, through OpenSM's queue: it knows of them, sends them again and takes their
 * answers as those of its own. OpenSM's lock is held exclusively.
 */
#ifndef RSM_SMP_H
#define RSM_SMP_H

#include <stdbool.h>
#include <stdint.h>

struct rsm;
struct osm_port;
struct osm_switch;

/* @guids: it was Set(GUIDInfo), not Set(PortInfo). No lock of OpenSM's is held. */
typedef void (*rsm_smp_lost)(struct rsm *rsm, uint64_t port, bool guids);

/* @guids: the first 64 bytes of GUIDInfo, zeros if the answer has a status. In a thread of OpenSM's, with no lock. */
typedef void (*rsm_smp_guids)(struct rsm *rsm, uint64_t port, const void *guids);

int rsm_smp_watch(struct rsm *rsm, rsm_smp_lost call);
int rsm_smp_hear_guids(struct rsm *rsm, rsm_smp_guids call);
int rsm_smp_get_guids(struct rsm *rsm, struct osm_port *port);
int rsm_smp_set_block(struct rsm *rsm, struct osm_switch *sw, uint16_t block);
int rsm_smp_set_lid(struct rsm *rsm, struct osm_port *port, uint16_t lid);
int rsm_smp_set_guids(struct rsm *rsm, struct osm_port *port);
int rsm_smp_outstanding(struct rsm *rsm);
void rsm_smp_wait(struct rsm *rsm);

#endif
