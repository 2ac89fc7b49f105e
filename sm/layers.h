/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Service levels that an engine gives, each asked for once: OpenSM's dfsssp draws lots each time. */
#ifndef RSM_LAYERS_H
#define RSM_LAYERS_H

#include <stdint.h>

#include "topo.h"

/**
 * struct rsm_layers - what it has said
 * @ask: the engine's; 0 to 15
 * @context: for @ask
 * @n_lids: the highest LID + 1
 * @end_of: end's index by LID; UINT32_MAX: nobody's
 * @sl: by end and destination LID, two in a byte
 * @n: the highest of them + 1
 */
struct rsm_layers {
	uint8_t (*ask)(void *context, uint16_t slid, uint16_t dlid);
	void *context;
	uint32_t n_lids;
	uint32_t *end_of;
	uint8_t *sl;
	unsigned int n;
};

int rsm_layers_make(const struct rsm_topo *topo, struct rsm_layers *layers);
uint8_t rsm_layers_sl(void *context, uint16_t slid, uint16_t dlid);
void rsm_layers_free(struct rsm_layers *layers);

#endif
