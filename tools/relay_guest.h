/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One guest that is told what the subnet manager has said: requests to the agent in it, one at a
 * time, over the socket of its virtio-serial port. Of what comes back only the answer to the request
 * that is under way is looked at; all else is counted and thrown away.
 */
#ifndef REPATH_TOOL_RELAY_GUEST_H
#define REPATH_TOOL_RELAY_GUEST_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ib_repath.h>

#define RELAY_QUEUE	64	/* notices; with more the guest is told to ask for everything */
#define RELAY_LINE	4096	/* bytes of an answer */
#define RELAY_REFUSED	64	/* lines that are no answers, after which a guest is left alone for a while */

enum relay_state {
	RELAY_CLOSED,		/* until there is something to tell, or until @until */
	RELAY_OPEN,		/* nothing to tell, closed soon: others have to talk to the agent, too */
	RELAY_ASKED,		/* waits for an answer */
};

/**
 * struct relay_guest - a guest
 * @socket: path
 * @dev: the device's name in the guest
 * @port: its port
 * @say: told what happens, for a person; @text may be NULL
 * @state: see enum relay_state
 * @fd: -1: not connected
 * @now: milliseconds of CLOCK_BOOTTIME, as told last
 * @until: when the state ends
 * @begin: it has to be told that what was told before may not be all
 * @queue: what it is to be told
 * @first: of @queue
 * @n: entries of @queue
 * @id: of the last request
 * @was_begin: the request under way was to begin
 * @in: a line that is not complete
 * @have: bytes of it
 * @skip: the line was too long: its rest is thrown away
 * @noise: lines that were no answers on this connection
 * @begun: how often it has begun
 * @told: notices that it has taken
 * @refused: lines that were no answers
 */
struct relay_guest {
	const char *socket;
	const char *dev;
	uint32_t port;
	void (*say)(struct relay_guest *g, const char *event, const char *text);
	enum relay_state state;
	int fd;
	uint64_t now, until;
	bool begin;
	uint8_t queue[RELAY_QUEUE][REPATH_NOTICE_SIZE];
	unsigned int first, n;
	uint32_t id;
	bool was_begin;
	char in[RELAY_LINE];
	size_t have;
	bool skip;
	unsigned int noise;
	uint64_t begun, told, refused;
};

void relay_guest_init(struct relay_guest *g, const char *socket, const char *dev, uint32_t port,
		      void (*say)(struct relay_guest *g, const char *event, const char *text));
void relay_guest_close(struct relay_guest *g);

/* What was told before may not be all there was. */
void relay_guest_begin(struct relay_guest *g);
/* REPATH_NOTICE_SIZE bytes. */
void relay_guest_notice(struct relay_guest *g, const uint8_t *notice);

/* @now: milliseconds of CLOCK_BOOTTIME. What to poll for; serve again at the latest after the returned milliseconds (-1: any). */
int relay_guest_poll(struct relay_guest *g, uint64_t now, struct pollfd *fd);
/* Does what poll has found, and what is due. */
void relay_guest_serve(struct relay_guest *g, uint64_t now, short revents);

#endif /* REPATH_TOOL_RELAY_GUEST_H */
