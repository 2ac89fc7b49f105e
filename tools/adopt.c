// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath adopt: have the module take up what was there before it, and say what it could not. */
#include <stdio.h>
#include "command.h"
#include "op.h"
#include "out.h"
#include "show.h"

static struct json_object *adoption_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1];

	door_nest(nest, tb);
	show_text(o, "dev", tb[REPATH_A_DEV_NAME]);
	show_number(o, "qps", tb[REPATH_A_QP_COUNT]);
	show_number(o, "contexts", tb[REPATH_A_CTX_COUNT]);
	show_number(o, "adopted-qps", tb[REPATH_A_ADOPTED_QPS]);
	show_number(o, "adopted-contexts", tb[REPATH_A_ADOPTED_CTXS]);
	show_number(o, "corrected", tb[REPATH_A_CORRECTED]);
	show_number(o, "swept", tb[REPATH_A_SWEPT]);
	show_number(o, "missing-qps", tb[REPATH_A_MISSING_QPS]);
	show_number(o, "missing-contexts", tb[REPATH_A_MISSING_CTXS]);
	op_add_failure(o, tb);
	return o;
}

static void take_adoption(uint8_t cmd, struct nlattr **tb, void *arg)
{
	struct json_object *o;

	(void)cmd;
	if (!tb[REPATH_A_ADOPTION])
		return;
	o = adoption_object(tb[REPATH_A_ADOPTION]);
	/* One without counts says that it has begun. */
	if (json_object_object_get_ex(o, "qps", NULL))
		json_object_array_add(arg, o);
	else
		json_object_put(o);
}

/* Did it stay behind what ib_core has? */
static bool is_short(struct json_object *o)
{
	static const char *const missing[] = { "missing-qps", "missing-contexts" };
	struct json_object *value;

	for (size_t i = 0; i < 2; i++)
		if (json_object_object_get_ex(o, missing[i], &value) &&
		    json_object_get_uint64(value))
			return true;
	return *op_text(o, "error");
}

int cmd_adopt(struct door *door, struct args *a)
{
	struct nl_msg *msg = door_request(REPATH_CMD_ADOPT);
	struct json_object *list = json_object_new_array();
	int err, status = 0;

	if (a->argc) {
		take(a, "dev");
		nla_put_string(msg, REPATH_A_DEV_NAME, take_dev(a));
	}
	take_end(a);
	err = door_dump(door, msg, take_adoption, list);
	if (err) {
		fprintf(stderr, "repath: adopt: %s\n", door_error(door));
		json_object_put(list);
		return door_exit_status(err);
	}
	for (size_t i = 0; i < json_object_array_length(list); i++)
		if (is_short(json_object_array_get_idx(list, i)))
			status = EXIT_FAILED;
	out_list(list);
	if (status)
		fprintf(stderr,
			"repath: adopt: not everything could be taken: objects come and go at once, try again\n");
	return status;
}
