/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ports that did not answer a moment ago: nobody is made to wait for them again. And ports at which no module
 * listens: where one was, it may be being loaded anew.
 */
#ifndef REPATH_SILENT_H
#define REPATH_SILENT_H

#include <linux/types.h>

struct repath_addr;
struct repath_device;

/* All under repath_conn_mutex. */
bool repath_silent_is(const struct repath_device *dev, const struct repath_addr *addr);
bool repath_silent_was(const struct repath_device *dev, const struct repath_addr *addr, unsigned long age);
bool repath_silent_is_loaded_anew(const struct repath_device *dev, const struct repath_addr *addr);
void repath_silent_add(const struct repath_device *dev, const struct repath_addr *addr, int err);
void repath_silent_answered(const struct repath_device *dev, const struct repath_addr *addr);
void repath_silent_forget(const u8 gid[16], u32 lid);		/* it has spoken */
void repath_silent_device_removed(const struct repath_device *dev);

#endif /* REPATH_SILENT_H */
