// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Following an operation to its end, and what its end means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "names.h"
#include "op.h"
#include "out.h"

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(o, key, &value);
	return value;
}

static bool is_state(struct json_object *op, unsigned int state)
{
	return !strcmp(op_text(op, "state"), name_of(NAMES_OP_STATE, state));
}

static struct json_object *find_suspended(struct door *door, const struct op_request *r)
{
	struct json_object *all, *op = NULL;
	int err;

	if (r->id)
		return op_get(door, r->id, &err);
	all = op_all(door, &err);
	for (size_t i = 0; all && i < json_object_array_length(all); i++) {
		struct json_object *one = json_object_array_get_idx(all, i);

		if (!strcmp(op_text(one, "dev"), r->dev) &&
		    (is_state(one, REPATH_OP_SUSPENDED) || is_state(one, REPATH_OP_PARKED)))
			op = one;
	}
	json_object_get(op);
	json_object_put(all);
	return op;
}

void op_watch_start(struct op_watch *w, struct door *door, enum op_goal goal,
		    const struct op_request *r)
{
	struct json_object *op;
	struct timespec now;

	*w = (struct op_watch){ .goal = goal };
	if (goal == OP_GOAL_SUSPEND)
		return;
	op = find_suspended(door, r);
	if (!op)
		return;
	/* A resume goes on in the suspend's operation, whose clock has run all the while. */
	clock_gettime(CLOCK_BOOTTIME, &now);
	w->started_ns = json_object_get_uint64(member(op, "started-ns"));
	w->base_ms = now.tv_sec * 1e3 + now.tv_nsec / 1e6 - w->started_ns / 1e6;
	w->id = json_object_get_uint64(member(op, "op"));
	snprintf(w->first, sizeof(w->first), "%s", op_text(op, "state"));
	json_object_put(op);
}

void op_watch_end(struct op_watch *w)
{
	free(w->seen);
	w->seen = NULL;
	w->nseen = 0;
}

static struct op_seen *seen_of(struct op_watch *w, uint64_t pid)
{
	struct op_seen *grown;

	for (size_t i = 0; i < w->nseen; i++)
		if (w->seen[i].pid == pid)
			return &w->seen[i];
	grown = reallocarray(w->seen, w->nseen + 1, sizeof(*grown));
	if (!grown)
		abort();
	w->seen = grown;
	w->seen[w->nseen] = (struct op_seen){ .pid = pid };
	return &w->seen[w->nseen++];
}

/* When @process reached @stage on the clock of this part; -1: it did not, or in an earlier part. */
static double reached(struct op_watch *w, struct json_object *process, unsigned int stage)
{
	struct json_object *ms = member(member(process, "reached-ms"),
					name_of(NAMES_STAGE, stage));
	double at = ms ? json_object_get_double(ms) - w->base_ms : -1;

	return at >= 0 ? at : -1;
}

static void tell_stages(struct op_watch *w, struct json_object *procs, op_stage_fn fn, void *arg)
{
	for (size_t i = 0; i < json_object_array_length(procs); i++) {
		struct json_object *process = json_object_array_get_idx(procs, i);
		struct op_seen *seen;

		seen = seen_of(w, json_object_get_uint64(member(process, "pid")));
		for (unsigned int s = REPATH_STAGE_CHECK; s <= REPATH_STAGE_ABORT; s++) {
			double at = reached(w, process, s);

			if (at < 0 || seen->stages & 1u << s)
				continue;
			seen->stages |= 1u << s;
			fn(arg, name_of(NAMES_STAGE, s), at, process);
		}
	}
}

/* A stage is over when the last process has passed it. */
static void add_durations(struct op_watch *w, struct json_object *op, struct json_object *procs)
{
	struct json_object *stages = json_object_new_object();
	double before = 0;

	for (unsigned int s = REPATH_STAGE_CHECK; s <= REPATH_STAGE_ABORT; s++) {
		double last = -1;

		for (size_t i = 0; i < json_object_array_length(procs); i++) {
			double at = reached(w, json_object_array_get_idx(procs, i), s);

			last = at > last ? at : last;
		}
		if (last < 0)
			continue;
		out_millis(stages, name_of(NAMES_STAGE, s),
			   last > before ? (last - before) * 1e6 : 0);
		before = last > before ? last : before;
	}
	json_object_object_add(op, "stages", stages);
}

bool op_watch_look(struct op_watch *w, struct json_object *op, op_stage_fn fn, void *arg)
{
	struct json_object *procs = member(op, "processes");

	/* Another operation than the one that was seen before has a clock of its own. */
	if (json_object_get_uint64(member(op, "started-ns")) != w->started_ns)
		w->base_ms = 0;
	if (strcmp(w->first, op_text(op, "state")))
		w->left = true;
	tell_stages(w, procs, fn, arg);
	add_durations(w, op, procs);

	if (is_state(op, REPATH_OP_FAILED))
		return true;
	if (is_state(op, REPATH_OP_PARKED))	/* a second try begins parked */
		return w->left;
	switch (w->goal) {
	case OP_GOAL_SUSPEND:
		return is_state(op, REPATH_OP_SUSPENDED) || is_state(op, REPATH_OP_CHECKED) ||
		       is_state(op, REPATH_OP_RESUMED);
	case OP_GOAL_RESUME:
		return is_state(op, REPATH_OP_RESUMED);
	case OP_GOAL_ABORT:
		return is_state(op, REPATH_OP_RESUMED) || is_state(op, REPATH_OP_CHECKED);
	}
	return false;
}

bool op_reached(enum op_goal goal, struct json_object *op)
{
	switch (goal) {
	case OP_GOAL_SUSPEND:
		return is_state(op, REPATH_OP_SUSPENDED) || is_state(op, REPATH_OP_CHECKED);
	case OP_GOAL_RESUME:
		return is_state(op, REPATH_OP_RESUMED);
	case OP_GOAL_ABORT:	/* an operation that was taken back ends as failed */
		return is_state(op, REPATH_OP_FAILED);
	}
	return false;
}

void op_advice(enum op_goal goal, struct json_object *op, char *text, size_t size)
{
	const char *id = op_text(op, "op"), *dev = op_text(op, "dev");

	if (is_state(op, REPATH_OP_PARKED))
		snprintf(text, size,
			 "the processes wait, nothing is lost: 'repath resume %s on DEV' when there is a device",
			 id);
	else if (goal == OP_GOAL_SUSPEND)
		snprintf(text, size,
			 "everything is as before: see 'repath process dev %s', then suspend again",
			 dev);
	else if (goal == OP_GOAL_ABORT)
		snprintf(text, size, "it was over already: 'repath status %s'", id);
	else
		snprintf(text, size, "the processes are on the old device: see 'repath status %s'",
			 id);
}
