/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The socket of real HCAs, and what an HCA's had no room for. */
#ifndef VF_EXT_SOCKET_H
#define VF_EXT_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>

#include "../vhca/wire.h"

struct ext_late;

/**
 * struct ext_backlog - messages that wait for room in an HCA's socket, in their order
 * @n: how many; at most EXT_BACKLOG_MAX
 * @most: that it ever were
 * @lost: that came when there were so many, or no memory
 */
struct ext_backlog {
	struct ext_late *first, *last;
	uint32_t n, most;
	uint64_t lost;
};

#define EXT_BACKLOG_MAX 1024u

/**
 * ext_socket_open() - a socket for HCAs
 * @where: as ext_listen() takes it
 * Return: -1 with errno.
 */
int ext_socket_open(const char *where);

/* One message more. Return: 0 if it is lost, as there are too many. */
int ext_backlog_keep(struct ext_backlog *backlog, const struct vhca_header *h, const void *body,
		     unsigned int length);
/* As many as there is room for now. Return: whether any is left. */
int ext_backlog_send(struct ext_backlog *backlog, int fd, const struct sockaddr_storage *to,
		     socklen_t to_size);
void ext_backlog_free(struct ext_backlog *backlog);

#endif
