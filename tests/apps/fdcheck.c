// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "fdcheck.h"
#include "oob.h"

static const char usage[] =
"usage: fdcheck [-d DEVICE] [-g GID_INDEX] [-p PORT] [-T SEC] [-G USEC] [-S SEC] [-a WAY] [HOST]\n"
"  -T SEC   end after so long (until SIGTERM or SIGINT, at either end)\n"
"  -G USEC  pause before each answer (2000)\n"
"  -S SEC   without a message is a failure (90)\n"
"  -a WAY   to wait for asynchronous events: epoll (default), poll, block\n";

struct game {
	const char *host, *device, *async_way;
	int gid_index, oob;
	uint16_t port;
	unsigned int gap_us;
	double seconds, stall;
	struct endpoint ep;
	struct ibv_pd *pd;
	struct watch watches[WAYS];
	pthread_t async_thread;
	volatile bool async_end;
	volatile unsigned int async_events;
	double started;
	char failure[320];
};

static volatile sig_atomic_t stop_wanted;

static void on_signal(int sig)
{
	if (sig != SIGUSR1)
		stop_wanted = 1;
}

double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fail(struct game *g, const char *what)
{
	if (g->failure[0])
		return;
	snprintf(g->failure, sizeof(g->failure), "%s", what);
	fprintf(stderr, "fdcheck: FAIL: %s\n", what);
}

static void parse(struct game *g, int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "d:g:p:T:G:S:a:h")) >= 0) {
		switch (o) {
		case 'd': g->device = optarg; break;
		case 'g': g->gid_index = atoi(optarg); break;
		case 'p': g->port = atoi(optarg); break;
		case 'T': g->seconds = atof(optarg); break;
		case 'G': g->gap_us = atoi(optarg); break;
		case 'S': g->stall = atof(optarg); break;
		case 'a': g->async_way = optarg; break;
		default:
			fputs(usage, o == 'h' ? stdout : stderr);
			exit(o == 'h' ? 0 : 2);
		}
	}
	g->host = argv[optind];
	if (strcmp(g->async_way, "epoll") && strcmp(g->async_way, "poll") &&
	    strcmp(g->async_way, "block"))
		errx(2, "%s: epoll, poll or block is wanted", g->async_way);
}

/* Registered once, before any event; true when ibv_get_async_event() should find one. */
static bool async_ready(struct game *g, int epoll)
{
	struct pollfd p = { .fd = g->ep.ctx->async_fd, .events = POLLIN };
	struct epoll_event event;

	if (!strcmp(g->async_way, "block"))
		return true;
	if (!strcmp(g->async_way, "poll"))
		return poll(&p, 1, 100) > 0;
	return epoll_wait(epoll, &event, 1, 100) > 0;
}

static void *watch_async(void *arg)
{
	struct game *g = arg;
	struct epoll_event watch = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct ibv_async_event event;

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, g->ep.ctx->async_fd, &watch))
		err(2, "epoll");
	while (!g->async_end) {
		if (!async_ready(g, epoll))
			continue;
		if (ibv_get_async_event(g->ep.ctx, &event)) {
			if (errno != EINTR)
				fail(g, "get_async_event");
			continue;
		}
		ibv_ack_async_event(&event);
		g->async_events++;
		printf("{\"async\":\"%s\",\"t\":%.3f}\n", ibv_event_type_str(event.event_type),
		       seconds_now() - g->started);
	}
	close(epoll);
	return NULL;
}

static void set_up(struct game *g)
{
	char go = 'g';
	int i;

	g->oob = g->host ? oob_connect(g->host, g->port, 60) : oob_listen(g->port);
	endpoint_open(&g->ep, g->device, g->gid_index);
	g->pd = ibv_alloc_pd(g->ep.ctx);
	if (!g->pd)
		err(2, "allocate a protection domain");
	for (i = 0; i < WAYS; i++) {
		struct watch *w = &g->watches[i];

		w->client = g->host;
		w->gap_us = g->gap_us;
		watch_create(w, &g->ep, g->pd, i);
		if (!oob_write(g->oob, &w->local, sizeof(w->local)) ||
		    !oob_read(g->oob, &w->remote, sizeof(w->remote)))
			errx(2, "the other end has gone");
		errno = rc_connect(w->qp, &g->ep, &w->local, &w->remote, NULL);
		if (errno)
			err(2, "connect");
		watch_start(w);
	}
	g->started = seconds_now();
	errno = pthread_create(&g->async_thread, NULL, watch_async, g);
	if (errno)
		err(2, "thread");
	if (!oob_write(g->oob, &go, 1) || !oob_read(g->oob, &go, 1))
		errx(2, "the other end has gone");
	for (i = 0; g->host && i < WAYS; i++)
		watch_serve(&g->watches[i]);
}

