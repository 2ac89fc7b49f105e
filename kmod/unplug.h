/* SPDX-License-Identifier: GPL-2.0 */
/* A device that is removed by nobody's request to us, and the one that comes in its place. */
#ifndef REPATH_UNPLUG_H
#define REPATH_UNPLUG_H

struct repath_device;
struct repath_op;

int repath_unplug_init(void);
void repath_unplug_exit(void);
void repath_unplug_ending(void);

void repath_unplug_removed(struct repath_device *dev);
void repath_unplug_added(void);
void repath_unplug_left(const struct repath_op *op);

#endif /* REPATH_UNPLUG_H */
