// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One thread, one epoll: programs with MADs, consoles, real HCAs, and the clock. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "console.h"
#include "ext.h"
#include "manager.h"
#include "server.h"

#define TAG_STDIN 2
#define TAG_LISTEN 3
#define TAG_SIGNAL 4
#define TAG_CONTROL 0x300000000ull
#define MAX_CONTROLS 64
#define ANSWER_MS 3000

struct line_buffer {
	int fd;			/* -1: free */
	FILE *out;		/* the same one; asking for another at each line could fail */
	size_t used;
	char text[1024];
};

static struct server {
	int epoll, listener, signals, quit;
	int real_time;
	uint64_t started;	/* of the wall clock, when the model's was 0 */
	uint64_t now;		/* of the wall clock, when this turn began: asking costs */
	struct line_buffer input, controls[MAX_CONTROLS];
} server;

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int watch(int fd, uint64_t tag)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(server.epoll, EPOLL_CTL_ADD, fd, &e);
}

/*
 * The model runs ahead of the wall clock by what epoll can not tell apart: a packet's way through
 * some switches takes microseconds, and is done in one go rather than by waiting actively.
 */
#define AHEAD_PS 1000000000ull

static uint64_t model_time(void)
{
	return (server.now - server.started) * 1000;
}

static void catch_up(struct fabric *f)
{
	server.now = wall_ns();
	f->manager->now_ms = server.now / 1000000;
	if (server.real_time)
		fabric_run(f, model_time());
}

/* What has just come in starts now, and not where the model would be if it ran ahead of nothing. */
static void run_ahead(struct fabric *f)
{
	uint64_t until = model_time() + AHEAD_PS, next;

	if (!server.real_time)
		return;
	while ((next = clock_peek(&f->clock)) <= until)
		fabric_run(f, next);
}

static void close_line(struct line_buffer *b)
{
	if (b->out)
		fclose(b->out);
	else
		close(b->fd);
	b->out = NULL;
	b->fd = -1;
	b->used = 0;
}

/* Runs the complete lines of a buffer; the answer of a line ends with "ok" or "failed". */
static void run_lines(struct fabric *f, struct line_buffer *b, FILE *out, int verdicts)
{
	char *end;

	while ((end = memchr(b->text, '\n', b->used))) {
		char line[sizeof(b->text)];
		size_t n = end - b->text;
		int rc;

		memcpy(line, b->text, n);
		line[n] = '\0';
		memmove(b->text, end + 1, b->used - n - 1);
		b->used -= n + 1;
		catch_up(f);
		rc = console_line(f, line, out);
		if (rc > 0)
			server.quit = 1;
		if (verdicts)
			fputs(rc < 0 ? "failed\n" : "ok\n", out);
		fflush(out);
		if (rc > 0)
			return;
	}
	if (b->used == sizeof(b->text))
		b->used = 0;	/* no line is that long */
}

static void serve_lines(struct fabric *f, struct line_buffer *b, int verdicts)
{
	ssize_t n = read(b->fd, b->text + b->used, sizeof(b->text) - b->used);

	if (n <= 0) {
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		epoll_ctl(server.epoll, EPOLL_CTL_DEL, b->fd, NULL);
		if (!verdicts)
			server.quit = 1;
		close_line(b);
		return;
	}
	b->used += n;
	run_lines(f, b, verdicts ? b->out : stdout, verdicts);
}

static void accept_control(void)
{
	int fd = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	for (int i = 0; i < MAX_CONTROLS; i++)
		if (server.controls[i].fd < 0) {
			server.controls[i].out = fdopen(fd, "w");
			if (!server.controls[i].out)
				break;
			server.controls[i].fd = fd;
			server.controls[i].used = 0;
			watch(fd, TAG_CONTROL + i);
			return;
		}
	close(fd);
}

