/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A virtio-serial port that carries JSON objects, one a line, whoever is at its other end. */
#ifndef REPATH_TOOL_PORT_H
#define REPATH_TOOL_PORT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <json-c/json.h>

#define PORT_NAME	"repath.0"
#define PORT_LINE	16384		/* bytes of one request, with its newline */
#define PORT_BACKLOG	(1 << 20)	/* bytes of answers that nobody has read yet */

/**
 * struct port - the port and what is half done on it
 * @fd: non-blocking; -1 while there is no port
 * @path: what it was opened by, or NULL: by PORT_NAME
 * @empty: poll said last that nobody is at the other end
 * @host: somebody is, or has just said something: answers are kept for it
 * @in: a line that is not complete
 * @have: bytes of it
 * @skip: the line was too long: its rest is thrown away
 * @out: answers not yet taken
 * @pending: bytes of them
 */
struct port {
	int fd;
	const char *path;
	bool empty;
	bool host;
	char in[PORT_LINE];
	size_t have;
	bool skip;
	char *out;
	size_t pending;
};

/* A complete line without its newline, or NULL for one that was too long. */
typedef void (*port_line_fn)(void *arg, const char *line, size_t len);

/*
 * Opens @path, which stays the caller's and must live as long, or, when it is NULL, the port called
 * PORT_NAME wherever it is. Says on stderr what is wrong and returns false if it can not.
 */
bool port_open(struct port *p, const char *path);

/* What to poll for; poll again at the latest after the returned milliseconds (-1: any). */
int port_poll(const struct port *p, struct pollfd *fd);
/* Does what poll has found. */
void port_serve(struct port *p, short revents, port_line_fn fn, void *arg);
/* Queues an object as a line. Frees @o. With no host, or too much unread, it is dropped. */
void port_send(struct port *p, struct json_object *o);

#endif /* REPATH_TOOL_PORT_H */
