// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Requests of the host that are operations of the module. */
#include <stdio.h>
#include <string.h>
#include "agent.h"
#include "out.h"

void agent_op_start(struct agent *ag, struct json_object *id, enum op_goal goal,
		    const struct op_request *r)
{
	struct json_object *o;
	struct door *door;
	struct job *job;
	uint32_t op = r->id;
	int err;

	door = agent_door(ag, id);
	job = door ? agent_job(ag, id, JOB_OP, 0) : NULL;
	if (!job)
		return;
	op_watch_start(&job->watch, door, goal, r);
	err = goal == OP_GOAL_SUSPEND ? op_suspend(door, r, &op) :
	      goal == OP_GOAL_RESUME ? op_resume(door, r, &op) : op_abort(door, op);
	if (err) {
		o = agent_answer(id, false);
		out_text(o, "error", door_error(door));
		out_text(o, "code", strerrorname_np(-err));
		port_send(&ag->port, o);
		agent_job_end(job);
		agent_door_failed(ag);
		return;
	}
	job->watch.id = op;
	o = json_object_new_object();
	if (id)
		json_object_object_add(o, "id", json_object_get(id));
	out_text(o, "event", "started");
	out_number(o, "op", op);
	port_send(&ag->port, o);
}

struct telling {
	struct agent *ag;
	struct job *job;
};

static void tell_stage(void *arg, const char *stage, double ms, struct json_object *process)
{
	struct telling *t = arg;
	struct json_object *o = json_object_new_object();

	if (t->job->id)
		json_object_object_add(o, "id", json_object_get(t->job->id));
	out_text(o, "event", "stage");
	out_number(o, "op", t->job->watch.id);
	out_text(o, "stage", stage);
	out_millis(o, "ms", ms * 1e6);
	out_text(o, "pid", op_text(process, "pid"));
	out_text(o, "comm", op_text(process, "comm"));
	port_send(&t->ag->port, o);
}

void agent_op_look(struct agent *ag, struct job *job)
{
	struct telling t = { ag, job };
	struct json_object *op, *o;
	char advice[160];
	bool ok;
	int err;

	op = op_get(ag->door, job->watch.id, &err);
	if (!op) {
		agent_refuse(ag, job->id, "operation %u: %s", job->watch.id,
			     door_error(ag->door));
		agent_job_end(job);
		agent_door_failed(ag);
		return;
	}
	if (!op_watch_look(&job->watch, op, tell_stage, &t)) {
		json_object_put(op);
		return;
	}
	ok = op_reached(job->watch.goal, op);
	o = agent_answer(job->id, ok);
	if (!ok) {
		op_advice(job->watch.goal, op, advice, sizeof(advice));
		out_text(o, "error", *op_text(op, "reason") ? op_text(op, "reason") :
				     *op_text(op, "error") ? op_text(op, "error") :
							     op_text(op, "state"));
		out_text(o, "advice", advice);
	}
	json_object_object_add(o, "op", op);
	port_send(&ag->port, o);
	agent_job_end(job);
}
