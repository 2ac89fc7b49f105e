// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath path set, prepare, hold: queue pairs are moved to a path that is told here. */
#include <stdio.h>
#include "command.h"
#include "names.h"
#include "path_set.h"
#include "show.h"

static uint8_t take_mtu(struct args *a)
{
	uint32_t bytes = take_u32(a, "MTU", 256, 4096);
	uint8_t mtu = 1;

	while (128u << mtu < bytes)
		mtu++;
	if (128u << mtu != bytes)
		usage_error(a, "%u is not an MTU: 256, 512, 1024, 2048 or 4096", bytes);
	return mtu;
}

int path_do(struct door *door, struct nl_msg *msg, const char *dev)
{
	int err = door_do(door, msg, NULL, NULL);

	if (err)
		fprintf(stderr, "repath: %s: %s\n", dev, door_error(door));
	return door_exit_status(err);
}

int path_set(struct door *door, struct args *a, enum repath_path_when when)
{
	struct nl_msg *msg = door_request(REPATH_CMD_PATH_SET);
	char dev[DEV_NAME_LEN];
	bool has_dest = false;

	nla_put_u32(msg, REPATH_A_PORT, take_dev_port(a, dev));
	nla_put_string(msg, REPATH_A_DEV_NAME, dev);
	nla_put_u8(msg, REPATH_A_PATH_WHEN, when);
	/* "sl" before "slid", of which it is a beginning. */
	while (a->argc) {
		if (take(a, "dlid")) {
			nla_put_u32(msg, REPATH_A_DLID, take_u32(a, "LID", 1, 0xbfff));
			has_dest = true;
		} else if (take(a, "dgid")) {
			put_gid(msg, REPATH_A_DGID, a);
			has_dest = true;
		} else if (when == REPATH_PATH_HOLD) {
			take_end(a);
		} else if (take(a, "to")) {
			nla_put_u32(msg, REPATH_A_NEW_DLID, take_u32(a, "LID", 1, 0xbfff));
		} else if (take(a, "sl")) {
			nla_put_u8(msg, REPATH_A_SL, take_u32(a, "SL", 0, 15));
		} else if (take(a, "tclass")) {
			nla_put_u8(msg, REPATH_A_TCLASS, take_u32(a, "traffic class", 0, 255));
		} else if (take(a, "slid")) {
			nla_put_u32(msg, REPATH_A_SLID, take_u32(a, "LID", 1, 0xbfff));
		} else if (take(a, "mtu")) {
			nla_put_u8(msg, REPATH_A_PATH_MTU, take_mtu(a));
		} else if (take(a, "gbps")) {
			nla_put_u8(msg, REPATH_A_RATE, take_name(a, NAMES_RATE, "a rate in Gbit/s"));
		} else if (take(a, "pkey")) {
			nla_put_u32(msg, REPATH_A_PKEY, take_u32(a, "P_Key", 1, 0xffff));
		} else {
			take_end(a);
		}
	}
	if (!has_dest)
		usage_error(a, "\"dlid\" is missing%s: where the queue pairs send to",
			    when == REPATH_PATH_NOW ? ", or \"dgid\" on RoCE" : "");
	return path_do(door, msg, dev);
}

int path_switch(struct door *door, struct args *a, enum repath_cmd cmd, enum repath_attr attr)
{
	struct nl_msg *msg = door_request(cmd);
	const char *dev = take_dev(a);

	nla_put_string(msg, REPATH_A_DEV_NAME, dev);
	if (take(a, "on"))
		nla_put_u8(msg, attr, 1);
	else if (take(a, "off"))
		nla_put_u8(msg, attr, 0);
	else
		usage_error(a, a->argc ? "\"%s\" is neither \"on\" nor \"off\"" : "\"on\" or \"off\" is missing",
			    a->argc ? a->argv[0] : "");
	take_end(a);
	return path_do(door, msg, dev);
}
