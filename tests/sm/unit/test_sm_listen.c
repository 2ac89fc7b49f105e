// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The plugin's sockets while OpenSM has no descriptor left: who waits is left waiting for a while, and not asked
 * for at once again and again; then he is answered. sm/status.c and sm/vm_socket.c, with accept4() and poll()
 * looked at.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "listen.h"
#include "plugin.h"
#include "vm_socket.h"

#define FAILURES 3

static osm_opensm_t osm;
static struct rsm rsm = { .osm = &osm };
static char dir[] = "/tmp/test_sm_listen.XXXXXX", path[sizeof(dir) + 8];

/* Of the thread that accepts; read when it has answered. */
static int to_fail, with, failed, rests, at_once;
static bool just_failed;

int __real_accept4(int fd, struct sockaddr *addr, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *size, int flags);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *size, int flags)
{
	if (failed == to_fail)
		return __real_accept4(fd, addr, size, flags);
	failed++;
	just_failed = true;
	errno = with;
	return -1;
}

static bool is_listener(int fd)
{
	int is = 0;
	socklen_t size = sizeof(is);

	return fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is, &size) && is;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	bool watched = false;

	for (nfds_t i = 0; i < n; i++)
		watched |= is_listener(fds[i].fd);
	if (just_failed) {
		rests += !watched && timeout == RSM_REST_MS;
		at_once += watched;
		just_failed = false;
	}
	return __real_poll(fds, n, timeout);
}

void rsm_wake(struct rsm *r)
{
	struct rsm_vm_line line;

	if (r->status)
		rsm_status_part.tick(r, 0);
	else if (rsm_vm_socket_next(&line))
		rsm_vm_socket_answer(line.who, "here");
}

void rsm_status_all(struct rsm *r, FILE *out)
{
	(void)r;
	fputs("here\n", out);
}

void osm_log(IN osm_log_t *const log, IN const osm_log_level_t level, IN const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

/* @say: who listens answers only then. */
static void answered(bool say)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char text[16] = "";

	strcpy(addr.sun_path, path);
	CHECK_EQ(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	if (say)
		CHECK_EQ(write(fd, "who\n", 4), 4);
	CHECK_EQ(read(fd, text, sizeof(text) - 1), 5);
	CHECK(!strcmp(text, "here\n"));
	close(fd);
}

static void start(int error)
{
	with = error;
	to_fail = FAILURES;
	failed = rests = at_once = 0;
	just_failed = false;
}

static void check(bool rest)
{
	CHECK_EQ(failed, FAILURES);
	CHECK_EQ(rests, rest ? FAILURES : 0);
	CHECK_EQ(at_once, rest ? 0 : FAILURES);
}

static void status(int error, bool rest)
{
	start(error);
	strcpy(rsm.opt.status_socket, path);
	CHECK_EQ(rsm_status_part.start(&rsm), 0);
	answered(false);
	answered(false);
	rsm_status_part.stop(&rsm);
	check(rest);
}

static void vms(int error, bool rest)
{
	start(error);
	CHECK_EQ(rsm_vm_socket_open(&rsm, path), 0);
	answered(true);
	answered(true);
	rsm_vm_socket_close();
	check(rest);
}

int main(void)
{
	static const int want[] = { EMFILE, ENFILE, ENOMEM }, gone[] = { EAGAIN, EINTR, ECONNABORTED };

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	for (int i = 0; i < 3; i++) {
		status(want[i], true);
		vms(want[i], true);
		status(gone[i], false);
		vms(gone[i], false);
	}
	rmdir(dir);
	puts("ok");
	return 0;
}
