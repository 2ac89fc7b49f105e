// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pathloop: the paths between two ports change again and again, as `repath path set` does it, without a
 * process for each change. Some are told beforehand, or taken away first; most changes come before the
 * one before has come to an end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../tools/door.h"

#define LANES	7
#define PAUSES	5

static const char usage[] =
"usage: pathloop [-n ROUNDS] [-g LAG] [-l LAST] [-w MS] DEV LID DEV LID\n"
"  -n ROUNDS  changes of the path from each of the two ports to the other one (100)\n"
"  -g LAG     how far the second port's service level is from the first one's (0)\n"
"  -l LAST    service level of both at the end (0)\n"
"  -w MS      pauses are 0 to 4 times as long (10)\n"
"A line for each hundred rounds: how many, and seconds since the start.\n";

struct end {
	const char *dev;
	unsigned int lid;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* The path from @from to @to; without a service level where @sl is negative. */
static void tell(struct door *door, const struct end *from, const struct end *to, int sl,
		 enum repath_path_when when)
{
	struct nl_msg *msg = door_request(REPATH_CMD_PATH_SET);

	nla_put_u32(msg, REPATH_A_PORT, 1);
	nla_put_string(msg, REPATH_A_DEV_NAME, from->dev);
	nla_put_u8(msg, REPATH_A_PATH_WHEN, when);
	nla_put_u32(msg, REPATH_A_DLID, to->lid);
	if (sl >= 0)
		nla_put_u8(msg, REPATH_A_SL, sl);
	if (door_do(door, msg, NULL, NULL)) {
		fprintf(stderr, "pathloop: %s: %s\n", from->dev, door_error(door));
		exit(1);
	}
}

static void change(struct door *door, const struct end ends[2], unsigned int n, unsigned int lag)
{
	if (n % 5 == 1)
		tell(door, &ends[0], &ends[1], n % LANES, REPATH_PATH_LATER);
	else if (n % 5 == 3)
		tell(door, &ends[1], &ends[0], -1, REPATH_PATH_HOLD);
	tell(door, &ends[0], &ends[1], n % LANES, REPATH_PATH_NOW);
	tell(door, &ends[1], &ends[0], (n + lag) % LANES, REPATH_PATH_NOW);
}

int main(int argc, char **argv)
{
	unsigned int rounds = 100, lag = 0, last = 0, ms = 10;
	struct door *door = door_new();
	struct end ends[2];
	double start = now();
	int o;

	while ((o = getopt(argc, argv, "n:g:l:w:")) >= 0) {
		if (!strchr("nglw", o)) {
			fputs(usage, stderr);
			return 2;
		}
		*(o == 'n' ? &rounds : o == 'g' ? &lag : o == 'l' ? &last : &ms) = atoi(optarg);
	}
	if (argc - optind != 4) {
		fputs(usage, stderr);
		return 2;
	}
	for (unsigned int i = 0; i < 2; i++, optind += 2)
		ends[i] = (struct end){ argv[optind], atoi(argv[optind + 1]) };

	setlinebuf(stdout);
	for (unsigned int n = 1; n <= rounds; n++) {
		change(door, ends, n, lag);
		usleep(1000 * ms * (n % PAUSES));
		if (n % 100 == 0)
			printf("%u %.1f\n", n, now() - start);
	}
	tell(door, &ends[0], &ends[1], last, REPATH_PATH_NOW);
	tell(door, &ends[1], &ends[0], last, REPATH_PATH_NOW);
	printf("%u %.1f\n", rounds, now() - start);
	door_close(door);
	return 0;
}
