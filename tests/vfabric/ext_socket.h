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
 * @n: how many
 */
struct ext_backlog {
	struct ext_late *first, *last;
	uint32_t n;
};

/**
 * ext_socket_open() - a socket for HCAs
 * @where: as ext_listen() takes it
 * Return: -1 with errno.
 */
int ext_socket_open(const char *where);

/* One message more; dropped if there are too many. */
void ext_backlog_keep(struct ext_backlog *backlog, const struct vhca_header *h, const void *body,
		      unsigned int length);
/* As many as there is room for now. Return: whether any is left. */
int ext_backlog_send(struct ext_backlog *backlog, int fd, const struct sockaddr_storage *to,
		     socklen_t to_size);
void ext_backlog_free(struct ext_backlog *backlog);

#endif
