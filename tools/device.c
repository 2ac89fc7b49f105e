// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath device: the RDMA devices that the module watches, and what holds them. */
#include <stdio.h>
#include "command.h"
#include "names.h"
#include "out.h"
#include "show.h"

struct json_object *device_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1];

	door_nest(nest, tb);
	show_text(o, "dev", tb[REPATH_A_DEV_NAME]);
	show_number(o, "index", tb[REPATH_A_DEV_INDEX]);
	if (tb[REPATH_A_NODE_GUID]) {
		uint64_t guid = nla_get_u64(tb[REPATH_A_NODE_GUID]);
		char text[24];

		snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
			 (unsigned int)(guid >> 32) & 0xffff, (unsigned int)(guid >> 16) & 0xffff,
			 (unsigned int)guid & 0xffff);
		out_text(o, "node-guid", text);
	}
	show_number(o, "ports", tb[REPATH_A_PORTS]);
	if (tb[REPATH_A_LINK_LAYER])
		out_text(o, "link-layer",
			 name_of(NAMES_LINK_LAYER, nla_get_u8(tb[REPATH_A_LINK_LAYER])));
	show_number(o, "qps", tb[REPATH_A_QP_COUNT]);
	show_number(o, "contexts", tb[REPATH_A_CTX_COUNT]);
	show_number(o, "processes", tb[REPATH_A_PROC_COUNT]);
	show_number(o, "op", tb[REPATH_A_OP_ID]);
	if (tb[REPATH_A_REROUTE])
		out_text(o, "reroute", nla_get_u8(tb[REPATH_A_REROUTE]) ? "on" : "off");
	return o;
}

int cmd_device(struct door *door, struct args *a)
{
	struct nl_msg *msg = door_request(REPATH_CMD_DEVICE_GET);
	const char *dev = NULL;

	take_show(a);
	if (a->argc) {
		take(a, "dev");
		dev = take_dev(a);
		nla_put_string(msg, REPATH_A_DEV_NAME, dev);
	}
	take_end(a);
	return show_all(door, msg, dev, REPATH_A_DEVICE, device_object, dev ? dev : "devices");
}
