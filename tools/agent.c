// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath agent: serves the host of this virtual machine. See repath-agent(8). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "agent.h"
#include "command.h"
#include "out.h"

#define OP_LOOK_MS	250	/* should an event be lost */
#define AGENT_NICE	(-15)
#define WAIT_LOOK_MS	20	/* sysfs tells no changes */

uint64_t agent_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

struct json_object *agent_answer(struct json_object *id, bool ok)
{
	struct json_object *o = json_object_new_object();

	if (id)
		json_object_object_add(o, "id", json_object_get(id));
	out_flag(o, "ok", ok);
	return o;
}

void agent_refuse(struct agent *ag, struct json_object *id, const char *format, ...)
{
	struct json_object *o = agent_answer(id, false);
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	out_text(o, "error", text);
	port_send(&ag->port, o);
}

struct door *agent_door(struct agent *ag, struct json_object *id)
{
	if (ag->door)
		return ag->door;
	ag->door = door_new();
	if (door_listen(ag->door, REPATH_MCGRP_OPERATION)) {
		agent_refuse(ag, id, "%s", door_error(ag->door));
		door_close(ag->door);
		ag->door = NULL;
	}
	return ag->door;
}

void agent_door_failed(struct agent *ag)
{
	for (int i = 0; i < JOBS; i++)
		if (ag->jobs[i].kind == JOB_OP)
			return;		/* others still look through it */
	door_close(ag->door);
	ag->door = NULL;
}

struct job *agent_job(struct agent *ag, struct json_object *id, enum job_kind kind,
		      uint64_t timeout_ms)
{
	for (int i = 0; i < JOBS; i++) {
		struct job *job = &ag->jobs[i];

		if (job->kind)
			continue;
		memset(job, 0, sizeof(*job));
		job->kind = kind;
		job->id = json_object_get(id);
		job->deadline = timeout_ms ? agent_now() + timeout_ms : 0;
		job->pipe = -1;
		return job;
	}
	agent_refuse(ag, id, "%d requests are under way already", JOBS);
	return NULL;
}

void agent_job_end(struct job *job)
{
	op_watch_end(&job->watch);
	if (job->pipe >= 0)
		close(job->pipe);
	json_object_put(job->id);
	job->kind = JOB_NONE;
}

static void no_event(uint8_t cmd, struct nlattr **tb, void *arg)
{
	(void)cmd;
	(void)tb;
	(void)arg;
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int poll_timeout(struct agent *ag, int timeout)
{
	for (int i = 0; i < JOBS; i++) {
		if (ag->jobs[i].kind == JOB_OP)
			timeout = sooner(timeout, OP_LOOK_MS);
		else if (ag->jobs[i].kind)
			timeout = sooner(timeout, WAIT_LOOK_MS);
	}
	return timeout;
}

static void look_at_jobs(struct agent *ag)
{
	for (int i = 0; i < JOBS; i++) {
		struct job *job = &ag->jobs[i];

		if (job->kind == JOB_OP)
			agent_op_look(ag, job);
		else if (job->kind == JOB_DEVICE)
			agent_wait_look(ag, job);
		else if (job->kind == JOB_HOOK)
			agent_hook_look(ag, job);
	}
}

static void serve_once(struct agent *ag)
{
	struct pollfd fds[2];
	int timeout;

	timeout = poll_timeout(ag, port_poll(&ag->port, &fds[0]));
	fds[1] = (struct pollfd){ .fd = ag->door ? door_event_fd(ag->door) : -1,
				  .events = POLLIN };
	if (ag->port.empty) {
		/* POLLHUP would come back at once, again and again. */
		poll(&fds[1], 1, timeout);
		poll(&fds[0], 1, 0);
	} else if (poll(fds, 2, timeout) < 0) {
		return;
	}
	port_serve(&ag->port, fds[0].revents, agent_request, ag);
	/* They only wake: what there is to know is asked for. */
	if (ag->door && door_events(ag->door, no_event, NULL) == -ENODEV)
		agent_door_failed(ag);
	look_at_jobs(ag);
}

int cmd_agent(struct door *door, struct args *a)
{
	static struct agent ag;
	const char *path = NULL;

	(void)door;	/* one that lives as long as the module does, not as this command */
	while (a->argc) {
		if (take(a, "port"))
			path = take_word(a, "a path");
		else if (take(a, "hook"))
			ag.hooks = take_word(a, "a directory");
		else
			take_end(a);
	}
	if (ag.hooks && access(ag.hooks, R_OK | X_OK)) {
		fprintf(stderr, "repath: agent: %s: no such directory of hooks\n", ag.hooks);
		return EXIT_FAILED;
	}
	if (!port_open(&ag.port, path))
		return EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN);
	/* Programs that poll may keep every CPU busy, and they wait for what is done here. */
	setpriority(PRIO_PROCESS, 0, AGENT_NICE);
	for (;;)
		serve_once(&ag);
}
