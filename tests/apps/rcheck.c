// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "oob.h"
#include "rcheck.h"

#define QUIET_S 0.3	/* a doubled completion would come within this time of the last one */

static volatile sig_atomic_t stop_wanted, hold_wanted, pause_wanted, leave_wanted;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		hold_wanted = 1;
	else if (sig == SIGUSR2)
		pause_wanted = 1;
	else if (sig == SIGQUIT)
		leave_wanted = 1;
	else if (sig != SIGALRM)
		stop_wanted = 1;
}

static void catch_signals(void)
{
	/* No SA_RESTART: a tick has to end a blocking read. */
	struct sigaction act = { .sa_handler = on_signal };
	static const int signals[] = { SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGALRM, SIGQUIT };
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &act, NULL);
}

enum oob_type { OOB_STOP = 1, OOB_TOTALS, OOB_VERDICT };

/* Its socket says so. What the queue pairs say of it is to be seen with --alone. */
static void other_end_gone(struct check *c)
{
	if (!c->opt.alone) {
		fail(c, NULL, "the other end has gone");
		return;
	}
	close(c->oob);
	c->oob = -1;
}

static void say(struct check *c, enum oob_type type, const void *data, uint32_t len)
{
	uint32_t head[2] = { type, len };

	if (!oob_write(c->oob, head, sizeof(head)) || !oob_write(c->oob, data, len))
		other_end_gone(c);
}

static void take_totals(struct check *c, uint32_t len)
{
	uint32_t i;

	if (len != c->traffic.qps * sizeof(struct totals)) {
		fail(c, NULL, "totals of %u bytes", len);
		return;
	}
	for (i = 0; i < c->traffic.qps; i++)
		if (!oob_read(c->oob, &c->links[i].theirs, sizeof(struct totals)))
			fail(c, NULL, "the other end has gone");
	c->totals_got = true;
}

static void take_verdict(struct check *c, uint32_t len)
{
	char text[sizeof(c->failure)];

	if (len >= sizeof(text) || !oob_read(c->oob, text, len)) {
		fail(c, NULL, "the other end has gone");
		return;
	}
	text[len] = 0;
	if (len && c->opt.alone) {
		other_end_gone(c);
		return;
	}
	if (len)
		fail(c, NULL, "at the other end: %s", text);
	c->verdict_got = true;
}

static void listen_to_peer(struct check *c)
{
	uint32_t head[2];

	while (!c->failure[0] && !c->verdict_got && c->oob >= 0 && oob_ready(c->oob)) {
		if (!oob_read(c->oob, head, sizeof(head)))
			other_end_gone(c);
		else if (head[0] == OOB_STOP)
			stop_wanted = 1;
		else if (head[0] == OOB_TOTALS)
			take_totals(c, head[1]);
		else if (head[0] == OOB_VERDICT)
			take_verdict(c, head[1]);
		else
			fail(c, NULL, "unknown message %u from the other end", head[0]);
	}
}

static bool all_retired(const struct check *c)
{
	uint32_t i;

	for (i = 0; i < c->traffic.qps; i++)
		if (c->links[i].posted != c->links[i].retired)
			return false;
	return true;
}

static void say_totals(struct check *c)
{
	struct totals *t = calloc(c->traffic.qps, sizeof(*t));
	uint32_t i;

	if (!t)
		err(2, "memory");
	for (i = 0; i < c->traffic.qps; i++)
		t[i] = (struct totals){
			.rseq = c->links[i].rseq, .wseq = c->links[i].wseq,
			.adds = c->links[i].adds, .swaps = c->links[i].swaps,
		};
	say(c, OOB_TOTALS, t, c->traffic.qps * sizeof(*t));
	free(t);
	c->totals_sent = true;
}

static bool all_arrived(struct check *c)
{
	bool all = true;
	uint32_t i;

	for (i = 0; i < c->traffic.qps && !c->failure[0]; i++) {
		struct link *l = &c->links[i];

		if (!l->finished)
			l->finished = link_verify_end(c, l);
		all &= l->finished;
	}
	return all && !c->failure[0];
}

/*
 * Both stop posting, wait for their own completions, exchange totals, compare, READ samples of the ballast,
 * stay quiet a while.
 */
static void go_on(struct check *c)
{
	if (c->phase == RUNNING &&
	    (stop_wanted || (c->opt.seconds && c->now - c->started >= c->opt.seconds))) {
		say(c, OOB_STOP, NULL, 0);
		c->phase = STOPPING;
		c->last_progress = c->now;
	}
	if (c->phase == STOPPING && !c->totals_sent && all_retired(c))
		say_totals(c);
	if (c->phase == STOPPING && c->totals_sent && c->totals_got && all_arrived(c)) {
		check_all_sent(c);
		c->phase = SAMPLING;
	}
	if (c->phase == SAMPLING) {
		ballast_sample(c);
		if (ballast_is_sampled(c) && all_retired(c)) {
			c->phase = SETTLING;
			c->settle_from = c->now;
		}
	}
	if (c->phase == SETTLING && !c->verdict_sent && c->now - c->settle_from >= QUIET_S) {
		say(c, OOB_VERDICT, NULL, 0);
		c->verdict_sent = true;
	}
	if (c->verdict_sent && c->verdict_got)
		c->phase = DONE;
}

