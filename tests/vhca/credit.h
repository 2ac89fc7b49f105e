/* SPDX-License-Identifier: GPL-2.0 */
/* Credits between this port and the switch, as wire.h says: pure counting, the caller serialises. */
#ifndef VHCA_CREDIT_H
#define VHCA_CREDIT_H

#include "wire.h"

#define VHCA_DATA_VLS 15

/* What this end is willing to take per VL beyond what it has taken: the socket has room for all. */
#define VHCA_WINDOW 1024u

/**
 * struct vhca_credits - one direction each way, in blocks, modulo 2^32
 * @sent: what we have sent
 * @peer_limit: what the switch takes in all
 * @received: what the switch says it has sent
 * @told: the limit that we told last
 */
struct vhca_credits {
	u32 sent[VHCA_DATA_VLS];
	u32 peer_limit[VHCA_DATA_VLS];
	u32 received[VHCA_DATA_VLS];
	u32 told[VHCA_DATA_VLS];
};

static inline u32 vhca_blocks(u32 bytes)
{
	return (bytes + VHCA_BLOCK - 1) / VHCA_BLOCK;
}

/* Whether a packet of that many blocks may be sent. A limit in the past gives no room. */
static inline bool vhca_credits_allow(const struct vhca_credits *c, unsigned int vl, u32 blocks)
{
	s32 room = c->peer_limit[vl] - c->sent[vl];

	return room >= 0 && (u32)room >= blocks;
}

void vhca_credits_reset(struct vhca_credits *c);
/* Writes ours into a message. */
void vhca_credits_tell(struct vhca_credits *c, struct vhca_header *header);
/* Takes the switch's from a message. */
void vhca_credits_take(struct vhca_credits *c, const struct vhca_header *header);
/* Whether so much room was freed since we told that the switch should know. */
bool vhca_credits_news(const struct vhca_credits *c);

#endif
