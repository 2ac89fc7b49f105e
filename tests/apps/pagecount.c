// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pagecount PAGES
 *
 * Writes the number of each round to all of its pages, one after the other, and expects the one of the round
 * before there: a store that a live migration has lost is found in the next round. A line each second: the round.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE_WORDS (4096 / sizeof(uint64_t))

int main(int argc, char **argv)
{
	size_t pages = argc == 2 ? strtoul(argv[1], NULL, 0) : 0;
	volatile uint64_t *words;
	uint64_t round;
	time_t said = 0;
	size_t i;

	if (!pages) {
		fprintf(stderr, "usage: pagecount PAGES\n");
		return 2;
	}
	words = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (words == MAP_FAILED) {
		perror("pagecount: mmap");
		return 1;
	}
	for (round = 1;; round++) {
		for (i = 0; i < pages; i++) {
			if (words[i * PAGE_WORDS] != round - 1) {
				printf("page %zu has %llu where %llu was written\n", i,
				       (unsigned long long)words[i * PAGE_WORDS],
				       (unsigned long long)round - 1);
				return 1;
			}
			words[i * PAGE_WORDS] = round;
		}
		if (time(NULL) != said) {
			said = time(NULL);
			printf("%llu\n", (unsigned long long)round);
			fflush(stdout);
		}
	}
}