static void take_async_events(struct check *c)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(c->ep.ctx, &event)) {
		enum ibv_event_type type = event.event_type;

		ibv_ack_async_event(&event);
		c->async_events++;
		fprintf(stderr, "rcheck: event: %s\n", ibv_event_type_str(type));
		if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_ACCESS_ERR ||
		    type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_CQ_ERR ||
		    type == IBV_EVENT_DEVICE_FATAL)
			fail(c, NULL, "asynchronous event: %s", ibv_event_type_str(type));
	}
}

static void tick(struct check *c)
{
	static double last;

	if (c->now - last < TICK_MS / 1000.0)
		return;
	last = c->now;
	if (hold_wanted) {
		c->hold_until = c->hold_until > c->now ? 0 : c->now + c->opt.no_recv_ms / 1000.0;
		hold_wanted = 0;
	}
	if (pause_wanted) {
		c->pause_until = c->now + c->opt.pause_ms / 1000.0;
		pause_wanted = 0;
	}
	listen_to_peer(c);
	take_async_events(c);
	check_times(c);
	report_interval(c);
}

/* In turn, and where there is a rate a little each: else the first ones would take all of it. */
static void send_all(struct check *c)
{
	bool again = true;
	uint32_t i, from;

	while (again && !c->failure[0]) {
		from = c->turn;
		again = false;
		for (i = 0; i < c->traffic.qps && !c->failure[0]; i++) {
			uint32_t at = (from + i) % c->traffic.qps;

			if (!link_send(c, &c->links[at]))
				continue;
			again = c->traffic.rate;
			if (c->traffic.rate && !rate_allows(c)) {
				/* The others still give credits back. */
				c->turn = (at + 1) % c->traffic.qps;
				again = false;
			}
		}
	}
}

static void run(struct check *c)
{
	bool first = true;	/* something may have come before the queues were armed */
	uint32_t i;

	c->now = c->started = seconds_now();
	while (c->phase != DONE && !c->failure[0] && !leave_wanted) {
		if (c->pause_until > c->now) {
			usleep(TICK_MS * 1000);
			c->now = seconds_now();
			continue;
		}
		send_all(c);
		for (i = 0; i < c->traffic.qps && c->phase == STOPPING && !c->totals_sent; i++)
			link_flush(c, &c->links[i]);
		wait_and_poll(c, first);
		first = false;
		for (i = 0; i < c->traffic.qps && c->hold_until <= c->now; i++)
			link_post_recvs(c, &c->links[i]);
		for (i = 0; i < c->traffic.qps && !c->failure[0]; i++)
			link_probe_if_still(c, &c->links[i]);
		tick(c);
		if (!c->failure[0])
			go_on(c);
	}
	if (leave_wanted)
		return;
	if (c->failure[0] && c->opt.probe)
		prove_dead(c);
	if (c->failure[0] && !c->verdict_sent)
		say(c, OOB_VERDICT, c->failure, strlen(c->failure));
}

static void agree_on_traffic(struct check *c)
{
	if (c->opt.host) {
		c->oob = oob_connect(c->opt.host, c->opt.port, 60);
		if (!oob_write(c->oob, &c->traffic, sizeof(c->traffic)))
			errx(2, "the other end has gone");
	} else {
		c->oob = oob_listen(c->opt.port);
		if (!oob_read(c->oob, &c->traffic, sizeof(c->traffic)) ||
		    c->traffic.version != RCHECK_VERSION)
			errx(2, "the other end is no rcheck of this version");
		c->from = 1;
	}
	c->sender = c->opt.host || c->traffic.bidir;
	if (c->opt.cqs > c->traffic.qps)
		c->opt.cqs = c->traffic.qps;
}

/* They end with us. The first one keeps what fork() gave it, and uses nothing of it. */
static void have_children(void)
{
	pid_t children[2];
	int i;

	signal(SIGCHLD, SIG_IGN);
	for (i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] < 0)
			err(2, "fork");
		if (children[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_DFL);
		if (i)
			execlp("sleep", "sleep", "10000", NULL);
		for (;;)
			pause();
	}
	printf("{\"children\":[%d,%d]}\n", children[0], children[1]);
}

int main(int argc, char **argv)
{
	static struct check c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	catch_signals();
	options_parse(&c, argc, argv);
	if (c.opt.fork_init && ibv_fork_init())
		err(2, "ibv_fork_init");
	agree_on_traffic(&c);
	links_create(&c);
	links_connect(&c);
	if (c.opt.fork)
		have_children();
	report_numbers(&c, "start");
	wait_set_up(&c);
	run(&c);
	report_numbers(&c, "end");
	links_destroy(&c, !leave_wanted);
	if (c.oob >= 0)
		close(c.oob);
	report_end(&c);
	free(c.links);
	return c.failure[0] ? 1 : 0;
}
