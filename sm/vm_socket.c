// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A thread accepts and reads; the plugin's own takes the lines and answers. Each line is answered by one,
 * in the order in which they are through. Who has sent the last may shut its end down and still read.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "listen.h"
#include "plugin.h"
#include "vm_socket.h"

#define MOST_CLIENTS	32
#define MOST_LINES	64

/**
 * struct client - a connection
 * @fd: -1: none
 * @age: how many there were before at this place
 * @owed: answers
 * @ended: nothing more will be said
 * @used: of @line
 * @line: that has not ended yet
 */
struct client {
	int fd;
	uint32_t age;
	unsigned int owed;
	bool ended;
	size_t used;
	char line[RSM_VM_LINE];
};

static struct {
	struct rsm *rsm;
	const char *path;
	int listener, ending;
	pthread_t thread;
	pthread_mutex_t mutex;
	struct client clients[MOST_CLIENTS];
	struct rsm_vm_line lines[MOST_LINES];
	unsigned int first, n;
} s = { .listener = -1, .mutex = PTHREAD_MUTEX_INITIALIZER };

static void drop(struct client *c)
{
	close(c->fd);
	*c = (struct client) { .fd = -1, .age = c->age + 1 };
}

static void say(struct client *c, const char *text)
{
	char line[RSM_VM_ANSWER + 1];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	/* Who does not read loses it: the plugin never waits for a reader. */
	if (send(c->fd, line, n < (int)sizeof(line) ? n : (int)sizeof(line) - 1,
		 MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		c->ended = true;
}

static void take_line(struct client *c, size_t length)
{
	struct rsm_vm_line *line = &s.lines[(s.first + s.n) % MOST_LINES];

	if (s.n == MOST_LINES) {
		say(c, "{\"error\":\"too much at once\"}");
		return;
	}
	line->who = (uint32_t)(c - s.clients) + c->age * MOST_CLIENTS;
	memcpy(line->text, c->line, length);
	line->text[length] = '\0';
	s.n++;
	c->owed++;
}

static void hear(struct client *c)
{
	ssize_t n = recv(c->fd, c->line + c->used, sizeof(c->line) - c->used, MSG_DONTWAIT);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		c->ended = true;
		return;
	}
	c->used += n;
	while ((end = memchr(c->line, '\n', c->used))) {
		size_t length = end - c->line;

		take_line(c, length);
		c->used -= length + 1;
		memmove(c->line, end + 1, c->used);
	}
	if (c->used == sizeof(c->line)) {
		say(c, "{\"error\":\"too long a line\"}");
		c->ended = true;
	}
}

static void welcome(bool *rest)
{
	int fd = rsm_accept(s.listener, rest);

	for (int i = 0; i < MOST_CLIENTS && fd >= 0; i++) {
		if (s.clients[i].fd >= 0)
			continue;
		s.clients[i].fd = fd;
		return;
	}
	if (fd >= 0)
		close(fd);
}

static void *socket_main(void *arg)
{
	struct pollfd fds[MOST_CLIENTS + 2];
	bool rest = false;
	uint64_t count;

	(void)arg;
	for (;;) {
		unsigned int before;

		pthread_mutex_lock(&s.mutex);
		for (int i = 0; i < MOST_CLIENTS; i++) {
			struct client *c = &s.clients[i];

			if (c->fd >= 0 && c->ended && !c->owed)
				drop(c);
			fds[i] = (struct pollfd) { c->ended ? -1 : c->fd, POLLIN, 0 };
		}
		pthread_mutex_unlock(&s.mutex);
		fds[MOST_CLIENTS] = (struct pollfd) { rest ? -1 : s.listener, POLLIN, 0 };
		fds[MOST_CLIENTS + 1] = (struct pollfd) { s.ending, POLLIN, 0 };
		if (poll(fds, MOST_CLIENTS + 2, rest ? RSM_REST_MS : -1) < 0 && errno != EINTR)
			return NULL;
		/* 1: an answer was given, which may have been the last; more: the end. */
		if (fds[MOST_CLIENTS + 1].revents &&
		    (eventfd_read(s.ending, &count) || count > UINT32_MAX))
			return NULL;
		pthread_mutex_lock(&s.mutex);
		before = s.n;
		for (int i = 0; i < MOST_CLIENTS; i++)
			if (fds[i].revents && s.clients[i].fd == fds[i].fd)
				hear(&s.clients[i]);
		rest = false;
		if (fds[MOST_CLIENTS].revents)
			welcome(&rest);
		before = s.n - before;
		pthread_mutex_unlock(&s.mutex);
		if (before)
			rsm_wake(s.rsm);
	}
}

/** rsm_vm_socket_next - a line that is to be answered; false: there is none */
bool rsm_vm_socket_next(struct rsm_vm_line *line)
{
	bool any;

	pthread_mutex_lock(&s.mutex);
	any = s.n;
	if (any) {
		*line = s.lines[s.first];
		s.first = (s.first + 1) % MOST_LINES;
		s.n--;
	}
	pthread_mutex_unlock(&s.mutex);
	return any;
}

/** rsm_vm_socket_answer - the line that is owed for one */
void rsm_vm_socket_answer(uint32_t who, const char *text)
{
	struct client *c = &s.clients[who % MOST_CLIENTS];

	pthread_mutex_lock(&s.mutex);
	if (c->fd >= 0 && c->age == who / MOST_CLIENTS) {
		say(c, text);
		c->owed--;
	}
	pthread_mutex_unlock(&s.mutex);
	eventfd_write(s.ending, 1);
}

/**
 * rsm_vm_socket_open - listen
 * @rsm: the plugin: it is woken when somebody has said something
 * @path: of the socket
 *
 * Return: 0 or a negative error number.
 */
int rsm_vm_socket_open(struct rsm *rsm, const char *path)
{
	int rc = -ENOMEM;

	s.rsm = rsm;
	s.path = path;
	for (int i = 0; i < MOST_CLIENTS; i++)
		s.clients[i] = (struct client) { .fd = -1 };
	s.ending = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s.ending < 0)
		return -errno;
	s.listener = rsm_listen(path);
	if (s.listener < 0) {
		rc = s.listener;
		goto err_ending;
	}
	rc = -pthread_create(&s.thread, NULL, socket_main, NULL);
	if (!rc)
		return 0;
	close(s.listener);
	unlink(path);
	s.listener = -1;
err_ending:
	close(s.ending);
	return rc;
}

/** rsm_vm_socket_close - nobody is heard any more, or answered */
void rsm_vm_socket_close(void)
{
	if (s.listener < 0)
		return;
	eventfd_write(s.ending, 1ull << 40);
	pthread_join(s.thread, NULL);
	for (int i = 0; i < MOST_CLIENTS; i++)
		if (s.clients[i].fd >= 0)
			drop(&s.clients[i]);
	close(s.listener);
	close(s.ending);
	unlink(s.path);
	s.listener = -1;
}
