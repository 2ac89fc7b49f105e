/* SPDX-License-Identifier: GPL-2.0 */
/* Who has asked for a UD queue pair, and is told when it has moved. */
#ifndef REPATH_WATCH_H
#define REPATH_WATCH_H

#include <linux/types.h>

struct repath_addr;
struct repath_device;
struct repath_gid_change;
struct repath_number;
struct repath_proc;
struct repath_qp;
struct repath_resolve;

#define REPATH_WATCH_MAX	16384	/* of a host; of those who have not answered yet, who asked longest ago goes first */

int repath_watch_init(void);
void repath_watch_exit(void);

/* All under repath_conn_mutex. */
void repath_watch_add(struct repath_device *dev, struct repath_qp *rqp,
		      const struct repath_resolve *ask);
void repath_watch_moved(struct repath_proc *proc, struct repath_device *dev,
			const struct repath_number *rows, u32 n,
			const struct repath_gid_change *gids, u32 ngids);
void repath_watch_sender_moved(const struct repath_proc *proc, u64 cookie,
			       const struct repath_addr *from, const struct repath_addr *said,
			       const struct repath_addr *to, bool told);
u32 repath_watch_told(const struct repath_device *dev, const struct repath_addr *from, const u8 *gid, u32 lid);
void repath_watch_proc_left(struct repath_proc *proc);
void repath_watch_device_removed(struct repath_device *dev);

#endif /* REPATH_WATCH_H */
