/* SPDX-License-Identifier: GPL-2.0 */
/* Rerouting by netlink. */
#ifndef REPATH_REROUTE_NL_H
#define REPATH_REROUTE_NL_H

struct genl_info;
struct repath_qp;
struct sk_buff;

int repath_path_set_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_device_set_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_fill_move(struct sk_buff *skb, struct repath_qp *rqp);

#endif /* REPATH_REROUTE_NL_H */
