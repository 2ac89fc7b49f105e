/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reports as MADs: the door to OpenSM's transport. */
#ifndef RSM_REPORT_H
#define RSM_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <opensm/osm_madw.h>

#include "repath_sm.h"

struct rsm;

/* Called from any thread when a report that was sent is answered, or is not going to be. */
typedef void (*rsm_report_done)(struct rsm *rsm, uint16_t lid, uint32_t number, bool answered);

int rsm_report_bind(struct rsm *rsm, rsm_report_done done);
void rsm_report_unbind(void);
int rsm_report_send(struct rsm *rsm, const osm_mad_addr_t *to, const struct repath_sm_report *data,
		    uint32_t timeout);

#endif
