/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parts of nlfuzz: what is sent, what is answered, what the kernel says that it takes. */
#ifndef NLFUZZ_H
#define NLFUZZ_H

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uapi/ib_repath.h"

#define OPS_MAX		64
#define ATTRS_MAX	256
#define DATAGRAM_MAX	65536
#define BATCH_MAX	8

/* What an attribute holds, by the header's own comments. */
enum kind {
	KIND_none, KIND_u8, KIND_u16, KIND_u32, KIND_u64, KIND_16, KIND_string, KIND_nest,
	KIND_counts, KIND_flag, KIND_binary,
};

/**
 * struct attr_policy - what the kernel takes in one attribute of one command
 * @type: enum netlink_attribute_type; 0: it takes no such attribute
 * @min: least value; of strings and binaries, bytes
 * @max: greatest
 */
struct attr_policy {
	uint32_t type;
	uint64_t min, max;
};

/**
 * struct family - as the kernel describes it
 * @id: its message type
 * @group: multicast group "monitor"
 * @ops: commands, @nops of them
 * @flags: of each, GENL_*
 * @policy: by command and attribute
 */
struct family {
	uint16_t id;
	uint32_t group;
	unsigned int nops;
	uint8_t ops[OPS_MAX];
	uint32_t flags[OPS_MAX];
	struct attr_policy policy[OPS_MAX][ATTRS_MAX];
};

/**
 * struct request - one message of a datagram, and what has to come back for it
 * @seq: its number
 * @cmd: its command
 * @owed: it is well framed, and asked for an answer that ends it
 */
struct request {
	uint32_t seq;
	uint8_t cmd;
	bool owed;
};

/**
 * struct datagram - what is sent at once
 * @data: the messages
 * @len: bytes
 * @requests: those in it whose header is intact, @nrequests of them
 */
struct datagram {
	_Alignas(8) unsigned char data[DATAGRAM_MAX];
	size_t len;
	struct request requests[BATCH_MAX];
	unsigned int nrequests;
};

/**
 * struct tally - what came back
 * @done: by command, requests that were carried out
 * @refused: by command
 * @errors: by errno
 * @events: messages that answer nothing
 * @lost: times that a socket was full
 */
struct tally {
	unsigned long done[256], refused[256], errors[4096], events, lost;
};

extern const enum kind kinds[ATTRS_MAX];
extern struct family family;
extern struct tally tally;
extern bool unprivileged, force;

/* nlfuzz.c: a number below @n; end with a message if the kernel did what it must not. */
uint32_t below(uint32_t n);
void wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* nlfuzz_policy.c */
void read_family(void);
int open_socket(void);

/* nlfuzz_make.c: fill in a datagram; hear a value that may be said back. */
void make_datagram(struct datagram *dg, uint32_t *seq);
void learn(uint16_t attr, const void *data, size_t len);

/* nlfuzz_answer.c: read all there is on a socket, and check it against what was sent. */
void read_answers(int fd, struct datagram *dg);

/* nlfuzz_verbs.c: have queue pairs of this process, connected to each other. */
void have_queue_pairs(const char *device, unsigned int n);

#endif
