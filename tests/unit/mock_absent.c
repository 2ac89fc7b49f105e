// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Verbs that this device does not have, and functions that need none. */
#include <stdio.h>

#include "mock_state.h"

#define ABSENT(type, value, name, ...)			\
	type name(__VA_ARGS__);				\
	type name(__VA_ARGS__)				\
	{						\
		errno = EOPNOTSUPP;			\
		return value;				\
	}

ABSENT(int, 0, ibv_set_ece, __attribute__((unused)) struct ibv_qp *qp,
       __attribute__((unused)) struct ibv_ece *ece)
ABSENT(int, EOPNOTSUPP, ibv_query_ece, __attribute__((unused)) struct ibv_qp *qp,
       __attribute__((unused)) struct ibv_ece *ece)
ABSENT(int, 0, ibv_query_qp_data_in_order, __attribute__((unused)) struct ibv_qp *qp,
       __attribute__((unused)) enum ibv_wr_opcode op, __attribute__((unused)) uint32_t flags)

ABSENT(void, , ibv_copy_path_rec_from_kern, void)
ABSENT(void, , ibv_copy_path_rec_to_kern, void)
ABSENT(void, , ibv_copy_qp_attr_from_kern, void)
ABSENT(void, , ibv_copy_ah_attr_from_kern, void)
ABSENT(void, , ibv_register_driver, void)
ABSENT(int, -1, ibv_read_sysfs_file, void)
ABSENT(int, 0, ibv_dofork_range, void)
ABSENT(int, 0, ibv_dontfork_range, void)

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

const char *ibv_get_sysfs_path(void);
const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

int ibv_rate_to_mult(enum ibv_rate rate)
{
	return rate == IBV_RATE_2_5_GBPS ? 1 : -1;
}

enum ibv_rate mult_to_ibv_rate(int mult)
{
	return mult == 1 ? IBV_RATE_2_5_GBPS : IBV_RATE_MAX;
}

int ibv_rate_to_mbps(enum ibv_rate rate)
{
	return rate == IBV_RATE_2_5_GBPS ? 2500 : -1;
}

enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	return mbps == 2500 ? IBV_RATE_2_5_GBPS : IBV_RATE_MAX;
}

static const char *number(const char *what, int n)
{
	static __thread char text[64];

	snprintf(text, sizeof(text), "%s %d", what, n);
	return text;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return number("status", status);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	return number("event", event);
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
	return number("node type", type);
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	return number("port state", state);
}
