// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pairs of normal deviates by the polar method, counted by their size: nearly all is computing. */
#include <math.h>
#include <string.h>

#include <mpi.h>

#include "mpicheck.h"

#define PAIRS	20000		/* of each rank */
#define RINGS	10
#define GAUSS	96
#define FIXED	1048576.0	/* sums are of integers: the same in any order */

struct deviates {
	int64_t count[RINGS];
	int64_t sum_x, sum_y;
};

#define NUMBERS	(sizeof(struct deviates) / sizeof(int64_t))

static double uniform(uint64_t key, uint64_t index)
{
	return (double)(pattern_word(key, index) >> 11) / (1ull << 52) - 1.0;
}

/* Those that a rank draws; whoever computes them. */
static void compute(int rank, uint64_t round, struct deviates *d)
{
	uint64_t key = pattern_key(GAUSS, rank, 0, round);

	memset(d, 0, sizeof(*d));
	for (uint64_t i = 0; i < PAIRS; i++) {
		double x = uniform(key, 2 * i), y = uniform(key, 2 * i + 1), t = x * x + y * y, f;
		int ring;

		if (t > 1.0 || t == 0.0)
			continue;
		f = sqrt(-2.0 * log(t) / t);
		x *= f;
		y *= f;
		ring = fmax(fabs(x), fabs(y));
		if (ring < RINGS)
			d->count[ring]++;
		d->sum_x += llround(x * FIXED);
		d->sum_y += llround(y * FIXED);
	}
}

/* Each rank's are computed by it and by its neighbour: both sums are the same. */
void gauss_round(uint64_t round)
{
	struct deviates own, other, sum, sum_of_others;

	compute(my_rank, round, &own);
	compute((my_rank + 1) % ranks, round, &other);
	MPI_Allreduce(&own, &sum, NUMBERS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&other, &sum_of_others, NUMBERS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (unsigned int i = 0; i < NUMBERS; i++)
		verify_number("gauss", i, ((int64_t *)&sum)[i], ((int64_t *)&sum_of_others)[i]);
}
