// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * mpicheck: an MPI program that checks every byte it gets and every number it computes. It knows
 * nothing of RDMA, nor of repath.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#include "mpicheck.h"

static const char usage[] =
"usage: mpicheck [-n ROUNDS] [-s FILE] [-m BYTES] [-p PARTS] [-k KEYS]\n"
"  -n ROUNDS  end after so many (0: none is the last)\n"
"  -s FILE    end when rank 0 finds this file\n"
"  -m BYTES   of the largest message (1048576)\n"
"  -p PARTS   what a round does: letters of exchange, collective, stencil, window (ecsw),\n"
"             rings, integer sort, gauss\n"
"  -k KEYS    that each rank has to sort (16384)\n"
"Rank 0 prints a line of JSON twice a second and one at the end.\n";

int my_rank, ranks;

/* From nothing over what fits into a packet, and what is sent at once, to what is fetched. */
static const size_t sizes[] = {
	0, 1, 8, 100, 1024, 4096, 8000, 16384, 40000, 131072, 400000, MAX_BYTES,
};

struct options {
	uint64_t rounds;
	const char *stop_file, *parts;
	size_t max_bytes;
	unsigned long keys;
};

struct report {
	double start, last_print, longest;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static bool parse(struct options *opt, int argc, char **argv)
{
	int o;

	*opt = (struct options){ .parts = "ecsw", .max_bytes = MAX_BYTES, .keys = 16384 };
	while ((o = getopt(argc, argv, "n:s:m:p:k:")) >= 0) {
		if (o == 'n')
			opt->rounds = strtoull(optarg, NULL, 0);
		else if (o == 's')
			opt->stop_file = optarg;
		else if (o == 'm')
			opt->max_bytes = strtoull(optarg, NULL, 0);
		else if (o == 'p')
			opt->parts = optarg;
		else if (o == 'k')
			opt->keys = strtoul(optarg, NULL, 0);
		else
			return false;
	}
	return optind == argc && opt->max_bytes <= MAX_BYTES && opt->keys && opt->keys <= 1 << 24 &&
	       strspn(opt->parts, "ecswrig") == strlen(opt->parts) && *opt->parts;
}

static bool has(const struct options *opt, char part)
{
	return strchr(opt->parts, part);
}

/* Rank 0 decides, all do. */
static bool goes_on(const struct options *opt, uint64_t round)
{
	int go = 1;

	if (my_rank == 0)
		go = !(opt->rounds && round >= opt->rounds) &&
		     !(opt->stop_file && !access(opt->stop_file, F_OK));
	MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return go;
}

static void tell(struct report *r, uint64_t round, double began, bool last)
{
	double t = now();

	r->longest = t - began > r->longest ? t - began : r->longest;
	if (my_rank || (!last && t - r->last_print < 0.5))
		return;
	r->last_print = t;
	printf("{%s\"rounds\":%llu,\"ranks\":%d,\"mbytes\":%.1f,\"seconds\":%.1f,"
	       "\"longest_round_ms\":%.0f}\n", last ? "\"ok\":true," : "",
	       (unsigned long long)round, ranks, verified_bytes / 1e6, t - r->start,
	       r->longest * 1e3);
	fflush(stdout);
}

static void one_round(const struct options *opt, uint64_t round)
{
	size_t bytes = sizes[round % (sizeof(sizes) / sizeof(sizes[0]))];

	if (bytes > opt->max_bytes)
		bytes = opt->max_bytes;
	if (has(opt, 'e'))
		exchange_round(round, bytes);
	if (has(opt, 'c'))
		collective_round(round, bytes);
	if (has(opt, 's'))
		stencil_round(round);
	if (has(opt, 'w'))
		window_round(round, bytes);
	if (has(opt, 'r'))
		rings_round(round, bytes);
	if (has(opt, 'i'))
		sort_round(round);
	if (has(opt, 'g'))
		gauss_round(round);
}

int main(int argc, char **argv)
{
	struct report report = { 0 };
	struct options opt;
	uint64_t round = 0;
	double began;

	if (!parse(&opt, argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (has(&opt, 's'))
		stencil_start();
	if (has(&opt, 'w'))
		window_start();
	if (has(&opt, 'i'))
		sort_start(opt.keys);
	report.start = began = now();
	tell(&report, 0, began, false);		/* that it has begun */
	for (; goes_on(&opt, round); began = now()) {
		one_round(&opt, round++);
		tell(&report, round, began, false);
	}
	tell(&report, round, began, true);
	if (has(&opt, 'i'))
		sort_end();
	if (has(&opt, 'w'))
		window_end();
	if (has(&opt, 's'))
		stencil_end();
	MPI_Finalize();
	return 0;
}
