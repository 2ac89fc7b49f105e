/* SPDX-License-Identifier: GPL-2.0 */
/* Who listens to events and is told of processes by the PIDs of its own namespace. */
#ifndef REPATH_LISTEN_H
#define REPATH_LISTEN_H

#include <linux/types.h>

#include "netlink.h"

struct genl_info;
struct net;
struct pid_namespace;
struct sk_buff;

/*
 * Writes the attributes of an event, as a reader in a PID namespace may know it: 0, -ENODATA (nothing of it), or
 * -EMSGSIZE.
 */
typedef int (*repath_listen_fn)(struct sk_buff *skb, struct pid_namespace *ns, void *arg);

void repath_listen_exit(void);
int repath_listen_cmd(struct sk_buff *skb, struct genl_info *info);
void repath_listen_released(struct net *net, u32 portid);
bool repath_listen_any(const struct net *net);
void repath_listen_tell(struct net *net, u8 cmd, size_t size, repath_listen_fn fill, void *arg);
void repath_listen_tell_group(struct net *net, enum repath_nl_group group, u8 cmd, size_t size,
			      repath_listen_fn fill, void *arg);

#endif /* REPATH_LISTEN_H */
