// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The status socket: who connects gets one line of JSON, and the end. */
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "listen.h"
#include "plugin.h"

/**
 * struct rsm_status - the socket and its thread
 *
 * The thread does nothing but accept: the line itself is written by the plugin's thread, which
 * alone may look at the parts.
 */
struct rsm_status {
	struct rsm *rsm;
	int listener;
	int ending;
	pthread_t thread;
	pthread_mutex_t mutex;
	int asking[8];
	int n_asking;
};

static void *accept_main(void *arg)
{
	struct rsm_status *status = arg;
	struct pollfd fds[] = {
		{ .fd = status->listener, .events = POLLIN },
		{ .fd = status->ending, .events = POLLIN },
	};
	bool rest = false;

	while (poll(fds, 2, rest ? RSM_REST_MS : -1) >= 0 || errno == EINTR) {
		int fd;

		if (fds[1].revents)
			break;
		fd = rsm_accept(status->listener, &rest);
		fds[0].fd = rest ? -1 : status->listener;
		if (fd < 0)
			continue;
		pthread_mutex_lock(&status->mutex);
		if (status->n_asking < (int)(sizeof(status->asking) / sizeof(int))) {
			status->asking[status->n_asking++] = fd;
			fd = -1;
		}
		pthread_mutex_unlock(&status->mutex);
		if (fd >= 0)
			close(fd);
		rsm_wake(status->rsm);
	}
	return NULL;
}

static void answer(struct rsm *rsm, int fd)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out) {
		rsm_status_all(rsm, out);
		fclose(out);
		/* Who does not read loses the rest: the plugin never waits for a reader. */
		send(fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		free(text);
	}
	close(fd);
}

static uint64_t status_tick(struct rsm *rsm, uint64_t now)
{
	struct rsm_status *status = rsm->status;
	int fds[sizeof(status->asking) / sizeof(int)], n;

	(void)now;
	if (!status)
		return RSM_NEVER;
	pthread_mutex_lock(&status->mutex);
	n = status->n_asking;
	memcpy(fds, status->asking, sizeof(fds));
	status->n_asking = 0;
	pthread_mutex_unlock(&status->mutex);
	for (int i = 0; i < n; i++)
		answer(rsm, fds[i]);
	return RSM_NEVER;
}

static int status_start(struct rsm *rsm)
{
	struct rsm_status *status;
	int rc;

	if (!*rsm->opt.status_socket)
		return 0;
	status = calloc(1, sizeof(*status));
	if (!status)
		return -ENOMEM;
	status->rsm = rsm;
	status->listener = rsm_listen(rsm->opt.status_socket);
	if (status->listener < 0) {
		rc = status->listener;
		rsm_log(rsm, OSM_LOG_ERROR, "status_socket %s: %s", rsm->opt.status_socket,
			strerror(-rc));
		goto err_free;
	}
	pthread_mutex_init(&status->mutex, NULL);
	status->ending = eventfd(0, EFD_CLOEXEC);
	if (status->ending < 0) {
		rc = -errno;
		goto err_listener;
	}
	rc = -pthread_create(&status->thread, NULL, accept_main, status);
	if (rc)
		goto err_ending;
	rsm->status = status;
	return 0;
err_ending:
	close(status->ending);
err_listener:
	close(status->listener);
	unlink(rsm->opt.status_socket);
err_free:
	free(status);
	return rc;
}

static void status_stop(struct rsm *rsm)
{
	struct rsm_status *status = rsm->status;

	if (!status)
		return;
	eventfd_write(status->ending, 1);
	pthread_join(status->thread, NULL);
	for (int i = 0; i < status->n_asking; i++)
		close(status->asking[i]);
	close(status->ending);
	close(status->listener);
	unlink(rsm->opt.status_socket);
	free(status);
	rsm->status = NULL;
}

const struct rsm_part rsm_status_part = {
	.name = "status",
	.start = status_start,
	.stop = status_stop,
	.tick = status_tick,
};
