// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "ext_socket.h"

struct ext_late {
	struct ext_late *next;
	size_t length;
	uint8_t bytes[];
};

static int open_unix(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(a.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(a.sun_path, path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return -1;
	return fd;
}

/* The wire trusts who can reach it: only loopback addresses, unless somebody says that he means it. */
static int open_udp(const char *where, int anywhere)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	const char *colon = strrchr(where, ':');
	char address[32];
	int fd;

	errno = EINVAL;
	if (!colon || colon - where >= (long)sizeof(address))
		return -1;
	memcpy(address, where, colon - where);
	address[colon - where] = '\0';
	a.sin_port = htons(strtoul(colon + 1, NULL, 10));
	if (inet_pton(AF_INET, address, &a.sin_addr) != 1 ||
	    (!anywhere && ntohl(a.sin_addr.s_addr) >> 24 != 127))
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return -1;
	return fd;
}

int ext_socket_open(const char *where)
{
	int fd = -1, size = 8 << 20;

	errno = EINVAL;
	if (!strncmp(where, "unix:", 5))
		fd = open_unix(where + 5);
	else if (!strncmp(where, "udp:", 4))
		fd = open_udp(where + 4, 0);
	else if (!strncmp(where, "net:", 4))
		fd = open_udp(where + 4, 1);
	if (fd < 0)
		return -1;
	/* Credits keep what is under way within this; as root the system's limit does not count. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return fd;
}

int ext_backlog_keep(struct ext_backlog *backlog, const struct vhca_header *h, const void *body,
		     unsigned int length)
{
	struct ext_late *late = NULL;

	if (backlog->n < EXT_BACKLOG_MAX)
		late = malloc(sizeof(*late) + sizeof(*h) + length);
	if (!late) {
		backlog->lost++;
		return 0;
	}
	late->next = NULL;
	late->length = sizeof(*h) + length;
	memcpy(late->bytes, h, sizeof(*h));
	memcpy(late->bytes + sizeof(*h), body, length);
	if (backlog->n++)
		backlog->last->next = late;
	else
		backlog->first = late;
	backlog->last = late;
	if (backlog->n > backlog->most)
		backlog->most = backlog->n;
	return 1;
}

static void drop_first(struct ext_backlog *backlog)
{
	struct ext_late *late = backlog->first;

	backlog->first = late->next;
	backlog->n--;
	free(late);
}

int ext_backlog_send(struct ext_backlog *backlog, int fd, const struct sockaddr_storage *to,
		     socklen_t to_size)
{
	while (backlog->n) {
		if (sendto(fd, backlog->first->bytes, backlog->first->length, MSG_DONTWAIT,
			   (const struct sockaddr *)to, to_size) < 0 &&
		    (errno == EAGAIN || errno == ENOBUFS))
			return 1;
		drop_first(backlog);
	}
	return 0;
}

void ext_backlog_free(struct ext_backlog *backlog)
{
	while (backlog->n)
		drop_first(backlog);
}
