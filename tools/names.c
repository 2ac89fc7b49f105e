// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Numbers of the interface as a person writes them. */
#include <stdio.h>
#include <strings.h>
#include <ib_repath.h>
#include "names.h"

#define TABLE(array, prefix)	{ array, sizeof(array) / sizeof((array)[0]), prefix }

/* enum ib_qp_type and enum ib_qp_state of the kernel, which user space headers do not carry. */
static const char *const qp_types[] = {
	"SMI", "GSI", "RC", "UC", "UD", "RAW_IPV6", "RAW_ETHERTYPE", NULL,
	"RAW_PACKET", "XRC_INI", "XRC_TGT", [0xff] = "DRIVER",
};
static const char *const qp_states[] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};
static const char *const link_layers[] = {
	"unspecified", "InfiniBand", "Ethernet",
};
static const char *const conn_states[] = {
	[REPATH_CONN_NEW] = "new",
	[REPATH_CONN_READY] = "ready",
	[REPATH_CONN_NO_SHIM] = "no-shim",
	[REPATH_CONN_NO_ANSWER] = "no-answer",
	[REPATH_CONN_GONE] = "gone",
	[REPATH_CONN_NO_PEER] = "no-peer",
};
static const char *const op_kinds[] = {
	[REPATH_OP_SUSPEND] = "suspend",
	[REPATH_OP_RESUME] = "resume",
};
static const char *const op_states[] = {
	[REPATH_OP_CHECKING] = "checking",
	[REPATH_OP_SUSPENDING] = "suspending",
	[REPATH_OP_SUSPENDED] = "suspended",
	[REPATH_OP_RESUMING] = "resuming",
	[REPATH_OP_RESUMED] = "resumed",
	[REPATH_OP_ABORTING] = "aborting",
	[REPATH_OP_FAILED] = "failed",
	[REPATH_OP_PARKED] = "parked",
	[REPATH_OP_CHECKED] = "checked",
};
static const char *const stages[] = {
	[REPATH_STAGE_NONE] = "none",
	[REPATH_STAGE_CHECK] = "check",
	[REPATH_STAGE_GATE] = "gate",
	[REPATH_STAGE_DRAIN] = "drain",
	[REPATH_STAGE_RELEASE] = "release",
	[REPATH_STAGE_OPEN] = "open",
	[REPATH_STAGE_RECREATE] = "recreate",
	[REPATH_STAGE_CONNECT] = "connect",
	[REPATH_STAGE_REPLAY] = "replay",
	[REPATH_STAGE_ABORT] = "abort",
};
static const char *const actions[] = {
	[REPATH_EV_NEW] = "new",
	[REPATH_EV_CHANGE] = "change",
	[REPATH_EV_DEL] = "del",
};

