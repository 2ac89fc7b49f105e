// SPDX-License-Identifier: GPL-2.0
#include <linux/kernel.h>
#include <linux/string.h>

#include "credit.h"

void vhca_credits_reset(struct vhca_credits *c)
{
	memset(c, 0, sizeof(*c));
}

void vhca_credits_tell(struct vhca_credits *c, struct vhca_header *header)
{
	unsigned int vl;

	for (vl = 0; vl < VHCA_DATA_VLS; vl++) {
		c->told[vl] = c->received[vl] + VHCA_WINDOW;
		header->credit[vl].sent = cpu_to_be32(c->sent[vl]);
		header->credit[vl].limit = cpu_to_be32(c->told[vl]);
	}
}

void vhca_credits_take(struct vhca_credits *c, const struct vhca_header *header)
{
	unsigned int vl;

	for (vl = 0; vl < VHCA_DATA_VLS; vl++) {
		c->received[vl] = be32_to_cpu(header->credit[vl].sent);
		c->peer_limit[vl] = be32_to_cpu(header->credit[vl].limit);
	}
}

bool vhca_credits_news(const struct vhca_credits *c)
{
	unsigned int vl;

	for (vl = 0; vl < VHCA_DATA_VLS; vl++)
		if (c->received[vl] + VHCA_WINDOW - c->told[vl] >= VHCA_WINDOW / 4)
			return true;
	return false;
}
