/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What happens to tables and cables, in the order in which it does: each SMP that sets one, as it
 * arrives at its node; and what programs are told of it meanwhile, and have answered. Who reads it
 * knows at each moment where packets may go, whatever the subnet manager thinks. Only on request
 * (console: Journal), and no more entries than were asked for.
 */
#ifndef VF_JOURNAL_H
#define VF_JOURNAL_H

#include <stdio.h>

#include "fabric.h"

/**
 * journal_start() - begin, with how everything is now; what was written before is gone
 * @room: entries at most; 0: no journal any more
 * Return: 0, or -1 if there is no memory for them.
 */
int journal_start(struct fabric *f, uint32_t room);
/* A line for each: us of the wall clock since the start (0: so it was then), what, where, the value. */
void journal_print(const struct fabric *f, FILE *out);
/* Called where it happens, afterwards. */
void journal_block(struct fabric *f, uint32_t node, uint32_t block);
void journal_top(struct fabric *f, uint32_t node);
void journal_turn(struct fabric *f, uint32_t node, unsigned int in, unsigned int out);
void journal_lid(struct fabric *f, uint32_t port);
void journal_cable(struct fabric *f, uint32_t port);
void journal_state(struct fabric *f, uint32_t port);
/* A program at the port has taken a MAD: of interest are Reports, and answers to them. */
void journal_mad(struct fabric *f, uint32_t port, const uint8_t *mad);

#endif
