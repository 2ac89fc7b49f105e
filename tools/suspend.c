// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath suspend, resume, abort: an operation is started and followed to its end. */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "command.h"
#include "names.h"
#include "op.h"
#include "out.h"
#include "plan.h"

/* An event wakes the wait; should one be lost, the operation is looked at this often anyway. */
#define LOOK_MS	250

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted++;
}

/* Is it worth a look? Each look costs the processor that the move itself needs. */
struct news {
	uint32_t id;
	bool any;
};

static void note_news(uint8_t cmd, struct nlattr **tb, void *arg)
{
	struct nlattr *op[REPATH_A_MAX + 1];
	struct news *news = arg;
	uint8_t state;

	if (cmd != REPATH_CMD_EV_OP || !tb[REPATH_A_OP])
		return;
	door_nest(tb[REPATH_A_OP], op);
	if (!op[REPATH_A_OP_ID] || !op[REPATH_A_OP_STATE] ||
	    nla_get_u32(op[REPATH_A_OP_ID]) != news->id)
		return;
	state = nla_get_u8(op[REPATH_A_OP_STATE]);
	/* A person sees each stage; for a script only an end is news. */
	news->any |= (!out_json && isatty(STDOUT_FILENO)) ||
		     !(state == REPATH_OP_CHECKING || state == REPATH_OP_SUSPENDING ||
		       state == REPATH_OP_RESUMING || state == REPATH_OP_ABORTING);
}

static void tell_stage(void *arg, const char *stage, double ms, struct json_object *process)
{
	(void)arg;
	if (!out_json && isatty(STDOUT_FILENO)) {
		printf("%10.3f s  %-8s  PID %s (%s)\n", ms / 1e3, stage,
		       op_text(process, "pid"), op_text(process, "comm"));
		fflush(stdout);
	}
}

static void print_stages(struct json_object *op)
{
	struct json_object *stages;
	const char *sep = ": ";
	double total = 0;

	if (!json_object_object_get_ex(op, "stages", &stages))
		return;
	json_object_object_foreach(stages, name, ms) {
		printf("%s%s %.1f ms", sep, name, json_object_get_double(ms));
		total += json_object_get_double(ms);
		sep = ", ";
	}
	if (total > 0)
		printf("; %.3f s", total / 1e3);
}

static void print_end(enum op_goal goal, struct json_object *op)
{
	struct json_object *procs, *plan;
	char advice[160];
	size_t n = 0;

	if (out_json)
		out_object(op);
	else if (json_object_object_get_ex(op, "plan", &plan))
		plan_print(plan);
	if (json_object_object_get_ex(op, "processes", &procs))
		n = json_object_array_length(procs);
	if (op_reached(goal, op)) {
		if (out_json)
			return;
		printf("%s %s, operation %s, %zu process%s",
		       goal == OP_GOAL_ABORT ? "aborted" : op_text(op, "state"),
		       op_text(op, "dev"), op_text(op, "op"), n, n == 1 ? "" : "es");
		print_stages(op);
		printf("\n");
		return;
	}
	op_advice(goal, op, advice, sizeof(advice));
	fprintf(stderr, "repath: operation %s on %s %s: %s; %s\n", op_text(op, "op"),
		op_text(op, "dev"), op_text(op, "state"),
		*op_text(op, "reason") ? op_text(op, "reason") :
		*op_text(op, "error") ? op_text(op, "error") : "no reason given", advice);
}

/*
 * What an interrupt does: a suspend or an abort is for now or never, a resume goes on. Two that come close
 * together are one; it is the next after the abort was asked for that does not wait for its end.
 */
static bool give_up(struct door *door, struct op_watch *w, bool *aborts)
{
	if (w->goal == OP_GOAL_SUSPEND && !*aborts) {
		fprintf(stderr, "repath: interrupted: taking operation %u back\n", w->id);
		*aborts = true;
		if (!op_abort(door, w->id))
			return false;
		fprintf(stderr, "repath: abort %u: %s\n", w->id, door_error(door));
	}
	fprintf(stderr, "repath: operation %u goes on: 'repath status %u', 'repath abort %u'\n",
		w->id, w->id, w->id);
	return true;
}

static int end_status(enum op_goal goal, struct json_object *op)
{
	static const char *const touched[] = { "gate", "drain", "release" };
	struct json_object *stages, *stage;

	if (op_reached(goal, op))
		return 0;
	if (!strcmp(op_text(op, "state"), name_of(NAMES_OP_STATE, REPATH_OP_PARKED)))
		return EXIT_PARKED;
	if (goal != OP_GOAL_SUSPEND || !json_object_object_get_ex(op, "stages", &stages))
		return EXIT_FAILED;
	for (size_t i = 0; i < sizeof(touched) / sizeof(touched[0]); i++)
		if (json_object_object_get_ex(stages, touched[i], &stage))
			return EXIT_FAILED;
	return EXIT_REFUSED;
}

static void tell_nothing(void *arg, const char *stage, double ms, struct json_object *process)
{
	(void)arg;
	(void)stage;
	(void)ms;
	(void)process;
}

/*
 * To the end of the operation, which is then in *@end, to be put by the caller; or a status. It is looked at
 * when there is news, and not before: at its beginning the processor is wanted by those who are moved.
 */
static int follow(struct door *door, struct op_watch *w, op_stage_fn tell,
		  struct json_object **end)
{
	struct news news = { .id = w->id };
	bool aborts = false;
	int told = 0;

