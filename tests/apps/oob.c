// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "oob.h"

static int set_up(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int oob_listen(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, fd, conn;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(2, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1))
		err(2, "TCP port %u", port);
	do {
		conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	} while (conn < 0 && errno == EINTR);
	if (conn < 0)
		err(2, "accept");
	close(fd);
	return set_up(conn);
}

int oob_connect(const char *host, uint16_t port, int seconds)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	char service[8];
	int fd, tries, rc;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &found);
	if (rc)
		errx(2, "%s: %s", host, gai_strerror(rc));
	for (tries = seconds * 10;; tries--) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			err(2, "socket");
		if (!connect(fd, found->ai_addr, found->ai_addrlen))
			break;
		if (tries <= 0)
			err(2, "connect to %s port %u", host, port);
		close(fd);
		usleep(100000);
	}
	freeaddrinfo(found);
	return set_up(fd);
}

bool oob_write(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= n;
	}
	return true;
}

bool oob_read(int fd, void *data, size_t len)
{
	char *at = data;

	while (len) {
		ssize_t n = recv(fd, at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= n;
	}
	return true;
}

bool oob_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}
