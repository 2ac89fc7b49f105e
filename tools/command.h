/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The subcommands; each takes the words behind its name and returns the exit status. */
#ifndef REPATH_TOOL_COMMAND_H
#define REPATH_TOOL_COMMAND_H

#include "args.h"
#include "door.h"

int cmd_qp(struct door *door, struct args *a);
int cmd_process(struct door *door, struct args *a);
int cmd_device(struct door *door, struct args *a);
int cmd_connection(struct door *door, struct args *a);
int cmd_path(struct door *door, struct args *a);
int cmd_stats(struct door *door, struct args *a);
int cmd_adopt(struct door *door, struct args *a);
int cmd_monitor(struct door *door, struct args *a);
int cmd_suspend(struct door *door, struct args *a);
int cmd_resume(struct door *door, struct args *a);
int cmd_abort(struct door *door, struct args *a);
int cmd_status(struct door *door, struct args *a);
int cmd_version(struct door *door, struct args *a);
int cmd_run(struct door *door, struct args *a);
int cmd_agent(struct door *door, struct args *a);
int cmd_sm(struct door *door, struct args *a);
int cmd_fabric(struct door *door, struct args *a);
int cmd_relay(struct door *door, struct args *a);

#endif /* REPATH_TOOL_COMMAND_H */
