// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One-sided communication: the remote keys are used that were told when the window was made. */
#include <string.h>

#include <mpi.h>

#include "mpicheck.h"

enum { PUT = 64, GET };

#define HALF		(64u << 10)	/* of the window: one for puts, one for gets */
#define ADDITIONS	4

static MPI_Win window, counters;
static char *memory;
static uint64_t *counter;
static char out[HALF], in[HALF];
static uint64_t rounds;

void window_start(void)
{
	MPI_Win_allocate(2 * HALF, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
	MPI_Win_allocate(sizeof(*counter), sizeof(*counter), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &counter, &counters);
	*counter = 0;
	rounds = 0;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void put_and_get(uint64_t round, size_t bytes)
{
	int right = (my_rank + 1) % ranks, left = (my_rank + ranks - 1) % ranks;

	pattern_fill(memory + HALF, bytes, pattern_key(GET, my_rank, 0, round));
	pattern_fill(out, bytes, pattern_key(PUT, my_rank, right, round));
	MPI_Win_fence(0, window);
	MPI_Put(out, bytes, MPI_BYTE, right, 0, bytes, MPI_BYTE, window);
	MPI_Get(in, bytes, MPI_BYTE, left, HALF, bytes, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	pattern_verify("put", memory, bytes, pattern_key(PUT, left, my_rank, round));
	pattern_verify("get", in, bytes, pattern_key(GET, left, 0, round));
	/* Nobody overwrites what another one still looks at. */
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Everybody adds to rank 0's counter: no addition may be lost, none done twice. */
static void add(void)
{
	uint64_t one = 1, before, last = 0;

	MPI_Win_lock_all(0, counters);
	for (int i = 0; i < ADDITIONS; i++) {
		MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, 0, 0, MPI_SUM, counters);
		MPI_Win_flush(0, counters);
		if (i && before <= last)
			verify_number("fetch-and-add went back", i, before, last + 1);
		last = before;
	}
	MPI_Win_unlock_all(counters);
	rounds++;
	MPI_Barrier(MPI_COMM_WORLD);
	if (my_rank == 0) {
		uint64_t now;

		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, counters);
		now = *counter;
		MPI_Win_unlock(0, counters);
		verify_number("fetch-and-add", 0, now, rounds * ADDITIONS * ranks);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

void window_round(uint64_t round, size_t bytes)
{
	put_and_get(round, bytes < HALF ? bytes : HALF);
	add();
}

void window_end(void)
{
	MPI_Win_free(&counters);
	MPI_Win_free(&window);
}