static const char *const stats[] = {
	[REPATH_STAT_QP_NEW] = "qp-new",
	[REPATH_STAT_QP_MODIFY] = "qp-modify",
	[REPATH_STAT_QP_DEL] = "qp-del",
	[REPATH_STAT_CTX_NEW] = "ctx-new",
	[REPATH_STAT_CTX_DEL] = "ctx-del",
	[REPATH_STAT_QP_ADOPTED] = "qp-adopted",
	[REPATH_STAT_CTX_ADOPTED] = "ctx-adopted",
	[REPATH_STAT_CORRECTED] = "corrected",
	[REPATH_STAT_SWEPT] = "swept",
	[REPATH_STAT_RESCANS] = "rescans",
	[REPATH_STAT_PROBE_MISSED] = "probe-missed",
	[REPATH_STAT_PROBE_NO_MEMORY] = "probe-no-memory",
	[REPATH_STAT_CONN_NEW] = "conn-new",
	[REPATH_STAT_CONN_READY] = "conn-ready",
	[REPATH_STAT_CONN_LIMIT] = "conn-limit",
	[REPATH_STAT_LEASE_EXPIRED] = "lease-expired",
	[REPATH_STAT_TX_MSG] = "tx-msg",
	[REPATH_STAT_TX_LOCAL] = "tx-local",
	[REPATH_STAT_TX_FRAG] = "tx-frag",
	[REPATH_STAT_TX_HELLO_AGAIN] = "tx-hello-again",
	[REPATH_STAT_TX_OK] = "tx-ok",
	[REPATH_STAT_TX_PENDING] = "tx-pending",
	[REPATH_STAT_TX_NO_SHIM] = "tx-no-shim",
	[REPATH_STAT_TX_NO_QP] = "tx-no-qp",
	[REPATH_STAT_TX_BAD_TOKEN] = "tx-bad-token",
	[REPATH_STAT_TX_BUSY] = "tx-busy",
	[REPATH_STAT_TX_VERSION] = "tx-version",
	[REPATH_STAT_TX_MALFORMED] = "tx-malformed",
	[REPATH_STAT_TX_TIMEOUT] = "tx-timeout",
	[REPATH_STAT_TX_UNREACHABLE] = "tx-unreachable",
	[REPATH_STAT_TX_NO_MODULE] = "tx-no-module",
	[REPATH_STAT_TX_ERROR] = "tx-error",
	[REPATH_STAT_RX_MSG] = "rx-msg",
	[REPATH_STAT_RX_FRAG] = "rx-frag",
	[REPATH_STAT_RX_FRAG_AGAIN] = "rx-frag-again",
	[REPATH_STAT_RX_OK] = "rx-ok",
	[REPATH_STAT_RX_PENDING] = "rx-pending",
	[REPATH_STAT_RX_NO_SHIM] = "rx-no-shim",
	[REPATH_STAT_RX_NO_QP] = "rx-no-qp",
	[REPATH_STAT_RX_BAD_TOKEN] = "rx-bad-token",
	[REPATH_STAT_RX_BUSY] = "rx-busy",
	[REPATH_STAT_RX_VERSION] = "rx-version",
	[REPATH_STAT_RX_MALFORMED] = "rx-malformed",
	[REPATH_STAT_OP_START] = "op-start",
	[REPATH_STAT_OP_SUSPENDED] = "op-suspended",
	[REPATH_STAT_OP_REFUSED] = "op-refused",
	[REPATH_STAT_OP_ROLLED_BACK] = "op-rolled-back",
	[REPATH_STAT_OP_RESUME] = "op-resume",
	[REPATH_STAT_OP_RESUMED] = "op-resumed",
	[REPATH_STAT_OP_PARKED] = "op-parked",
	[REPATH_STAT_OP_ABORT] = "op-abort",
	[REPATH_STAT_OP_KILLED] = "op-killed",
	[REPATH_STAT_UNPLUG] = "unplug",
	[REPATH_STAT_UNPLUG_LOST] = "unplug-lost",
	[REPATH_STAT_UNPATH] = "unpath",
	[REPATH_STAT_REPATH] = "repath",
	[REPATH_STAT_MOVE] = "move",
	[REPATH_STAT_MOVED_APM] = "moved-apm",
	[REPATH_STAT_MOVED_SQD] = "moved-sqd",
	[REPATH_STAT_MOVE_AGAIN] = "move-again",
	[REPATH_STAT_MOVE_LOST] = "move-lost",
	[REPATH_STAT_MOVE_NO_WAY] = "move-no-way",
	[REPATH_STAT_MOVE_FAILED] = "move-failed",
	[REPATH_STAT_SM_SUBSCRIBED] = "sm-subscribed",
	[REPATH_STAT_SM_LOST] = "sm-lost",
	[REPATH_STAT_NOTICE_RX] = "notice-rx",
	[REPATH_STAT_NOTICE_UNPATH] = "notice-unpath",
	[REPATH_STAT_NOTICE_REPATH] = "notice-repath",
	[REPATH_STAT_NOTICE_AGAIN] = "notice-again",
	[REPATH_STAT_NOTICE_LATE] = "notice-late",
	[REPATH_STAT_NOTICE_MALFORMED] = "notice-malformed",
	[REPATH_STAT_NOTICE_FORGED] = "notice-forged",
	[REPATH_STAT_NOTICE_DROPPED] = "notice-dropped",
	[REPATH_STAT_SA_QUERY] = "sa-query",
	[REPATH_STAT_SA_QUERY_FAILED] = "sa-query-failed",
	[REPATH_STAT_PATH_LEARNT] = "path-learnt",
	[REPATH_STAT_PATH_NO_ROOM] = "path-no-room",
	[REPATH_STAT_PATH_GIVEN] = "path-given",
	[REPATH_STAT_PATH_AMBIGUOUS] = "path-ambiguous",
	[REPATH_STAT_PATH_KERNEL_TOLD] = "path-kernel-told",
	[REPATH_STAT_NOTICE_RELAYED] = "notice-relayed",
	[REPATH_STAT_MOVED_CYCLE] = "moved-cycle",
	[REPATH_STAT_PATH_SHIM_TOLD] = "path-shim-told",
	[REPATH_STAT_PATH_SHIM_MISSED] = "path-shim-missed",
};
static const char *const path_sources[] = {
	[REPATH_PATH_QUERY] = "query",
	[REPATH_PATH_REPORT] = "report",
	[REPATH_PATH_LANE] = "lane",
};
static const char *const sm_states[] = {
	[REPATH_SM_OFF] = "off",
	[REPATH_SM_DOWN] = "down",
	[REPATH_SM_ASKING] = "asking",
	[REPATH_SM_WAITING] = "waiting",
	[REPATH_SM_SUBSCRIBED] = "subscribed",
	[REPATH_SM_RELAYED] = "relayed",
};
/* enum ib_mig_state and enum ib_rate */
static const char *const mig_states[] = {
	"MIGRATED", "REARM", "ARMED",
};
static const char *const rates[] = {
	[2] = "2.5", [5] = "5", [3] = "10", [6] = "20", [4] = "30", [7] = "40", [8] = "60",
	[9] = "80", [10] = "120", [11] = "14", [12] = "56", [13] = "112", [14] = "168",
	[15] = "25", [16] = "100", [17] = "200", [18] = "300", [19] = "28", [20] = "50",
	[21] = "400", [22] = "600", [23] = "800",
};
static const char *const move_states[] = {
	[REPATH_MOVE_NONE] = "none",
	[REPATH_MOVE_MOVING] = "moving",
	[REPATH_MOVE_WAITING] = "waiting",
	[REPATH_MOVE_PREPARED] = "prepared",
	[REPATH_MOVE_MOVED] = "moved",
	[REPATH_MOVE_LOST] = "lost",
	[REPATH_MOVE_NO_WAY] = "no-way",
	[REPATH_MOVE_FAILED] = "failed",
};
static const char *const ways[] = {
	[REPATH_BY_NONE] = "none",
	[REPATH_BY_APM] = "apm",
	[REPATH_BY_SQD] = "sqd",
	[REPATH_BY_CYCLE] = "cycle",
};

