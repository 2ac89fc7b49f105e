/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of repath path: what an administrator says of paths. */
#ifndef REPATH_TOOL_PATH_SET_H
#define REPATH_TOOL_PATH_SET_H

#include "args.h"
#include "door.h"

/* repath path set, prepare, hold. The words behind that. */
int path_set(struct door *door, struct args *a, enum repath_path_when when);

/* repath path reroute DEV on|off */
int path_reroute(struct door *door, struct args *a);

#endif /* REPATH_TOOL_PATH_SET_H */
