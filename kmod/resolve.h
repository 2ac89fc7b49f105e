/* SPDX-License-Identifier: GPL-2.0 */
/* Asking where the queue pair is that an application was told of. See docs/protocol.md, "Numbers". */
#ifndef REPATH_RESOLVE_H
#define REPATH_RESOLVE_H

#include <linux/types.h>

struct genl_info;
struct repath_device;
struct repath_moved;
struct repath_proc;
struct repath_resolved;
struct sk_buff;

int repath_resolve_init(void);
void repath_resolve_exit(void);

/* RESOLVE, UNRESOLVE */
int repath_resolve_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_unresolve_cmd(struct sk_buff *skb, struct genl_info *info);

/* A question, or news, has come in on @dev. Take the conn mutex; return enum repath_peer_status. */
u8 repath_resolve_answer(struct repath_device *dev, const void *data, u32 len,
			 struct repath_resolved *answer);
u8 repath_resolve_moved(const void *data, u32 len);

/* All that follows: under repath_conn_mutex. */
int repath_resolve_tell_local(u64 cookie, const struct repath_moved *moved);
void repath_resolve_proc_left(struct repath_proc *proc);

#endif /* REPATH_RESOLVE_H */
