// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "message.h"

const char *const msg_op_names[MSG_OPS] = {
	[MSG_SEND] = "send",
	[MSG_SEND_IMM] = "send_imm",
	[MSG_WRITE] = "write",
	[MSG_WRITE_IMM] = "write_imm",
	[MSG_READ] = "read",
	[MSG_FETCH_ADD] = "fetch_add",
	[MSG_CMP_SWP] = "cmp_swp",
	[MSG_CREDIT] = "credit",
	[MSG_STATIC] = "static",
	[MSG_PROBE] = "probe",
	[MSG_SAMPLE] = "sample",
};

static uint64_t word_at(const unsigned char *at, size_t bytes)
{
	uint64_t word = 0;

	memcpy(&word, at, bytes);
	return word;
}

static uint64_t mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * 0x9fb21c651e98df25ull;
	return sum ^ (sum >> 29);
}

static uint64_t checksum(const struct msg *m)
{
	const unsigned char *bytes = (const unsigned char *)m;
	struct msg head = *m;
	uint64_t sum = 1;
	size_t i;

	head.sum = 0;
	for (i = 0; i < sizeof(head); i += 8)
		sum = mix(sum, word_at((const unsigned char *)&head + i, 8));
	for (; i + 8 <= m->len; i += 8)
		sum = mix(sum, word_at(bytes + i, 8));
	if (i < m->len)
		sum = mix(sum, word_at(bytes + i, m->len - i));
	return sum;
}

void msg_seal(struct msg *m)
{
	unsigned char *bytes = (unsigned char *)m;
	uint64_t word = msg_hash(m->seq ^ (uint64_t)m->qp << 48 ^ (uint64_t)m->from << 63);
	size_t i;

	for (i = sizeof(*m); i < m->len; i += 8) {
		size_t n = m->len - i < 8 ? m->len - i : 8;

		word = word * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(bytes + i, &word, n);
	}
	m->sum = checksum(m);
}

bool msg_check(const struct msg *m, size_t max, const char **why)
{
	if (m->magic != MSG_MAGIC)
		*why = "no message there";
	else if (m->len < MSG_MIN || m->len > max)
		*why = "an impossible length";
	else if (checksum(m) != m->sum)
		*why = "a wrong checksum";
	else
		return true;
	return false;
}