	for (;;) {
		struct pollfd fd = { .fd = door_event_fd(door), .events = POLLIN };
		struct json_object *op;
		int err;

		/* That events were lost is as good as news; without any, look anyway. */
		for (news.any = false; !news.any && interrupted == told;)
			if (poll(&fd, 1, LOOK_MS) != 1 || door_events(door, note_news, &news))
				break;
		op = op_get(door, w->id, &err);
		if (!op) {
			fprintf(stderr, "repath: operation %u: %s\n", w->id, door_error(door));
			return door_exit_status(err);
		}
		if (op_watch_look(w, op, tell, NULL)) {
			*end = op;
			return 0;
		}
		json_object_put(op);
		if (interrupted > told) {
			told = interrupted;
			if (give_up(door, w, &aborts))
				return EXIT_GOES_ON;
		}
	}
}

/* Has all shims asked, also where somebody without one has ended the dry run @op at once. */
static void add_plan(struct door *door, const struct op_request *r, struct json_object *op)
{
	struct op_request all = { .dev = r->dev, .timeout_ms = r->timeout_ms, .force = true,
				  .dry_run = true };
	struct op_watch watch;
	struct json_object *asked = NULL;

	if (!r->force && !op_reached(OP_GOAL_SUSPEND, op)) {
		op_watch_start(&watch, door, OP_GOAL_SUSPEND, &all);
		if (!op_suspend(door, &all, &watch.id))
			follow(door, &watch, tell_nothing, &asked);
		op_watch_end(&watch);
	}
	json_object_object_add(op, "plan", plan_of(door, r->dev, r->force, asked ? asked : op));
	json_object_put(asked);
}

static int run(struct door *door, enum op_goal goal, struct op_request *r, bool nowait)
{
	static const char *const names[] = { "suspend", "resume", "abort" };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct json_object *op = NULL;
	struct op_watch watch;
	uint32_t id = r->id;
	int err;

	/* Before anything is started: who is ended then leaves it to go on. */
	if (!nowait) {
		sigaction(SIGINT, &sa, NULL);
		sigaction(SIGTERM, &sa, NULL);
	}
	err = nowait ? 0 : door_listen(door, REPATH_MCGRP_OPERATION);
	if (!err) {
		op_watch_start(&watch, door, goal, r);
		err = goal == OP_GOAL_SUSPEND ? op_suspend(door, r, &id) :
		      goal == OP_GOAL_RESUME ? op_resume(door, r, &id) : op_abort(door, r->id);
	}
	if (err) {
		if (r->dev)
			fprintf(stderr, "repath: %s %s: %s\n", names[goal], r->dev, door_error(door));
		else
			fprintf(stderr, "repath: %s %u: %s\n", names[goal], r->id, door_error(door));
		return door_exit_status(err);
	}
	watch.id = id;
	if (nowait) {
		struct json_object *o = json_object_new_object();

		out_number(o, "op", id);
		out_one(o);
		json_object_put(o);
		return 0;
	}
	err = follow(door, &watch, tell_stage, &op);
	op_watch_end(&watch);
	if (!op)
		return err;
	if (r->dry_run)
		add_plan(door, r, op);
	print_end(goal, op);
	err = end_status(goal, op);
	json_object_put(op);
	return err;
}

/* Words with dashes may come before what they are about, too. */
static bool is_first(const struct args *a)
{
	return a->argv[0][0] != '-';
}

int cmd_suspend(struct door *door, struct args *a)
{
	struct op_request r = { 0 };
	bool nowait = false;

	while (a->argc || !r.dev) {
		if (!r.dev && (!a->argc || is_first(a)))
			r.dev = take_dev(a);
		else if (take(a, "timeout"))
			r.timeout_ms = take_millis(a, "timeout");
		else if (take(a, "force"))
			r.force = true;
		else if (take(a, "dry-run"))
			r.dry_run = true;
		else if (take(a, "nowait"))
			nowait = true;
		else
			take_end(a);
	}
	return run(door, OP_GOAL_SUSPEND, &r, nowait);
}

static void take_operation(struct args *a, struct op_request *r)
{
	if (a->argc && isdigit((unsigned char)a->argv[0][0]))
		r->id = take_u32(a, "operation", 1, UINT32_MAX);
	else if (!a->argc)
		usage_error(a, "an operation's number or a device name is missing");
	else
		r->dev = take_dev(a);
}

int cmd_resume(struct door *door, struct args *a)
{
	struct op_request r = { 0 };
	bool nowait = false;

	while (a->argc || (!r.id && !r.dev)) {
		if (!r.id && !r.dev && (!a->argc || is_first(a)))
			take_operation(a, &r);
		else if (take(a, "on"))
			r.on = take_dev(a);
		else if (take(a, "timeout"))
			r.timeout_ms = take_millis(a, "timeout");
		else if (take(a, "nowait"))
			nowait = true;
		else
			take_end(a);
	}
	return run(door, OP_GOAL_RESUME, &r, nowait);
}

int cmd_abort(struct door *door, struct args *a)
{
	struct op_request r = { 0 };
	bool nowait = false;

	while (a->argc || !r.id) {
		if (!r.id && (!a->argc || is_first(a)))
			r.id = take_u32(a, "operation", 1, UINT32_MAX);
		else if (take(a, "nowait"))
			nowait = true;
		else
			take_end(a);
	}
	return run(door, OP_GOAL_ABORT, &r, nowait);
}