static const struct {
	const char *const *names;
	unsigned int n;
	const char *prefix;
} tables[] = {
	[NAMES_QP_TYPE] = TABLE(qp_types, "TYPE"),
	[NAMES_QP_STATE] = TABLE(qp_states, "STATE"),
	[NAMES_LINK_LAYER] = TABLE(link_layers, "layer"),
	[NAMES_CONN_STATE] = TABLE(conn_states, "state"),
	[NAMES_OP_KIND] = TABLE(op_kinds, "kind"),
	[NAMES_OP_STATE] = TABLE(op_states, "state"),
	[NAMES_STAGE] = TABLE(stages, "stage"),
	[NAMES_ACTION] = TABLE(actions, "action"),
	[NAMES_STAT] = TABLE(stats, "stat"),
	[NAMES_MIG_STATE] = TABLE(mig_states, "state"),
	[NAMES_RATE] = TABLE(rates, "rate"),
	[NAMES_MOVE_STATE] = TABLE(move_states, "state"),
	[NAMES_WAY] = TABLE(ways, "way"),
	[NAMES_PATH_SOURCE] = TABLE(path_sources, "source"),
	[NAMES_SM_STATE] = TABLE(sm_states, "state"),
};

const char *name_of(enum name_table table, unsigned int number)
{
	static char unknown[4][24];
	static unsigned int turn;
	char *buf;

	if (number < tables[table].n && tables[table].names[number])
		return tables[table].names[number];
	buf = unknown[turn++ % 4];
	snprintf(buf, sizeof(unknown[0]), "%s-%u", tables[table].prefix, number);
	return buf;
}

int number_of(enum name_table table, const char *name)
{
	for (unsigned int i = 0; i < tables[table].n; i++)
		if (tables[table].names[i] && !strcasecmp(tables[table].names[i], name))
			return i;
	return -1;
}

uint8_t take_name(struct args *a, enum name_table table, const char *what)
{
	const char *word = take_word(a, what);
	int number = number_of(table, word);
	char all[256] = "";

	if (number >= 0)
		return number;
	for (unsigned int i = 0, n = 0; i < tables[table].n && n < sizeof(all); i++)
		if (tables[table].names[i])
			n += snprintf(all + n, sizeof(all) - n, "%s%s", n ? ", " : "", tables[table].names[i]);
	usage_error(a, "\"%s\" is not %s: %s", word, what, all);
}
