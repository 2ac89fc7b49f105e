// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath process: who uses which device, and whether the shim is with it. */
#include "command.h"
#include "out.h"
#include "show.h"

struct json_object *process_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1];

	door_nest(nest, tb);
	show_number(o, "pid", tb[REPATH_A_PID]);
	show_text(o, "comm", tb[REPATH_A_COMM]);
	out_flag(o, "shim", tb[REPATH_A_SHIM]);
	show_text(o, "dev", tb[REPATH_A_DEV_NAME]);
	show_number(o, "qps", tb[REPATH_A_QP_COUNT]);
	show_number(o, "contexts", tb[REPATH_A_CTX_COUNT]);
	show_number(o, "connections", tb[REPATH_A_CONN_COUNT]);
	show_number(o, "moving", tb[REPATH_A_CONN_MOVING]);
	return o;
}

int cmd_process(struct door *door, struct args *a)
{
	struct nl_msg *msg = door_request(REPATH_CMD_PROCESS_GET);

	take_show(a);
	while (a->argc) {
		if (take(a, "dev"))
			nla_put_string(msg, REPATH_A_DEV_NAME, take_dev(a));
		else if (take(a, "pid"))
			nla_put_u32(msg, REPATH_A_PID, take_u32(a, "PID", 1, 1 << 22));
		else
			take_end(a);
	}
	return show_all(door, msg, false, REPATH_A_PROCESS, process_object, "processes");
}
