/* SPDX-License-Identifier: GPL-2.0 */
/* Where an administrator says that peers are now. */
#ifndef REPATH_CONN_TOLD_H
#define REPATH_CONN_TOLD_H

struct genl_info;
struct sk_buff;

/* CONN_MOVED */
int repath_conn_moved_cmd(struct sk_buff *skb, struct genl_info *info);

#endif /* REPATH_CONN_TOLD_H */
