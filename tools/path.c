// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath path: paths that queue pairs are moved to. */
#include "command.h"
#include "path_set.h"

int cmd_path(struct door *door, struct args *a)
{
	if (take(a, "set"))
		return path_set(door, a, REPATH_PATH_NOW);
	if (take(a, "prepare"))
		return path_set(door, a, REPATH_PATH_LATER);
	if (take(a, "hold"))
		return path_set(door, a, REPATH_PATH_HOLD);
	if (take(a, "reroute"))
		return path_reroute(door, a);
	usage_error(a, "what to do is missing");
}
