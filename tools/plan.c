// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a suspend would do with each process: moved, killed, or the reason why it refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "names.h"
#include "op.h"
#include "out.h"
#include "plan.h"
#include "show.h"

static const char *const verdicts[] = {
	"move", "refuse", "kill",
};

enum verdict { MOVE, REFUSE, KILL };

static void take_process(uint8_t cmd, struct nlattr **tb, void *arg)
{
	(void)cmd;
	if (tb[REPATH_A_PROCESS])
		json_object_array_add(arg, process_object(tb[REPATH_A_PROCESS]));
}

static void take_connection(uint8_t cmd, struct nlattr **tb, void *arg)
{
	(void)cmd;
	if (tb[REPATH_A_CONN])
		json_object_array_add(arg, connection_object(tb[REPATH_A_CONN]));
}

static void take_qp(uint8_t cmd, struct nlattr **tb, void *arg)
{
	(void)cmd;
	if (tb[REPATH_A_QP])
		json_object_array_add(arg, qp_object(tb[REPATH_A_QP]));
}

static struct json_object *list_of(struct door *door, uint8_t get, const char *dev,
				   door_msg_fn fn, int *err)
{
	struct json_object *list = json_object_new_array();
	struct nl_msg *msg = door_request(get);

	nla_put_string(msg, REPATH_A_DEV_NAME, dev);
	*err = door_dump(door, msg, fn, list);
	return list;
}

static struct json_object *at(struct json_object *list, size_t i)
{
	return json_object_array_get_idx(list, i);
}

/* Puts @text behind what is in @why. */
static void say(char **why, const char *text)
{
	char *both;

	if (asprintf(&both, "%s%s%s", *why ? *why : "", *why ? ", " : "", text) < 0)
		abort();
	free(*why);
	*why = both;
}

/* Its peers that can not be moved with. */
static void say_peers(char **why, struct json_object *conns, const char *pid)
{
	for (size_t i = 0; i < json_object_array_length(conns); i++) {
		struct json_object *conn = at(conns, i);
		const char *state = op_text(conn, "state");
		char text[160];

		if (strcmp(op_text(conn, "pid"), pid) || !strcmp(state, "ready") ||
		    !strcmp(state, "gone") || !strcmp(state, "no-peer"))
			continue;
		snprintf(text, sizeof(text), "QP %s: its peer %s QP %s %s", op_text(conn, "qpn"),
			 op_text(conn, "dgid"), op_text(conn, "dqpn"),
			 !strcmp(state, "no-shim") ? "has no libibrepath.so" : "does not answer");
		say(why, text);
	}
}

/* What its shim has said in the operation @op. */
static void say_shim(char **why, struct json_object *op, const char *pid)
{
	struct json_object *procs;

	if (!json_object_object_get_ex(op, "processes", &procs))
		return;
	for (size_t i = 0; i < json_object_array_length(procs); i++) {
		struct json_object *process = at(procs, i);

		if (strcmp(op_text(process, "pid"), pid) || !*op_text(process, "error"))
			continue;
		say(why, *op_text(process, "reason") ? op_text(process, "reason") :
			 op_text(process, "error"));
	}
}

static void add(struct json_object *plan, struct json_object *who, enum verdict verdict,
		const char *why)
{
	static const char *const kept[] = { "pid", "comm", "qpn", "qps", "contexts", "connections" };
	struct json_object *o = json_object_new_object(), *value;

	out_text(o, "would", verdicts[verdict]);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (json_object_object_get_ex(who, kept[i], &value))
			json_object_object_add(o, kept[i], json_object_get(value));
	if (why)
		out_text(o, "reason", why);
	json_object_array_add(plan, o);
}

static void add_processes(struct json_object *plan, struct json_object *op,
			  struct json_object *procs, struct json_object *conns, bool force)
{
	for (size_t i = 0; i < json_object_array_length(procs); i++) {
		struct json_object *process = at(procs, i), *shim;
		const char *pid = op_text(process, "pid");
		char *why = NULL;
		bool refuses;

		if (!json_object_object_get_ex(process, "shim", &shim) ||
		    !json_object_get_boolean(shim)) {
			add(plan, process, force ? KILL : REFUSE, "it runs without libibrepath.so");
			continue;
		}
		say_shim(&why, op, pid);
		refuses = why;
		if (!why) {
			say_peers(&why, conns, pid);
			refuses = why && !force;	/* else it loses these */
		}
		add(plan, process, refuses ? REFUSE : MOVE, why);
		free(why);
	}
}

/* The kernel's own can neither be moved nor killed. */
static void add_kernel(struct json_object *plan, struct json_object *qps)
{
	static const char *const connected[] = { "RTR", "RTS", "SQD", "SQE" };

	for (size_t i = 0; i < json_object_array_length(qps); i++) {
		struct json_object *qp = at(qps, i), *kernel;

		if (!json_object_object_get_ex(qp, "kernel", &kernel) ||
		    !json_object_get_boolean(kernel) ||
		    (strcmp(op_text(qp, "type"), "RC") && strcmp(op_text(qp, "type"), "UC")))
			continue;
		for (size_t s = 0; s < sizeof(connected) / sizeof(connected[0]); s++)
			if (!strcmp(op_text(qp, "state"), connected[s]))
				add(plan, qp, REFUSE, "the kernel's own queue pair is connected");
	}
}

struct json_object *plan_of(struct door *door, const char *dev, bool force,
			    struct json_object *op)
{
	struct json_object *plan = json_object_new_array(), *procs, *conns, *qps;
	int errs[3];

	procs = list_of(door, REPATH_CMD_PROCESS_GET, dev, take_process, &errs[0]);
	conns = list_of(door, REPATH_CMD_CONN_GET, dev, take_connection, &errs[1]);
	qps = list_of(door, REPATH_CMD_QP_GET, dev, take_qp, &errs[2]);
	if (!errs[0] && !errs[1] && !errs[2]) {
		add_processes(plan, op, procs, conns, force);
		add_kernel(plan, qps);
	}
	json_object_put(procs);
	json_object_put(conns);
	json_object_put(qps);
	return plan;
}

void plan_print(struct json_object *plan)
{
	for (size_t i = 0; i < json_object_array_length(plan); i++)
		out_line(at(plan, i));
}
