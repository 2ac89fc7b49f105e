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
