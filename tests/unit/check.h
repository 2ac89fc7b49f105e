/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a test program says and how it ends: the first thing that is not as it should be is printed
 * with its place, and ends it with 1; one that hangs is ended by SIGALRM.
 */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds after which a test hangs, on the slowest of machines; tests/run waits a little longer. */
#define HANGS 280

#define CHECK(cond, ...) do {							\
	if (!(cond)) {								\
		fprintf(stderr, "%s:%d: not true: %s", __FILE__, __LINE__, #cond); \
		fprintf(stderr, "  " __VA_ARGS__);				\
		fputc('\n', stderr);						\
		fflush(stderr);							\
		_exit(1);							\
	}									\
} while (0)

#define CHECK_EQ(a, b) do {							\
	long long a_ = (long long)(a), b_ = (long long)(b);			\
	if (a_ != b_) {								\
		fprintf(stderr, "%s:%d: %s is %lld (0x%llx), not %s = %lld (0x%llx)\n",	\
			__FILE__, __LINE__, #a, a_, a_, #b, b_, b_);		\
		_exit(1);							\
	}									\
} while (0)

/* How often to try what depends on chance: less often where each try is slow. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TIMES(n)	(((n) + 3) / 4)
#else
#define TIMES(n)	(n)
#endif

#endif /* CHECK_H */
