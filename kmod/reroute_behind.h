/* SPDX-License-Identifier: GPL-2.0 */
/* Processes that do not read what they are told of paths. */
#ifndef REPATH_REROUTE_BEHIND_H
#define REPATH_REROUTE_BEHIND_H

#include <linux/types.h>

struct repath_device;
struct repath_new_path;
struct repath_proc;
struct repath_reroute;

/* For the work item of the device. All may sleep. */
void repath_behind_tell(struct repath_device *dev, struct repath_proc *proc, u32 port,
			const struct repath_new_path *path);
/* True: some do not read yet. */
bool repath_behind_again(struct repath_reroute *r);
void repath_behind_end(struct repath_reroute *r);

#endif /* REPATH_REROUTE_BEHIND_H */
