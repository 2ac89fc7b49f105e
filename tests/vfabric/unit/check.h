/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checks of the unit tests: the first that fails ends the program. */
#ifndef VF_CHECK_H
#define VF_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition) do { \
	if (!(condition)) { \
		fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
		exit(1); \
	} \
} while (0)

#define CHECK_EQ(a, b) do { \
	long long a_ = (a), b_ = (b); \
	if (a_ != b_) { \
		fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, a_, b_); \
		exit(1); \
	} \
} while (0)

#endif
