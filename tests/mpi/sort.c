// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Integers drawn by lot are sorted: each rank gets those of its range from all others. */
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "mpicheck.h"

#define KEY_BITS	19
#define SORT		80

static uint32_t *drawn, *by_owner, *sorted;
static int count;		/* of each rank's keys */
static int *sizes, *places, *got_sizes, *got_places;

/* The same for every order of the keys. */
static uint64_t sum_of(const uint32_t *keys, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += pattern_word(1, keys[i]);
	return sum;
}

static int owner(uint32_t key)
{
	return (uint64_t)key * ranks >> KEY_BITS;
}

static int ascending(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return (one > other) - (one < other);
}

void sort_start(int keys)
{
	count = keys;
	drawn = malloc(count * sizeof(*drawn));
	by_owner = malloc(count * sizeof(*by_owner));
	sorted = malloc((size_t)ranks * count * sizeof(*sorted));
	sizes = calloc(4 * ranks, sizeof(*sizes));
	if (!drawn || !by_owner || !sorted || !sizes)
		MPI_Abort(MPI_COMM_WORLD, 2);
	places = sizes + ranks;
	got_sizes = sizes + 2 * ranks;
	got_places = sizes + 3 * ranks;
}

static void split(void)
{
	int next[ranks];

	memset(sizes, 0, ranks * sizeof(*sizes));
	for (int i = 0; i < count; i++)
		sizes[owner(drawn[i])]++;
	for (int r = 0, at = 0; r < ranks; at += sizes[r++])
		next[r] = places[r] = at;
	for (int i = 0; i < count; i++)
		by_owner[next[owner(drawn[i])]++] = drawn[i];
}

/* In order within and between ranks, none lost or doubled. */
static void check(int n)
{
	uint64_t here[2], all[2];

	for (int i = 0; i < n; i++) {
		verify_number("sort: owner", i, owner(sorted[i]), my_rank);
		verify_number("sort: order", i, i && sorted[i] < sorted[i - 1], 0);
	}
	here[0] = n - count;
	here[1] = sum_of(sorted, n) - sum_of(drawn, count);
	MPI_Allreduce(here, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	verify_number("sort: keys", 0, all[0], 0);
	verify_number("sort: sum", 0, all[1], 0);
}

void sort_round(uint64_t round)
{
	uint64_t key = pattern_key(SORT, my_rank, 0, round);
	int n = 0;

	for (int i = 0; i < count; i++)
		drawn[i] = pattern_word(key, i) >> (64 - KEY_BITS);
	split();
	MPI_Alltoall(sizes, 1, MPI_INT, got_sizes, 1, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; n += got_sizes[r++])
		got_places[r] = n;
	MPI_Alltoallv(by_owner, sizes, places, MPI_UINT32_T, sorted, got_sizes, got_places,
		      MPI_UINT32_T, MPI_COMM_WORLD);
	qsort(sorted, n, sizeof(*sorted), ascending);
	check(n);
}

void sort_end(void)
{
	free(drawn);
	free(by_owner);
	free(sorted);
	free(sizes);
}
