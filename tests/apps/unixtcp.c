// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * unixtcp SOCKET ADDRESS PORT
 *
 * Whoever connects to the unix socket, one at a time as with a QEMU's chardev, talks to the TCP port.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int copy(int from, int to)
{
	char data[4096];
	ssize_t n = read(from, data, sizeof(data));

	return n > 0 && write(to, data, n) == n ? 0 : -1;
}

static void talk(int a, int b)
{
	struct pollfd fds[] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };

	while (poll(fds, 2, -1) > 0)
		if ((fds[0].revents && copy(a, b)) || (fds[1].revents && copy(b, a)))
			return;
}

int main(int argc, char **argv)
{
	struct sockaddr_un here = { .sun_family = AF_UNIX };
	struct sockaddr_in there = { .sin_family = AF_INET };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	if (argc != 4 || strlen(argv[1]) >= sizeof(here.sun_path) ||
	    inet_pton(AF_INET, argv[2], &there.sin_addr) != 1)
		return 2;
	strcpy(here.sun_path, argv[1]);
	there.sin_port = htons(atoi(argv[3]));
	signal(SIGPIPE, SIG_IGN);
	if (listener < 0 || bind(listener, (struct sockaddr *)&here, sizeof(here)) ||
	    listen(listener, 1))
		die(argv[1]);
	for (;;) {
		int a = accept(listener, NULL, NULL), b = socket(AF_INET, SOCK_STREAM, 0);

		if (a < 0 || b < 0)
			die("socket");
		if (connect(b, (struct sockaddr *)&there, sizeof(there)))
			perror("connect");
		else
			talk(a, b);
		close(a);
		close(b);
	}
}
