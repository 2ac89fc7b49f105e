// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath path: what the subnet manager has told of paths, and paths that queue pairs are moved to. */
#include <stdio.h>
#include "command.h"
#include "names.h"
#include "out.h"
#include "path_set.h"
#include "show.h"

struct json_object *path_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1];

	door_nest(nest, tb);
	show_text(o, "dev", tb[REPATH_A_DEV_NAME]);
	show_number(o, "port", tb[REPATH_A_PORT]);
	show_number(o, "slid", tb[REPATH_A_SLID]);
	show_number(o, "dlid", tb[REPATH_A_DLID]);
	show_gid(o, "dgid", tb[REPATH_A_DGID]);
	show_number(o, "sl", tb[REPATH_A_SL]);
	if (tb[REPATH_A_PATH_MTU])
		out_number(o, "mtu", 128u << (nla_get_u8(tb[REPATH_A_PATH_MTU]) & 7));
	if (tb[REPATH_A_RATE])
		out_text(o, "gbps", name_of(NAMES_RATE, nla_get_u8(tb[REPATH_A_RATE])));
	if (tb[REPATH_A_PKEY]) {
		char text[16];

		snprintf(text, sizeof(text), "0x%04x", nla_get_u32(tb[REPATH_A_PKEY]) & 0xffff);
		out_text(o, "pkey", text);
	}
	show_age(o, "age-s", tb[REPATH_A_LEARNT_NS]);
	if (tb[REPATH_A_PATH_SOURCE])
		out_text(o, "source",
			 name_of(NAMES_PATH_SOURCE, nla_get_u8(tb[REPATH_A_PATH_SOURCE])));
	out_flag(o, "relayed", tb[REPATH_A_RELAYED]);
	out_flag(o, "unpath", tb[REPATH_A_UNPATH]);
	return o;
}

static struct json_object *sm_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1];

	door_nest(nest, tb);
	show_text(o, "dev", tb[REPATH_A_DEV_NAME]);
	show_number(o, "port", tb[REPATH_A_PORT]);
	if (tb[REPATH_A_SM_STATE])
		out_text(o, "state", name_of(NAMES_SM_STATE, nla_get_u8(tb[REPATH_A_SM_STATE])));
	show_number(o, "lid", tb[REPATH_A_SLID]);
	show_number(o, "sm-lid", tb[REPATH_A_SM_LID]);
	show_number(o, "sm-sl", tb[REPATH_A_SL]);
	show_age(o, "since-s", tb[REPATH_A_SINCE_NS]);
	show_number(o, "paths", tb[REPATH_A_COUNT]);
	return o;
}

static void take_filter(struct args *a, struct nl_msg *msg)
{
	while (a->argc) {
		if (take(a, "dev"))
			nla_put_string(msg, REPATH_A_DEV_NAME, take_dev(a));
		else if (take(a, "port"))
			nla_put_u32(msg, REPATH_A_PORT, take_u32(a, "port", 1, 254));
		else if (take(a, "dlid"))
			nla_put_u32(msg, REPATH_A_DLID, take_u32(a, "LID", 1, 0xbfff));
		else
			take_end(a);
	}
}

static int show_sm(struct door *door, struct args *a)
{
	struct nl_msg *msg = door_request(REPATH_CMD_SM_GET);

	if (take(a, "dev"))
		nla_put_string(msg, REPATH_A_DEV_NAME, take_dev(a));
	take_end(a);
	return show_all(door, msg, false, REPATH_A_SM, sm_object, "subnet managers");
}

static int ask(struct door *door, struct args *a)
{
	struct nl_msg *msg = door_request(REPATH_CMD_PATH_ASK);
	const char *dev = take_dev(a);

	nla_put_string(msg, REPATH_A_DEV_NAME, dev);
	take_filter(a, msg);
	return path_do(door, msg, dev);
}

int cmd_path(struct door *door, struct args *a)
{
	struct nl_msg *msg;

	if (take(a, "set"))
		return path_set(door, a, REPATH_PATH_NOW);
	if (take(a, "prepare"))
		return path_set(door, a, REPATH_PATH_LATER);
	if (take(a, "hold"))
		return path_set(door, a, REPATH_PATH_HOLD);
	if (take(a, "reroute"))
		return path_switch(door, a, REPATH_CMD_DEVICE_SET, REPATH_A_REROUTE);
	if (take(a, "sm"))
		return show_sm(door, a);
	if (take(a, "ask"))
		return ask(door, a);
	if (take(a, "listen"))
		return path_switch(door, a, REPATH_CMD_SM_SET, REPATH_A_SM_LISTEN);
	take_show(a);
	msg = door_request(REPATH_CMD_PATH_GET);
	take_filter(a, msg);
	return show_all(door, msg, false, REPATH_A_PATH, path_object, "paths");
}
