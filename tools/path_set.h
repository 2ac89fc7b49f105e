/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of repath path: what an administrator says of paths. */
#ifndef REPATH_TOOL_PATH_SET_H
#define REPATH_TOOL_PATH_SET_H

#include "args.h"
#include "door.h"

/* repath path set, prepare, hold. The words behind that. */
int path_set(struct door *door, struct args *a, enum repath_path_when when);

/* DEV on|off: @cmd with @attr 1 or 0 */
int path_switch(struct door *door, struct args *a, enum repath_cmd cmd, enum repath_attr attr);

/* Sends @msg, which is about @dev, and says what is wrong with it. Exit status. */
int path_do(struct door *door, struct nl_msg *msg, const char *dev);

#endif /* REPATH_TOOL_PATH_SET_H */
