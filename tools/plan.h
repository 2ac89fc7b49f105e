/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a suspend would do with each process that uses a device. */
#ifndef REPATH_TOOL_PLAN_H
#define REPATH_TOOL_PLAN_H

#include <stdbool.h>
#include <json-c/json.h>
#include "door.h"

/*
 * An array, to be put by the caller, with an object for each process on @dev, and for each queue pair
 * of the kernel's that forbids the suspend: who, how much it has, "would" (move, refuse, kill) and
 * the reason. @op: a dry run in which all shims were asked.
 */
struct json_object *plan_of(struct door *door, const char *dev, bool force,
			    struct json_object *op);

void plan_print(struct json_object *plan);

#endif /* REPATH_TOOL_PLAN_H */
