// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Bytes that tell whose they are. */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

#include "mpicheck.h"

uint64_t verified_bytes;

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185ull;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44dull;
	return x ^ x >> 33;
}

uint64_t pattern_key(unsigned int what, int from, int to, uint64_t round)
{
	return mix(mix(round) + ((uint64_t)what << 48 | (uint64_t)from << 24 | (uint64_t)to));
}

uint64_t pattern_word(uint64_t key, uint64_t index)
{
	/* One multiplication a word: checking must not take longer than sending. */
	uint64_t x = (key + index) * 0x9e3779b97f4a7c15ull;

	return x ^ x >> 29;
}

void pattern_fill(void *buf, size_t bytes, uint64_t key)
{
	size_t words = bytes / 8;
	uint64_t word;

	for (size_t i = 0; i < words; i++) {
		word = pattern_word(key, i);
		memcpy((char *)buf + i * 8, &word, 8);
	}
	word = pattern_word(key, words);
	memcpy((char *)buf + words * 8, &word, bytes % 8);
}

static void wrong(const char *what, size_t at, const void *found, const void *expected, size_t n)
{
	const unsigned char *f = found, *e = expected;

	fprintf(stderr, "mpicheck: rank %d: %s: wrong at byte %zu: found", my_rank, what, at);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %02x", f[i]);
	fprintf(stderr, ", expected");
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %02x", e[i]);
	fprintf(stderr, "\n");
	fflush(stderr);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

void pattern_verify(const char *what, const void *buf, size_t bytes, uint64_t key)
{
	for (size_t at = 0; at < bytes; at += 8) {
		uint64_t expected = pattern_word(key, at / 8);
		size_t n = bytes - at < 8 ? bytes - at : 8;

		if (memcmp((const char *)buf + at, &expected, n))
			wrong(what, at, (const char *)buf + at, &expected, n);
	}
	verified_bytes += bytes;
}

void verify_number(const char *what, uint64_t index, uint64_t found, uint64_t expected)
{
	if (found != expected)
		wrong(what, index * 8, &found, &expected, 8);
	verified_bytes += 8;
}
