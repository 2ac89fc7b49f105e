// SPDX-License-Identifier: GPL-2.0
/* What each command may carry. */
#include <linux/sched.h>
#include <linux/threads.h>
#include <rdma/ib_verbs.h>

#include <repath_peer.h>

#include "netlink_policy.h"

/* Not const: 6.1's struct nla_policy does not take it. */
static struct netlink_range_validation pid_range = { .min = 1, .max = PID_MAX_LIMIT };
static struct netlink_range_validation qpn_range = { .min = 0, .max = 0xffffff };
static struct netlink_range_validation id_range = { .min = 1, .max = U32_MAX };
static struct netlink_range_validation lid_range = { .min = 1, .max = 0xbfff };
static struct netlink_range_validation pkey_range = { .min = 1, .max = U16_MAX };
static struct netlink_range_validation round_range = { .min = 0, .max = U16_MAX };
static struct netlink_range_validation errno_range = { .min = 0, .max = MAX_ERRNO };
/* A day: what is longer is a mistake. */
static struct netlink_range_validation timeout_range = { .min = 1, .max = 86400 * 1000 };

#define POLICY_DEV_NAME { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 }
#define POLICY_U32(range) NLA_POLICY_FULL_RANGE(NLA_U32, &(range))

/* VERSION_GET */
const struct nla_policy repath_none_policy[REPATH_POLICY_SIZE] = {};

const struct nla_policy repath_qp_get_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_PORT]		= POLICY_U32(id_range),
	[REPATH_A_PID]		= POLICY_U32(pid_range),
	[REPATH_A_QPN]		= POLICY_U32(qpn_range),
	[REPATH_A_DLID]		= POLICY_U32(id_range),
	[REPATH_A_DGID]		= NLA_POLICY_EXACT_LEN(sizeof(union ib_gid)),
	[REPATH_A_QP_TYPE]	= { .type = NLA_U8 },
	[REPATH_A_QP_STATE]	= NLA_POLICY_MAX(NLA_U8, IB_QPS_ERR),
};

const struct nla_policy repath_process_get_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_PID]		= POLICY_U32(pid_range),
};

const struct nla_policy repath_device_get_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
};

const struct nla_policy repath_op_get_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_OP_ID]	= POLICY_U32(id_range),
};

const struct nla_policy repath_conn_get_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_CONN_STATE]	= { .type = NLA_U8 },
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_PID]		= POLICY_U32(pid_range),
};

const struct nla_policy repath_conn_moved_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_DGID]		= NLA_POLICY_EXACT_LEN(sizeof(union ib_gid)),
	[REPATH_A_DLID]		= POLICY_U32(lid_range),
	[REPATH_A_NEW_DGID]	= NLA_POLICY_EXACT_LEN(sizeof(union ib_gid)),
	[REPATH_A_NEW_DLID]	= POLICY_U32(lid_range),
};

const struct nla_policy repath_suspend_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_TIMEOUT_MS]	= POLICY_U32(timeout_range),
	[REPATH_A_FORCE]	= { .type = NLA_FLAG },
	[REPATH_A_DRY_RUN]	= { .type = NLA_FLAG },
};

const struct nla_policy repath_resume_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_OP_ID]	= POLICY_U32(id_range),
	[REPATH_A_OLD_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_TIMEOUT_MS]	= POLICY_U32(timeout_range),
};

const struct nla_policy repath_abort_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_OP_ID]	= POLICY_U32(id_range),
};

const struct nla_policy repath_register_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_ABI_VERSION]	= { .type = NLA_U32 },
	[REPATH_A_COMM]		= { .type = NLA_NUL_STRING, .len = TASK_COMM_LEN - 1 },
};

const struct nla_policy repath_reply_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_OP_ID]	= POLICY_U32(id_range),
	[REPATH_A_OP_STAGE]	= NLA_POLICY_RANGE(NLA_U8, REPATH_STAGE_CHECK, REPATH_STAGE_ABORT),
	[REPATH_A_ERRNO]	= POLICY_U32(errno_range),
	[REPATH_A_REASON]	= { .type = NLA_NUL_STRING, .len = REPATH_REASON_MAX - 1 },
	[REPATH_A_COUNTERS]	= NLA_POLICY_EXACT_LEN(sizeof(struct repath_counters)),
};

