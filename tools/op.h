/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Operations of the module: as objects, started, looked at, and followed to their end. */
#ifndef REPATH_TOOL_OP_H
#define REPATH_TOOL_OP_H

#include <stdbool.h>
#include <json-c/json.h>
#include "door.h"

struct json_object *op_object(struct nlattr *nest);
/* Adds "error" and "reason" of the attributes, where they say something. */
void op_add_failure(struct json_object *o, struct nlattr **tb);

/* One operation by its number, to be put by the caller; NULL with *@err = -errno. */
struct json_object *op_get(struct door *door, uint32_t id, int *err);
/* All of them in an array, to be put by the caller; NULL with *@err = -errno. */
struct json_object *op_all(struct door *door, int *err);

/**
 * struct op_request - what an administrator asks for
 * @dev: suspend: the device. Resume: the device that was suspended, or NULL with @id
 * @on: resume: where to, or NULL for the same name
 * @id: resume and abort: the operation, 0 when @dev names it
 * @timeout_ms: 0: the module's own
 * @force: kill processes without the shim, break connections whose peers can not be moved with
 * @dry_run: ask everything, do nothing
 */
struct op_request {
	const char *dev;
	const char *on;
	uint32_t id;
	uint32_t timeout_ms;
	bool force;
	bool dry_run;
};

/* Each starts an operation or its next part: 0 and its number in *@id, or -errno. */
int op_suspend(struct door *door, const struct op_request *r, uint32_t *id);
int op_resume(struct door *door, const struct op_request *r, uint32_t *id);
int op_abort(struct door *door, uint32_t id);

enum op_goal { OP_GOAL_SUSPEND, OP_GOAL_RESUME, OP_GOAL_ABORT };

/* A process has passed a stage, @ns after this part of the operation began. */
typedef void (*op_stage_fn)(void *arg, const char *stage, double ms, struct json_object *process);

struct op_seen {
	uint64_t pid;
	uint32_t stages;
};

/**
 * struct op_watch - follows one operation
 * @id: its number
 * @goal: which end is waited for
 * @base_ms: where this part began on the operation's own clock
 * @started_ns: that clock's zero
 * @left: the state in which the part began was left
 * @first: that state
 * @seen: stages told already
 * @nseen: entries of @seen
 */
struct op_watch {
	uint32_t id;
	enum op_goal goal;
	double base_ms;
	uint64_t started_ns;
	bool left;
	char first[24];
	struct op_seen *seen;
	size_t nseen;
};

/* Call before the operation's part is started; @r as it will be started. */
void op_watch_start(struct op_watch *w, struct door *door, enum op_goal goal,
		    const struct op_request *r);
/*
 * Looks at @op, tells new stages to @fn, and adds to it "stages": the time that each stage of
 * this part took for all processes together, in milliseconds. True at the end of the part.
 */
bool op_watch_look(struct op_watch *w, struct json_object *op, op_stage_fn fn, void *arg);
void op_watch_end(struct op_watch *w);

/* Did @op, at its end, reach the goal? */
bool op_reached(enum op_goal goal, struct json_object *op);
/* What to do next after it did not. */
void op_advice(enum op_goal goal, struct json_object *op, char *text, size_t size);

const char *op_text(struct json_object *op, const char *key);

#endif /* REPATH_TOOL_OP_H */
