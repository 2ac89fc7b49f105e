/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a wrong distributor leaves out, in the environment: LEFT_OUT=GUID,IN,OUT an SLtoVL table, LEFT_OUT=waits that
 * it waits for packets on their way, LEFT_OUT=order that what is discarded no more is put back only when what the new
 * direction wants is discarded.
 */
#ifndef LEFT_OUT_H
#define LEFT_OUT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool is_left_out(enum rsm_step_kind kind, const struct rsm_turn *turn)
{
	const char *text = getenv("LEFT_OUT");
	unsigned long long guid;
	unsigned int in, out;

	return kind == RSM_STEP_DISCARD && text &&
	       sscanf(text, "%llx,%u,%u", &guid, &in, &out) == 3 &&
	       turn->guid == guid && turn->in == in && turn->out == out;
}

static inline bool waits_are_left_out(void)
{
	const char *text = getenv("LEFT_OUT");

	return text && !strcmp(text, "waits");
}

static inline bool order_is_left_out(void)
{
	const char *text = getenv("LEFT_OUT");

	return text && !strcmp(text, "order");
}

#endif
