// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath connection: what the module knows of the other end of each connection. */
#include <stdio.h>
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
	show_text(o, "dev", tb[REPATH_A_DEV_NAME]);
	show_number(o, "port", tb[REPATH_A_PORT]);
	show_number(o, "qpn", tb[REPATH_A_QPN]);
	show_number(o, "pid", tb[REPATH_A_PID]);
	show_number(o, "peer", tb[REPATH_A_PEER_ID]);
	show_number(o, "dqpn", tb[REPATH_A_DEST_QPN]);
	show_gid(o, "dgid", tb[REPATH_A_DGID]);
	if (tb[REPATH_A_DLID] && nla_get_u32(tb[REPATH_A_DLID]))
		show_number(o, "dlid", tb[REPATH_A_DLID]);
	return o;
}

static void take_count(uint8_t cmd, struct nlattr **tb, void *arg)
{
	(void)cmd;
	show_number(arg, "connections", tb[REPATH_A_CONN_COUNT]);
	show_number(arg, "senders", tb[REPATH_A_COUNT]);
}

int connections_moved(struct door *door, struct nl_msg *msg, struct json_object *o)
{
	return door_do(door, msg, take_count, o);
}

static int connection_moved(struct door *door, struct args *a)
{
	struct nl_msg *msg = door_request(REPATH_CMD_CONN_MOVED);
	struct json_object *o = json_object_new_object();
	const char *dev = take_dev(a);
	bool from = false, by_lid = false, to = false;
	int err;

	nla_put_string(msg, REPATH_A_DEV_NAME, dev);
	while (a->argc) {
		if (!from && take(a, "dgid")) {
			put_gid(msg, REPATH_A_DGID, a);
			from = true;
		} else if (!from && take(a, "dlid")) {
			nla_put_u32(msg, REPATH_A_DLID, take_u32(a, "LID", 1, 0xbfff));
			from = by_lid = true;
		} else if (!by_lid && take(a, "to")) {
			put_gid(msg, REPATH_A_NEW_DGID, a);
			to = true;
		} else if (take(a, "lid")) {
			nla_put_u32(msg, REPATH_A_NEW_DLID, take_u32(a, "LID", 1, 0xbfff));
			to = true;
		} else {
			take_end(a);
		}
	}
	if (!from || !to)
		usage_error(a, by_lid ? "\"lid\" is missing: where the peers are" :
			    from ? "\"to\" or \"lid\" is missing: where the peers are" :
				   "\"dgid\" or \"dlid\" is missing: where the peers were");
	err = connections_moved(door, msg, o);
	if (err)
		fprintf(stderr, "repath: %s: %s\n", dev, door_error(door));
	else
		out_one(o);
	json_object_put(o);
	return door_exit_status(err);
}

int cmd_connection(struct door *door, struct args *a)
{
	struct nl_msg *msg;

	if (take(a, "moved"))
		return connection_moved(door, a);
	msg = door_request(REPATH_CMD_CONN_GET);
	take_show(a);
	while (a->argc) {
		if (take(a, "dev"))
			nla_put_string(msg, REPATH_A_DEV_NAME, take_dev(a));
		else if (take(a, "pid"))
			nla_put_u32(msg, REPATH_A_PID, take_u32(a, "PID", 1, 1 << 22));
		else if (take(a, "state"))
			nla_put_u8(msg, REPATH_A_CONN_STATE, take_name(a, NAMES_CONN_STATE, "a state of a connection"));
		else
			take_end(a);
	}
	return show_all(door, msg, false, REPATH_A_CONN, connection_object, "connections");
}
