/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What travels: a numbered header, a pattern made from it, and a checksum over both. */
#ifndef APPS_MESSAGE_H
#define APPS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum msg_op {
	MSG_SEND,
	MSG_SEND_IMM,
	MSG_WRITE,
	MSG_WRITE_IMM,
	MSG_READ,
	MSG_FETCH_ADD,
	MSG_CMP_SWP,
	MSG_CREDIT,	/* a SEND that only carries credits */
	MSG_STATIC,	/* never sent: what a READ finds in the responder's fixed slots */
	MSG_PROBE,	/* a WRITE of nothing: is the other end there? */
	MSG_SAMPLE,	/* a READ of the other end's ballast */
	MSG_OPS
};

extern const char *const msg_op_names[MSG_OPS];

/**
 * struct msg - the first 64 bytes of every message
 * @magic: MSG_MAGIC
 * @op: enum msg_op
 * @qp: index of the queue pair, the same at both ends
 * @len: bytes with this header
 * @from: 0 the client, 1 the server
 * @seq: number of the request at its sender, all operations
 * @rseq: number among those that consume a receive; for WRITE: of the last one before it
 * @wseq: number among WRITE and WRITE_WITH_IMM; otherwise: of the last one before it
 * @credit: how many data messages the sender has received so far
 * @wcredit: how many of its peer's writes the sender has verified so far
 * @sum: over header (this field as zero) and payload
 */
struct msg {
	uint32_t magic;
	uint16_t op;
	uint16_t qp;
	uint32_t len;
	uint32_t from;
	uint64_t seq;
	uint64_t rseq;
	uint64_t wseq;
	uint64_t credit;
	uint64_t wcredit;
	uint64_t sum;
};

#define MSG_MAGIC	0x4b434852u
#define MSG_MIN		sizeof(struct msg)
#define MSG_POISON	0xa5

/**
 * msg_hash() - spread a number over 64 bits
 * @n: the number
 */
static inline uint64_t msg_hash(uint64_t n)
{
	n += 0x9e3779b97f4a7c15ull;
	n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9ull;
	n = (n ^ (n >> 27)) * 0x94d049bb133111ebull;
	return n ^ (n >> 31);
}

/**
 * msg_seal() - write the payload that belongs to the header, and the checksum
 * @m: header filled in but for @sum, followed by @len - 64 bytes; 8-byte aligned
 */
void msg_seal(struct msg *m);

/**
 * msg_check() - is this a whole and undamaged message?
 * @m: where it should be
 * @max: bytes there
 * @why: set to a text if not
 */
bool msg_check(const struct msg *m, size_t max, const char **why);

#endif
