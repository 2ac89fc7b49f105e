// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Point to point messages. */
#include <string.h>

#include <mpi.h>

#include "mpicheck.h"

enum { RIGHT = 1, LEFT, ANY, SYNC, BURST };

#define BURST_MESSAGES	48
#define BURST_BYTES	200

static char out[2][MAX_BYTES], in[2][MAX_BYTES];

static int right(void)
{
	return (my_rank + 1) % ranks;
}

static int left(void)
{
	return (my_rank + ranks - 1) % ranks;
}

static void ring(uint64_t round, size_t bytes)
{
	MPI_Request requests[4];

	pattern_fill(out[0], bytes, pattern_key(RIGHT, my_rank, right(), round));
	pattern_fill(out[1], bytes, pattern_key(LEFT, my_rank, left(), round));
	MPI_Irecv(in[0], bytes, MPI_BYTE, left(), RIGHT, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(in[1], bytes, MPI_BYTE, right(), LEFT, MPI_COMM_WORLD, &requests[1]);
	MPI_Isend(out[0], bytes, MPI_BYTE, right(), RIGHT, MPI_COMM_WORLD, &requests[2]);
	MPI_Isend(out[1], bytes, MPI_BYTE, left(), LEFT, MPI_COMM_WORLD, &requests[3]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
	pattern_verify("ring to the right", in[0], bytes,
		       pattern_key(RIGHT, left(), my_rank, round));
	pattern_verify("ring to the left", in[1], bytes,
		       pattern_key(LEFT, right(), my_rank, round));
}

/* Everybody sends one to each other; they are taken as they come, after a look at their size. */
static void anybody(uint64_t round, size_t bytes)
{
	char *sent = out[0];
	size_t each = bytes / ranks;
	MPI_Request requests[256];
	int n = 0;

	for (int to = 0; to < ranks; to++) {
		if (to == my_rank)
			continue;
		pattern_fill(sent + to * each, each, pattern_key(ANY, my_rank, to, round));
		MPI_Isend(sent + to * each, each, MPI_BYTE, to, ANY, MPI_COMM_WORLD,
			  &requests[n++]);
	}
	for (int i = 0; i < ranks - 1; i++) {
		MPI_Status status;
		int count;

		MPI_Probe(MPI_ANY_SOURCE, ANY, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		verify_number("length of a probed message", 0, count, each);
		MPI_Recv(in[0], each, MPI_BYTE, status.MPI_SOURCE, ANY, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		pattern_verify("from anybody", in[0], each,
			       pattern_key(ANY, status.MPI_SOURCE, my_rank, round));
	}
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
	/* Nobody sends to any source of the next round before all have taken what is of this. */
	MPI_Barrier(MPI_COMM_WORLD);
}

static void synchronous(uint64_t round, size_t bytes)
{
	MPI_Request request;

	pattern_fill(out[0], bytes, pattern_key(SYNC, my_rank, right(), round));
	MPI_Irecv(in[0], bytes, MPI_BYTE, left(), SYNC, MPI_COMM_WORLD, &request);
	MPI_Ssend(out[0], bytes, MPI_BYTE, right(), SYNC, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	pattern_verify("synchronous", in[0], bytes, pattern_key(SYNC, left(), my_rank, round));
}

/* More small messages than anybody waits for: they must be kept in order until they are taken. */
static void burst(uint64_t round)
{
	MPI_Request requests[BURST_MESSAGES];

	for (int i = 0; i < BURST_MESSAGES; i++) {
		char *buf = out[0] + i * BURST_BYTES;

		pattern_fill(buf, BURST_BYTES,
			     pattern_key(BURST, my_rank, right(), round * BURST_MESSAGES + i));
		MPI_Isend(buf, BURST_BYTES, MPI_BYTE, right(), BURST, MPI_COMM_WORLD,
			  &requests[i]);
	}
	for (int i = 0; i < BURST_MESSAGES; i++) {
		MPI_Recv(in[0], BURST_BYTES, MPI_BYTE, left(), BURST, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		pattern_verify("burst", in[0], BURST_BYTES,
			       pattern_key(BURST, left(), my_rank, round * BURST_MESSAGES + i));
	}
	MPI_Waitall(BURST_MESSAGES, requests, MPI_STATUSES_IGNORE);
}

void exchange_round(uint64_t round, size_t bytes)
{
	ring(round, bytes);
	anybody(round, bytes);
	synchronous(round, bytes);
	burst(round);
}
