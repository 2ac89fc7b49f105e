/* SPDX-License-Identifier: GPL-2.0 */
/* What each command may carry: one table a command, so that what it does not know is refused. */
#ifndef REPATH_NETLINK_POLICY_H
#define REPATH_NETLINK_POLICY_H

#include <net/netlink.h>
#include <uapi/ib_repath.h>

#define REPATH_POLICY_SIZE (REPATH_A_MAX + 1)

extern const struct nla_policy repath_none_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_qp_get_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_process_get_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_device_get_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_op_get_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_conn_get_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_conn_moved_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_suspend_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_resume_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_abort_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_register_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_reply_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_peer_send_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_numbers_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_number_check_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_resolve_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_unresolve_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_cycled_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_path_set_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_device_set_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_path_get_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_sm_set_policy[REPATH_POLICY_SIZE];
extern const struct nla_policy repath_relay_policy[REPATH_POLICY_SIZE];

#endif /* REPATH_NETLINK_POLICY_H */
