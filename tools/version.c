// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath version: do the command and the module fit. */
#include <stdio.h>
#include "command.h"
#include "out.h"
#include "show.h"
#include "version.h"

static void take_version(uint8_t cmd, struct nlattr **tb, void *arg)
{
	struct json_object *o = arg;

	(void)cmd;
	show_text(o, "module", tb[REPATH_A_VERSION]);
	show_number(o, "module-abi", tb[REPATH_A_ABI_VERSION]);
}

int version_object(struct door *door, struct json_object *o)
{
	out_text(o, "tool", REPATH_TOOL_VERSION);
	out_number(o, "abi", REPATH_ABI_VERSION);
	return door_do(door, door_request(REPATH_CMD_VERSION_GET), take_version, o);
}

int cmd_version(struct door *door, struct args *a)
{
	struct json_object *o = json_object_new_object();
	int err;

	take_end(a);
	err = version_object(door, o);
	if (err)
		fprintf(stderr, "repath: version: %s\n", door_error(door));
	else
		out_one(o);
	json_object_put(o);
	return door_exit_status(err);
}