static void check_watches(struct game *g)
{
	double now = seconds_now();
	char text[300];
	int i;

	for (i = 0; i < WAYS; i++) {
		struct watch *w = &g->watches[i];

		if (w->failure[0]) {
			snprintf(text, sizeof(text), "%s: %s", way_names[i], w->failure);
			fail(g, text);
		} else if (!w->done && now - w->changed > g->stall) {
			snprintf(text, sizeof(text), "%s: nothing for %.0f s after message %llu, %llu events",
				 way_names[i], g->stall, (unsigned long long)w->last,
				 (unsigned long long)w->events);
			fail(g, text);
		}
	}
}

static bool all_done(const struct game *g)
{
	int i;

	for (i = 0; i < WAYS; i++)
		if (!g->watches[i].done)
			return false;
	return true;
}

static void progress(struct game *g)
{
	static double last;
	uint64_t sum = 0;
	int i;

	if (seconds_now() - last < 1)
		return;
	last = seconds_now();
	printf("{\"t\":%.3f,\"last\":[", last - g->started);
	for (i = 0; i < WAYS; i++) {
		sum += g->watches[i].recvs_done;
		printf("%s%llu", i ? "," : "", (unsigned long long)g->watches[i].last);
	}
	printf("],\"msgs\":%llu}\n", (unsigned long long)sum);
}

static bool time_to_stop(const struct game *g)
{
	return stop_wanted || (g->seconds && seconds_now() - g->started >= g->seconds);
}

/* The client ends its games after a message that it got, so that nothing is under way then. */
static void play_client(struct game *g)
{
	bool stopping = false;
	int i;

	while (!g->failure[0] && !(stopping && all_done(g))) {
		if (!stopping && (time_to_stop(g) || oob_ready(g->oob))) {
			for (i = 0; i < WAYS; i++)
				g->watches[i].stop = true;
			stopping = true;
		}
		check_watches(g);
		progress(g);
		usleep(50000);
	}
	for (i = 0; i < WAYS && !g->failure[0]; i++) {
		uint64_t last = g->watches[i].last;

		if (!oob_write(g->oob, &last, sizeof(last)))
			fail(g, "the other end has gone");
	}
}

static void play_server(struct game *g)
{
	bool told = false;
	uint64_t last;
	int i;

	while (!g->failure[0] && !oob_ready(g->oob)) {
		if (!told && time_to_stop(g)) {
			told = true;
			if (!oob_write(g->oob, "s", 1))
				fail(g, "the other end has gone");
		}
		check_watches(g);
		progress(g);
		usleep(50000);
	}
	/* The client got what we sent last; we got the one before that. */
	for (i = 0; i < WAYS && !g->failure[0]; i++)
		if (!oob_read(g->oob, &last, sizeof(last)))
			fail(g, "the other end has gone");
		else if (last != g->watches[i].last + 1)
			fail(g, "the last message is not the one that the client has seen");
}

static void end_threads(struct game *g)
{
	int i;

	g->async_end = true;
	for (i = 0; i < WAYS; i++)
		g->watches[i].end = true;
	/* Until they have left: a signal may come just before the read that it should end. */
	while (!all_done(g)) {
		for (i = 0; i < WAYS; i++)
			if (!g->watches[i].done)
				pthread_kill(g->watches[i].thread, SIGUSR1);
		usleep(20000);
	}
	for (i = 0; i < WAYS; i++)
		pthread_join(g->watches[i].thread, NULL);
	while (pthread_kill(g->async_thread, SIGUSR1), usleep(20000),
	       pthread_tryjoin_np(g->async_thread, NULL))
		;
}

static void report(struct game *g)
{
	int i;

	printf("{\"ok\":%s,\"role\":\"%s\",\"seconds\":%.3f,\"async_events\":%u,\"ways\":{",
	       g->failure[0] ? "false" : "true", g->host ? "client" : "server",
	       seconds_now() - g->started, g->async_events);
	for (i = 0; i < WAYS; i++) {
		struct watch *w = &g->watches[i];

		printf("%s\"%s\":{\"received\":%llu,\"arms\":%llu,\"events\":%llu,\"spurious\":%llu,"
		       "\"max_gap_ms\":%.1f}", i ? "," : "", way_names[i],
		       (unsigned long long)w->recvs_done, (unsigned long long)w->arms,
		       (unsigned long long)w->events, (unsigned long long)w->spurious,
		       w->max_gap * 1e3);
	}
	printf("}}\n");
}

int main(int argc, char **argv)
{
	static struct game g = {
		.gid_index = -1, .port = 18700, .gap_us = 2000, .stall = 90, .async_way = "epoll",
	};
	struct sigaction act = { .sa_handler = on_signal };
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGUSR1, &act, NULL);
	parse(&g, argc, argv);
	set_up(&g);
	if (g.host)
		play_client(&g);
	else
		play_server(&g);
	end_threads(&g);
	for (i = 0; i < WAYS; i++)
		watch_destroy(&g.watches[i]);
	check_watches(&g);
	if (ibv_dealloc_pd(g.pd))
		fail(&g, "dealloc_pd");
	if (ibv_close_device(g.ep.ctx))
		fail(&g, "close_device");
	report(&g);
	return g.failure[0] ? 1 : 0;
}
