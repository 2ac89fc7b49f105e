/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef REPATH_TOOL_VERSION_H
#define REPATH_TOOL_VERSION_H

#include <json-c/json.h>
#include "door.h"

#define REPATH_TOOL_VERSION "0.1"

/* Adds versions of tool and module to @o. 0 or -errno. */
int version_object(struct door *door, struct json_object *o);

#endif /* REPATH_TOOL_VERSION_H */
