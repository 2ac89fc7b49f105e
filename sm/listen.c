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