const struct nla_policy repath_peer_send_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_PEER_ID]	= POLICY_U32(id_range),
	[REPATH_A_MSG_TYPE]	= NLA_POLICY_RANGE(NLA_U8, REPATH_MSG_NONE + 1,
						   __REPATH_MSG_MAX - 1),
	[REPATH_A_MSG_ID]	= { .type = NLA_U64 },
	[REPATH_A_CONNS]	= NLA_POLICY_RANGE(NLA_BINARY, sizeof(struct repath_conn_rec),
						   REPATH_CONNS_MAX *
						   sizeof(struct repath_conn_rec)),
	[REPATH_A_DEV_INDEX]	= { .type = NLA_U32 },
	[REPATH_A_PORT]		= POLICY_U32(id_range),
	[REPATH_A_SGID_INDEX]	= { .type = NLA_U32 },
	[REPATH_A_BLOB]		= { .type = NLA_BINARY, .len = REPATH_BLOB_MAX },
};

const struct nla_policy repath_numbers_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_INDEX]	= { .type = NLA_U32 },
	[REPATH_A_NUMBERS]	= { .type = NLA_BINARY,
				    .len = REPATH_NUMBERS_MAX * sizeof(struct repath_number) },
	[REPATH_A_GIDS]		= { .type = NLA_BINARY,
				    .len = REPATH_GIDS_MAX * sizeof(struct repath_gid_change) },
};

const struct nla_policy repath_number_check_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_INDEX]	= { .type = NLA_U32 },
	[REPATH_A_QPN]		= POLICY_U32(qpn_range),
};

const struct nla_policy repath_resolve_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_MSG_ID]	= { .type = NLA_U64 },
	[REPATH_A_DEV_INDEX]	= { .type = NLA_U32 },
	[REPATH_A_PORT]		= POLICY_U32(id_range),
	[REPATH_A_SGID_INDEX]	= { .type = NLA_U32 },
	[REPATH_A_QP_TYPE]	= NLA_POLICY_RANGE(NLA_U8, IB_QPT_RC, IB_QPT_UD),
	[REPATH_A_QPN]		= POLICY_U32(qpn_range),
	[REPATH_A_SRC_QPN]	= POLICY_U32(qpn_range),
	[REPATH_A_DGID]		= NLA_POLICY_EXACT_LEN(sizeof(union ib_gid)),
	[REPATH_A_DLID]		= { .type = NLA_U32 },
	[REPATH_A_SL]		= { .type = NLA_U8 },
};

const struct nla_policy repath_unresolve_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_MSG_ID]	= { .type = NLA_U64 },
};

const struct nla_policy repath_cycled_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_CONN_ID]	= POLICY_U32(id_range),
	[REPATH_A_ERRNO]	= POLICY_U32(errno_range),
	[REPATH_A_COUNT]	= POLICY_U32(round_range),
};

const struct nla_policy repath_path_set_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_PORT]		= POLICY_U32(id_range),
	[REPATH_A_DLID]		= POLICY_U32(lid_range),
	[REPATH_A_SLID]		= POLICY_U32(lid_range),
	[REPATH_A_NEW_DLID]	= POLICY_U32(lid_range),
	[REPATH_A_DGID]		= NLA_POLICY_EXACT_LEN(sizeof(union ib_gid)),
	[REPATH_A_SL]		= NLA_POLICY_MAX(NLA_U8, 15),
	[REPATH_A_TCLASS]	= { .type = NLA_U8 },
	[REPATH_A_RATE]		= NLA_POLICY_RANGE(NLA_U8, IB_RATE_2_5_GBPS, 63),
	[REPATH_A_PATH_MTU]	= NLA_POLICY_RANGE(NLA_U8, IB_MTU_256, IB_MTU_4096),
	[REPATH_A_PKEY]		= POLICY_U32(pkey_range),
	[REPATH_A_SERIAL]	= { .type = NLA_U32 },
	[REPATH_A_PATH_WHEN]	= NLA_POLICY_MAX(NLA_U8, REPATH_PATH_HOLD),
};

const struct nla_policy repath_device_set_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_REROUTE]	= NLA_POLICY_MAX(NLA_U8, 1),
};

/* PATH_GET and PATH_ASK */
const struct nla_policy repath_path_get_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_PORT]		= POLICY_U32(id_range),
	[REPATH_A_DLID]		= POLICY_U32(lid_range),
};

const struct nla_policy repath_sm_set_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_SM_LISTEN]	= NLA_POLICY_MAX(NLA_U8, 1),
};

const struct nla_policy repath_relay_policy[REPATH_POLICY_SIZE] = {
	[REPATH_A_DEV_NAME]	= POLICY_DEV_NAME,
	[REPATH_A_PORT]		= POLICY_U32(id_range),
	[REPATH_A_NOTICE]	= NLA_POLICY_EXACT_LEN(REPATH_NOTICE_SIZE),
};
