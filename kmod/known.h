/* SPDX-License-Identifier: GPL-2.0 */
/* Where processes that others were connected to have gone. */
#ifndef REPATH_KNOWN_H
#define REPATH_KNOWN_H

#include <linux/types.h>

struct repath_addr;
struct repath_proc;

/* One process remembers so many addresses that peers of it have left; the oldest goes first. */
#define REPATH_KNOWN_MAX	256

/* All under repath_conn_mutex. */
void repath_known_moved(struct repath_proc *proc, u64 cookie, const struct repath_addr *from,
			const struct repath_addr *to);
u32 repath_known_find(struct repath_proc *proc, const struct repath_addr *at,
		      struct repath_addr *now, u64 *cookies, u32 max);
void repath_known_forget(struct repath_proc *proc);
void repath_known_exit(void);

#endif /* REPATH_KNOWN_H */