static int listen_control(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	unlink(path);
	if (server.listener < 0 ||
	    bind(server.listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(server.listener, MAX_CONTROLS))
		return -1;
	return watch(server.listener, TAG_LISTEN);
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* One turn of the loop. nested: within a command, so that consoles wait. */
static void turn(struct fabric *f, int max_wait, int nested)
{
	struct epoll_event events[64];
	int wait = trap_resend(f, server.now / 1000000), n;

	wait = sooner(wait, ext_tick(f, server.now / 1000000));
	wait = sooner(wait, pending_expire(f));
	wait = sooner(wait, late_go_on(f));
	wait = sooner(wait, clients_tick(f));
	if (server.real_time) {
		uint64_t next = clock_peek(&f->clock), at = model_time() + AHEAD_PS;

		if (next != CLOCK_NEVER) {
			uint64_t ms = next > at ? (next - at + AHEAD_PS - 1) / AHEAD_PS : 0;

			if (wait < 0 || ms < (uint64_t)wait)
				wait = ms;
		}
	}
	wait = sooner(wait, max_wait);
	n = epoll_wait(server.epoll, events, 64, wait);
	catch_up(f);
	for (int i = 0; i < n; i++) {
		uint64_t tag = events[i].data.u64;

		if (tag == TAG_CTL || (tag >= TAG_CLIENT && tag < TAG_EXT))
			clients_ready(f, tag, events[i].events);
		else if (tag >= TAG_EXT && tag < TAG_CONTROL)
			ext_ready(f, tag);
		else if (tag == TAG_SIGNAL)
			server.quit = 1;
		else if (nested)
			continue;
		else if (tag == TAG_STDIN)
			serve_lines(f, &server.input, 0);
		else if (tag == TAG_LISTEN)
			accept_control();
		else if (server.controls[tag - TAG_CONTROL].fd >= 0)
			serve_lines(f, &server.controls[tag - TAG_CONTROL], 1);
	}
	run_ahead(f);
}

static uint64_t waiting_since;

static int wait_for_answer(struct fabric *f)
{
	if (!waiting_since)
		waiting_since = wall_ns();
	if (server.quit || wall_ns() - waiting_since > ANSWER_MS * 1000000ull) {
		waiting_since = 0;
		return 0;
	}
	turn(f, 20, 1);
	if (f->manager->answered)
		waiting_since = 0;
	return 1;
}

static int complain(const char *what)
{
	fprintf(stderr, "vfabric: %s: %s\n", what, strerror(errno));
	return 1;
}

int server_run(struct fabric *f, const struct server_config *config)
{
	sigset_t set;
	int rc = 1;

	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	server.listener = -1;
	server.real_time = config->real_time;
	server.started = server.now = wall_ns();
	/* Every packet waits for its turn: nobody who polls, or is woken by it, comes before. */
	if (config->real_time)
		setpriority(PRIO_PROCESS, 0, -20);
	for (int i = 0; i < MAX_CONTROLS; i++)
		server.controls[i].fd = -1;
	f->deliver = ext_deliver;
	console_wait = wait_for_answer;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	server.signals = signalfd(-1, &set, SFD_CLOEXEC);
	watch(server.signals, TAG_SIGNAL);
	if (clients_open(f, config->name, server.epoll)) {
		rc = complain(config->name);
		goto out;
	}
	if (config->control && listen_control(config->control)) {
		rc = complain(config->control);
		goto out;
	}
	if (config->external && ext_listen(f, config->external, server.epoll)) {
		rc = complain(config->external);
		goto out;
	}
	if (config->console) {
		server.input.fd = STDIN_FILENO;
		watch(STDIN_FILENO, TAG_STDIN);
	}
	printf("vfabric ready: %u switches, %u hosts, %s:ctl\n", net_count(f->net, NET_SWITCH),
	       net_count(f->net, NET_HCA), config->name);
	fflush(stdout);
	while (!server.quit)
		turn(f, -1, 0);
	rc = 0;
out:
	ext_close(f);
	clients_close(f);
	for (int i = 0; i < MAX_CONTROLS; i++)
		if (server.controls[i].fd >= 0)
			close_line(&server.controls[i]);
	if (server.listener >= 0) {
		close(server.listener);
		unlink(config->control);
	}
	close(server.signals);
	close(server.epoll);
	return rc;
}
