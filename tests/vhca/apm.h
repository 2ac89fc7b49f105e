/* SPDX-License-Identifier: GPL-2.0 */
/* Automatic path migration (IBA 1.2.1 vol 1, 17.2.8). */
#ifndef VHCA_APM_H
#define VHCA_APM_H

#include "vhca.h"

/**
 * vhca_apm_arrived() - whether a connected queue pair may take a packet from where it came
 *
 * A packet on the primary path arms a queue pair in REARM; one on the alternate path whose sender
 * has migrated makes us follow, if we are ARMED. A sender that has migrated and is not followed is told
 * of once, by PATH_MIG_ERR. Both locks held.
 */
bool vhca_apm_arrived(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx);

/**
 * vhca_apm_migrate() - the primary path does not answer any more
 *
 * Both locks held. Return: whether there is another one, which is the primary from now on.
 */
bool vhca_apm_migrate(struct rvt_qp *qp);

/* The paths or the state of migration were set: what was refused before is no news. All locks held. */
void vhca_apm_changed(struct rvt_qp *qp);

/*
 * rdmavt migrates by itself when it is told MIGRATED by modify, but copies the address with no
 * regard to the GID entries that it refers to. vhca_apm_prepare() is called before, to remember
 * the old one, and vhca_apm_ordered() after, to set that right. All locks held.
 */
void vhca_apm_prepare(struct rvt_qp *qp);
void vhca_apm_ordered(struct rvt_qp *qp);

#endif
