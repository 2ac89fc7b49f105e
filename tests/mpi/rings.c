// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages to both neighbours in rings: as ranks are numbered, and in an order drawn by lot. */
#include <mpi.h>

#include "mpicheck.h"

#define MOST_RANKS	256

enum { RING = 64, LOT };

static char out[2][MAX_BYTES], in[2][MAX_BYTES];

/* Every rank draws the same. */
static void draw(int *order, uint64_t round)
{
	uint64_t key = pattern_key(LOT, 0, 0, round);

	for (int i = 0; i < ranks; i++)
		order[i] = i;
	for (int i = ranks - 1; i > 0; i--) {
		int other = pattern_word(key, i) % (i + 1), moved = order[i];

		order[i] = order[other];
		order[other] = moved;
	}
}

static void ring(const int *order, uint64_t round, size_t bytes, int tag)
{
	MPI_Request requests[4];
	int at = 0, peers[2];

	while (order[at] != my_rank)
		at++;
	peers[0] = order[(at + ranks - 1) % ranks];
	peers[1] = order[(at + 1) % ranks];
	/* What goes forward has another tag than what comes back: of two ranks both are the same peer. */
	for (int i = 0; i < 2; i++) {
		pattern_fill(out[i], bytes, pattern_key(RING + tag, my_rank, peers[i], round + i));
		MPI_Irecv(in[i], bytes, MPI_BYTE, peers[i], tag + !i, MPI_COMM_WORLD, &requests[i]);
	}
	for (int i = 0; i < 2; i++)
		MPI_Isend(out[i], bytes, MPI_BYTE, peers[i], tag + i, MPI_COMM_WORLD,
			  &requests[2 + i]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 2; i++)
		pattern_verify("ring", in[i], bytes,
			       pattern_key(RING + tag, peers[i], my_rank, round + !i));
}

void rings_round(uint64_t round, size_t bytes)
{
	int order[MOST_RANKS];

	if (ranks > MOST_RANKS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int i = 0; i < ranks; i++)
		order[i] = i;
	ring(order, round, bytes, 2);
	draw(order, round);
	ring(order, round, bytes, 4);
}
