/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * VMs that move with their GUID, told from those that boot: the SM's side of paper VI, algorithm 1.
 *
 *	delete at A, set at B	a move: peers are told the LID of B
 *	delete at A, set at A	a reboot
 *	set at B		a boot
 *	set at B, delete at A	a move, told at the set; the delete changes nothing
 *	delete at A		not yet back: kept for a while, then forgotten
 *
 * GUIDs that the SM gives out stay with their port: a VM that moves gets another one, and there is
 * nothing to tell. Nothing in here knows OpenSM, or waits, or locks.
 */
#ifndef SM_MOVES_H
#define SM_MOVES_H

#include <stddef.h>
#include <stdint.h>

/* The GUID is at @lid now, and was at @old. */
typedef void (*moves_tell)(void *context, uint64_t guid, uint16_t old, uint16_t lid);

struct moves_counts {
	unsigned int present, absent;	/* GUIDs in use; deleted ones that may come back */
	uint64_t boots, reboots, moves, forgotten;
};

struct moves;

/**
 * moves_new() - an empty table
 * @keep: how long a GUID that is deleted is waited for, ns
 * @limit: how many of those at most; above it the oldest are forgotten
 *
 * Return: NULL without memory.
 */
struct moves *moves_new(uint64_t keep, unsigned int limit);
void moves_free(struct moves *m);

/* Return: 0, or -1 without memory: then a move of that GUID is not seen. @now in ns. */
int moves_set(struct moves *m, uint64_t guid, uint16_t lid, uint64_t now, moves_tell tell,
	      void *context);
/* A delete at another LID than where the GUID is now is late and changes nothing. */
void moves_delete(struct moves *m, uint64_t guid, uint16_t lid, uint64_t now);

/*
 * Who looks at the whole table of GUIDs now and then says moves_set() for each that is there, and then
 * this: those that were not set since the last time are deleted. At the first look all are boots.
 */
void moves_all_set(struct moves *m, uint64_t now);

const struct moves_counts *moves_counts(const struct moves *m);

#endif
