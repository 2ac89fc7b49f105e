// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath qp: queue pairs, whose they are and where they go. */
#include <stdio.h>
#include <string.h>
#include "command.h"
#include "names.h"
#include "out.h"
#include "show.h"

/* How a queue pair reaches another, or would if it lost the first way. */
static void add_path(struct json_object *o, struct nlattr **tb)
{
	show_number(o, "dlid", tb[REPATH_A_DLID]);
	show_number(o, "slid", tb[REPATH_A_SLID]);
	show_gid(o, "dgid", tb[REPATH_A_DGID]);
	show_number(o, "sgid-index", tb[REPATH_A_SGID_INDEX]);
	show_number(o, "sl", tb[REPATH_A_SL]);
	show_number(o, "tclass", tb[REPATH_A_TCLASS]);
	if (tb[REPATH_A_RATE] && nla_get_u8(tb[REPATH_A_RATE]))
		out_text(o, "gbps", name_of(NAMES_RATE, nla_get_u8(tb[REPATH_A_RATE])));
	if (tb[REPATH_A_PKEY]) {
		char text[16];

		snprintf(text, sizeof(text), "0x%04x", nla_get_u32(tb[REPATH_A_PKEY]) & 0xffff);
		out_text(o, "pkey", text);
	}
}

/* On one line with the rest, so that "grep" finds it: each word with "alt-" before it. */
static void add_alternate(struct json_object *o, struct nlattr *nest)
{
	struct json_object *path = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1];
	char word[32];

	door_nest(nest, tb);
	show_number(path, "port", tb[REPATH_A_PORT]);
	add_path(path, tb);
	json_object_object_foreach(path, key, value) {
		snprintf(word, sizeof(word), "alt-%s", key);
		json_object_object_add(o, word, json_object_get(value));
	}
	json_object_put(path);
}

/* What has become of it when its path changed. */
static void add_move(struct json_object *o, struct nlattr *nest)
{
	struct nlattr *tb[REPATH_A_MAX + 1];

	door_nest(nest, tb);
	if (tb[REPATH_A_MOVE_STATE])
		out_text(o, "move", name_of(NAMES_MOVE_STATE, nla_get_u8(tb[REPATH_A_MOVE_STATE])));
	if (tb[REPATH_A_MOVED_BY])
		out_text(o, "moved-by", name_of(NAMES_WAY, nla_get_u8(tb[REPATH_A_MOVED_BY])));
	show_number(o, "moves", tb[REPATH_A_COUNT]);
	show_age(o, "on-path-s", tb[REPATH_A_SINCE_NS]);
	show_text(o, "move-reason", tb[REPATH_A_REASON]);
}

struct json_object *qp_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1];

	door_nest(nest, tb);
	show_text(o, "dev", tb[REPATH_A_DEV_NAME]);
	show_number(o, "port", tb[REPATH_A_PORT]);
	show_number(o, "qpn", tb[REPATH_A_QPN]);
	if (tb[REPATH_A_QP_TYPE])
		out_text(o, "type", name_of(NAMES_QP_TYPE, nla_get_u8(tb[REPATH_A_QP_TYPE])));
	if (tb[REPATH_A_QP_STATE])
		out_text(o, "state", name_of(NAMES_QP_STATE, nla_get_u8(tb[REPATH_A_QP_STATE])));
	show_number(o, "pid", tb[REPATH_A_PID]);
	show_text(o, "comm", tb[REPATH_A_COMM]);
	out_flag(o, "kernel", tb[REPATH_A_KERNEL]);
	out_flag(o, "shim", tb[REPATH_A_SHIM]);
	show_number(o, "dqpn", tb[REPATH_A_DEST_QPN]);
	add_path(o, tb);
	if (tb[REPATH_A_PATH_MTU] && nla_get_u8(tb[REPATH_A_PATH_MTU]))
		out_number(o, "mtu", 128u << (nla_get_u8(tb[REPATH_A_PATH_MTU]) & 7));
	if (tb[REPATH_A_MIG_STATE])
		out_text(o, "mig-state",
			 name_of(NAMES_MIG_STATE, nla_get_u8(tb[REPATH_A_MIG_STATE])));
	show_age(o, "age-s", tb[REPATH_A_CREATED_NS]);
	show_number(o, "conn", tb[REPATH_A_CONN_ID]);
	if (tb[REPATH_A_CONN_STATE])
		out_text(o, "conn-state",
			 name_of(NAMES_CONN_STATE, nla_get_u8(tb[REPATH_A_CONN_STATE])));
	if (tb[REPATH_A_ALT_PATH])
		add_alternate(o, tb[REPATH_A_ALT_PATH]);
	if (tb[REPATH_A_MOVE])
		add_move(o, tb[REPATH_A_MOVE]);
	return o;
}

int cmd_qp(struct door *door, struct args *a)
{
	struct nl_msg *msg = door_request(REPATH_CMD_QP_GET);

	take_show(a);
	while (a->argc) {
		if (take(a, "dev"))
			nla_put_string(msg, REPATH_A_DEV_NAME, take_dev(a));
		else if (take(a, "port"))
			nla_put_u32(msg, REPATH_A_PORT, take_u32(a, "port", 1, 254));
		else if (take(a, "pid"))
			nla_put_u32(msg, REPATH_A_PID, take_u32(a, "PID", 1, 1 << 22));
		else if (take(a, "qpn"))
			nla_put_u32(msg, REPATH_A_QPN, take_u32(a, "QPN", 0, 0xffffff));
		else if (take(a, "dlid"))
			nla_put_u32(msg, REPATH_A_DLID, take_u32(a, "LID", 1, UINT32_MAX));
		else if (take(a, "dgid"))
			put_gid(msg, REPATH_A_DGID, a);
		else if (take(a, "type"))
			nla_put_u8(msg, REPATH_A_QP_TYPE, take_name(a, NAMES_QP_TYPE, "a type of queue pair"));
		else if (take(a, "state"))
			nla_put_u8(msg, REPATH_A_QP_STATE, take_name(a, NAMES_QP_STATE, "a state of a queue pair"));
		else
			take_end(a);
	}
	return show_all(door, msg, false, REPATH_A_QP, qp_object, "queue pairs");
}
