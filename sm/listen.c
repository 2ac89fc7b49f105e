// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "listen.h"

/**
 * rsm_listen - make a socket
 * @path: where; a socket that nobody listens on is left over from a killed OpenSM and goes
 *
 * Return: its descriptor, non-blocking, or a negative error number.
 */
int rsm_listen(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	if (fd < 0)
		return -errno;
	strcpy(addr.sun_path, path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
		close(fd);
		return -EADDRINUSE;
	}
	if (errno == ECONNREFUSED && !lstat(path, &st) && S_ISSOCK(st.st_mode))
		unlink(path);
	if (!bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !chmod(path, 0600) && !listen(fd, 8))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/**
 * rsm_accept - take who wants to connect
 * @listener: of rsm_listen()
 * @rest: set: nobody can be taken now, for want of descriptors or memory. poll() would say that somebody waits
 *	all the time: the listener is to be left out of it for RSM_REST_MS. Else cleared.
 *
 * Return: a descriptor, non-blocking, or -1.
 */
int rsm_accept(int listener, bool *rest)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	*rest = fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
	return fd;
}
