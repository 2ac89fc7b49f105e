// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A computation whose every step needs its neighbours' last: a stencil on a ring of cells, in
 * integers, so that it must be equal to the bit to what one process computes alone.
 */
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "mpicheck.h"

#define CELLS	128	/* of a rank */
#define STEPS	8	/* of a round */

enum { TO_LEFT = 32, TO_RIGHT };

static uint64_t cells[CELLS + 2];	/* with the neighbours' */
static uint64_t *whole, *next, *gathered;

static uint64_t step(uint64_t left, uint64_t here, uint64_t right)
{
	return (left ^ here >> 7) * 3 + here + right * 5 + 1;
}

void stencil_start(void)
{
	whole = malloc(ranks * CELLS * 8);
	next = malloc(ranks * CELLS * 8);
	gathered = malloc(ranks * CELLS * 8);
	if (!whole || !next || !gathered)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int i = 0; i < ranks * CELLS; i++)
		whole[i] = pattern_word(1, i);
	memcpy(cells + 1, whole + my_rank * CELLS, CELLS * 8);
}

static void step_together(void)
{
	int left = (my_rank + ranks - 1) % ranks, right = (my_rank + 1) % ranks;
	uint64_t before;

	MPI_Sendrecv(&cells[1], 1, MPI_UINT64_T, left, TO_LEFT,
		     &cells[CELLS + 1], 1, MPI_UINT64_T, right, TO_LEFT,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(&cells[CELLS], 1, MPI_UINT64_T, right, TO_RIGHT,
		     &cells[0], 1, MPI_UINT64_T, left, TO_RIGHT,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	before = cells[0];
	for (int i = 1; i <= CELLS; i++) {
		uint64_t here = cells[i];

		cells[i] = step(before, here, cells[i + 1]);
		before = here;
	}
}

static void step_alone(void)
{
	int n = ranks * CELLS;
	uint64_t *done;

	for (int i = 0; i < n; i++)
		next[i] = step(whole[(i + n - 1) % n], whole[i], whole[(i + 1) % n]);
	done = next;
	next = whole;
	whole = done;
}

void stencil_round(uint64_t round)
{
	int root = round % ranks;

	for (int i = 0; i < STEPS; i++) {
		step_together();
		step_alone();
	}
	for (int i = 0; i < CELLS; i++)
		verify_number("stencil", i, cells[i + 1], whole[my_rank * CELLS + i]);
	MPI_Gather(cells + 1, CELLS, MPI_UINT64_T, gathered, CELLS, MPI_UINT64_T, root,
		   MPI_COMM_WORLD);
	for (int i = 0; my_rank == root && i < ranks * CELLS; i++)
		verify_number("gathered stencil", i, gathered[i], whole[i]);
}

void stencil_end(void)
{
	free(whole);
	free(next);
	free(gathered);
}
