/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Numbers of the interface as a person writes them, both ways. */
#ifndef REPATH_TOOL_NAMES_H
#define REPATH_TOOL_NAMES_H

#include <stdint.h>
#include "args.h"

enum name_table {
	NAMES_QP_TYPE,
	NAMES_QP_STATE,
	NAMES_LINK_LAYER,
	NAMES_CONN_STATE,
	NAMES_OP_KIND,
	NAMES_OP_STATE,
	NAMES_STAGE,
	NAMES_ACTION,
	NAMES_STAT,
	NAMES_MIG_STATE,
	NAMES_RATE,
	NAMES_MOVE_STATE,
	NAMES_WAY,
	NAMES_PATH_SOURCE,
	NAMES_SM_STATE,
};

/* "RC"; a number that this build does not know as "TYPE-31", valid until the 4th next call. */
const char *name_of(enum name_table table, unsigned int number);

/* The number of a name, in any case; -1: no such name. */
int number_of(enum name_table table, const char *name);

/* The next word, @what of a kind ("a state"), as its number; ends the command with all that there are. */
uint8_t take_name(struct args *a, enum name_table table, const char *what);

#endif /* REPATH_TOOL_NAMES_H */
