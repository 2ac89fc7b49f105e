// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Collectives, each with a result that every rank can compute by itself. */
#include <mpi.h>

#include "mpicheck.h"

enum { BCAST = 16, SUM, ALL, GATHER, SCATTER };

/* Sums of all ranks are computed again by each: not for the longest messages. */
#define SUM_BYTES	(256u << 10)

static uint64_t out[MAX_BYTES / 8], in[MAX_BYTES / 8];

static void bcast(uint64_t round, size_t bytes)
{
	int root = round % ranks;
	uint64_t key = pattern_key(BCAST, root, 0, round);

	if (my_rank == root)
		pattern_fill(in, bytes, key);
	else
		pattern_fill(in, bytes, ~key);
	MPI_Bcast(in, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
	pattern_verify("bcast", in, bytes, key);
}

static uint64_t sum_of(unsigned int what, uint64_t round, uint64_t index)
{
	uint64_t sum = 0;

	for (int r = 0; r < ranks; r++)
		sum += pattern_word(pattern_key(what, r, 0, round), index);
	return sum;
}

static void allreduce(uint64_t round, size_t bytes)
{
	size_t words = (bytes < SUM_BYTES ? bytes : SUM_BYTES) / 8;
	MPI_Request request;

	pattern_fill(out, words * 8, pattern_key(SUM, my_rank, 0, round));
	if (round & 1) {
		MPI_Iallreduce(out, in, words, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Allreduce(out, in, words, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	}
	for (size_t i = 0; i < words; i++)
		verify_number("allreduce", i, in[i], sum_of(SUM, round, i));
}

static void alltoall(uint64_t round, size_t bytes)
{
	size_t each = bytes / ranks;

	for (int to = 0; to < ranks; to++)
		pattern_fill((char *)out + to * each, each, pattern_key(ALL, my_rank, to, round));
	MPI_Alltoall(out, each, MPI_BYTE, in, each, MPI_BYTE, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		pattern_verify("alltoall", (char *)in + from * each, each,
			       pattern_key(ALL, from, my_rank, round));
}

static void allgather(uint64_t round, size_t bytes)
{
	size_t each = bytes / ranks;

	pattern_fill(out, each, pattern_key(GATHER, my_rank, 0, round));
	MPI_Allgather(out, each, MPI_BYTE, in, each, MPI_BYTE, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		pattern_verify("allgather", (char *)in + from * each, each,
			       pattern_key(GATHER, from, 0, round));
}

static void reduce_scatter(uint64_t round, size_t bytes)
{
	size_t each = (bytes < SUM_BYTES ? bytes : SUM_BYTES) / 8 / ranks;

	pattern_fill(out, each * ranks * 8, pattern_key(SCATTER, my_rank, 0, round));
	MPI_Reduce_scatter_block(out, in, each, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (size_t i = 0; i < each; i++)
		verify_number("reduce_scatter", i, in[i],
			      sum_of(SCATTER, round, my_rank * each + i));
}

void collective_round(uint64_t round, size_t bytes)
{
	bcast(round, bytes);
	allreduce(round, bytes);
	alltoall(round, bytes);
	allgather(round, bytes);
	reduce_scatter(round, bytes);
	MPI_Barrier(MPI_COMM_WORLD);
}
