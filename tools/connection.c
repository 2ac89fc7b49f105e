// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath connection: what the module knows of the other end of each connection. */
#include "command.h"
#include "names.h"
#include "out.h"
#include "show.h"

struct json_object *connection_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1];

	door_nest(nest, tb);
	show_number(o, "conn", tb[REPATH_A_CONN_ID]);
	if (tb[REPATH_A_CONN_STATE])
		out_text(o, "state",
			 name_of(NAMES_CONN_STATE, nla_get_u8(tb[REPATH_A_CONN_STATE])));
	out_flag(o, "moving", tb[REPATH_A_MOVING]);
	show_number(o, "dev-index", tb[REPATH_A_DEV_INDEX]);
	show_number(o, "port", tb[REPATH_A_PORT]);
	show_number(o, "qpn", tb[REPATH_A_QPN]);
	show_number(o, "pid", tb[REPATH_A_PID]);
	show_number(o, "peer", tb[REPATH_A_PEER_ID]);
	show_number(o, "dqpn", tb[REPATH_A_DEST_QPN]);
	show_gid(o, "dgid", tb[REPATH_A_DGID]);
	return o;
}

int cmd_connection(struct door *door, struct args *a)
{
	struct nl_msg *msg = door_request(REPATH_CMD_CONN_GET);

	take_show(a);
	while (a->argc) {
		if (take(a, "dev"))
			nla_put_string(msg, REPATH_A_DEV_NAME, take_dev(a));
		else if (take(a, "pid"))
			nla_put_u32(msg, REPATH_A_PID, take_u32(a, "PID", 1, 1 << 22));
		else
			take_end(a);
	}
	return show_all(door, msg, false, REPATH_A_CONN, connection_object, "connections");
}
