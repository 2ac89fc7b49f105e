/* SPDX-License-Identifier: GPL-2.0 */
/* The generic netlink family "repath": policies, access, messages. include/uapi/ib_repath.h. */
#ifndef REPATH_NETLINK_H
#define REPATH_NETLINK_H

#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <uapi/ib_repath.h>

struct pid_namespace;
struct repath_device;
struct repath_learnt;
struct repath_qp;
struct repath_user;

int repath_nl_init(void);
void repath_nl_exit(void);

/* Multicast groups, in the order in which the family has them. */
enum repath_nl_group { REPATH_NL_MONITOR, REPATH_NL_OPERATION, REPATH_NL_NOTICE };

/* Messages. All may sleep. A message that is given away is freed in every case. */
struct sk_buff *repath_nl_msg_new(u8 cmd, size_t size, void **hdr);
int repath_nl_unicast(struct net *net, u32 portid, struct sk_buff *skb, void *hdr);
bool repath_nl_has_listeners(struct net *net, enum repath_nl_group group);
bool repath_nl_hook_has_listeners(struct net *net, enum repath_nl_group group);
void repath_nl_multicast(struct net *net, enum repath_nl_group group, struct sk_buff *skb,
			 void *hdr);
int repath_nl_reply(struct genl_info *info, struct sk_buff *skb, void *hdr);
struct sk_buff *repath_nl_reply_new(struct genl_info *info, size_t size, void **hdr);
void *repath_nl_dump_put(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd);

/* Who asks. */
int repath_nl_may_admin(const struct sk_buff *skb, const struct net *net,
			struct netlink_ext_ack *extack);
struct repath_device *repath_nl_admins_device(struct sk_buff *skb, struct genl_info *info);
struct repath_device *repath_nl_device(const struct net *net, const struct nlattr *name,
				       struct netlink_ext_ack *extack);

/* PID @pid as the reader of the current request knows it; 0 if it can not see the process. */
u32 repath_nl_pid(struct pid *pid);

/* Nests, the same in dumps, answers and events; -EMSGSIZE leaves the message as it was. */
int repath_fill_qp(struct sk_buff *skb, struct repath_qp *rqp, struct pid_namespace *ns);
int repath_fill_process(struct sk_buff *skb, struct repath_user *user, struct pid_namespace *ns);
int repath_fill_device(struct sk_buff *skb, struct repath_device *dev);
int repath_fill_learnt(struct sk_buff *skb, struct repath_device *dev, u32 port,
		       const struct repath_learnt *path);

/* netlink_dump.c, for the table of operations */
int repath_version_doit(struct sk_buff *skb, struct genl_info *info);
int repath_qp_doit(struct sk_buff *skb, struct genl_info *info);
int repath_qp_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int repath_qp_dump_done(struct netlink_callback *cb);
int repath_process_doit(struct sk_buff *skb, struct genl_info *info);
int repath_process_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int repath_process_dump_done(struct netlink_callback *cb);
int repath_device_doit(struct sk_buff *skb, struct genl_info *info);
int repath_device_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

/* sa_dump.c, for the table of operations */
int repath_path_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int repath_sm_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int repath_path_ask_doit(struct sk_buff *skb, struct genl_info *info);
int repath_sm_set_doit(struct sk_buff *skb, struct genl_info *info);

/* sa_relay.c, for the table of operations */
int repath_relay_doit(struct sk_buff *skb, struct genl_info *info);

#endif /* REPATH_NETLINK_H */
