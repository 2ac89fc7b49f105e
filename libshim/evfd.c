// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "shim.h"

static int watch(int epfd, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int rp_evfd_open(struct rp_evfd *e, int realfd)
{
	int ret;

	e->realfd = -1;
	e->softfd = -1;
	e->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (e->epfd < 0)
		return -errno;
	e->softfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = e->softfd < 0 ? -errno : watch(e->epfd, e->softfd);
	if (!ret)
		ret = rp_evfd_attach(e, realfd);
	if (ret)
		rp_evfd_close(e);
	return ret;
}

void rp_evfd_close(struct rp_evfd *e)
{
	rp_evfd_detach(e);
	if (e->softfd >= 0)
		close(e->softfd);
	if (e->epfd >= 0)
		close(e->epfd);
	e->epfd = e->softfd = -1;
}

int rp_evfd_attach(struct rp_evfd *e, int realfd)
{
	int flags = fcntl(realfd, F_GETFL), ret;

	/* Several threads may wait: who finds nothing left must come back to waiting for both. */
	if (flags < 0 || fcntl(realfd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	ret = watch(e->epfd, realfd);
	if (!ret)
		e->realfd = realfd;
	return ret;
}

void rp_evfd_detach(struct rp_evfd *e)
{
	if (e->realfd >= 0)
		epoll_ctl(e->epfd, EPOLL_CTL_DEL, e->realfd, NULL);
	e->realfd = -1;
}

void rp_evfd_raise(struct rp_evfd *e)
{
	int cancel = rp_uncancelled();
	uint64_t one = 1;

	/* EAGAIN: the counter is at its end, which is as readable as can be. */
	while (write(e->softfd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	rp_cancelled_as(cancel);
}

void rp_evfd_lower(struct rp_evfd *e)
{
	int cancel = rp_uncancelled();
	uint64_t n;

	while (read(e->softfd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
	rp_cancelled_as(cancel);
}

/*
 * libibverbs blocks in read(), which goes on after a handler that was set with SA_RESTART; poll()
 * never does. Which handler ran is not told, so: interrupted, if there is one that asks for it.
 */
static bool wants_eintr(void)
{
	struct sigaction sa;
	int sig;

	for (sig = 1; sig < NSIG; sig++) {
		/* Faults of the thread itself do not interrupt a wait. */
		if (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL ||
		    sig == SIGTRAP || sig == SIGABRT)
			continue;
		if (!sigaction(sig, NULL, &sa) && sa.sa_handler != SIG_DFL &&
		    sa.sa_handler != SIG_IGN && !(sa.sa_flags & SA_RESTART))
			return true;
	}
	return false;
}

int rp_evfd_wait(struct rp_evfd *e)
{
	struct pollfd p = { .fd = e->epfd, .events = POLLIN };
	int flags = fcntl(e->epfd, F_GETFL);

	if (flags >= 0 && (flags & O_NONBLOCK))
		return -EAGAIN;
	for (;;) {
		int n = poll(&p, 1, -1);

		if (n > 0)
			return p.revents & POLLNVAL ? -EBADF : 0;
		if (n < 0 && (errno != EINTR || wants_eintr()))
			return -errno;
	}
}
