/* SPDX-License-Identifier: GPL-2.0 */
/* Bytes turned by chance, the same ones for the same seed; for suites that read what others wrote. */
#ifndef REPATH_TESTS_FUZZ_H
#define REPATH_TESTS_FUZZ_H

#include <linux/moduleparam.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

static unsigned int rounds = 50000;
module_param(rounds, uint, 0);
MODULE_PARM_DESC(rounds, "of each fuzzer");
static unsigned int seed = 1;
module_param(seed, uint, 0);
MODULE_PARM_DESC(seed, "of all that is random");

static struct rnd_state fuzz_state;

static inline void fuzz_begin(void)
{
	prandom_seed_state(&fuzz_state, seed);
}

static inline u32 fuzz_below(u32 n)
{
	return prandom_u32_state(&fuzz_state) % n;
}

/*
 * A copy of @data, mostly with bytes turned and now and then shorter or longer, that ends where its
 * memory does. NULL without memory.
 */
static inline void *fuzz_copy(const void *data, u32 *len)
{
	u32 n = *len, i;
	u8 *copy;

	cond_resched();
	if (!fuzz_below(8))
		n = fuzz_below(2) ? fuzz_below(n + 1) : n + fuzz_below(32);
	copy = kmalloc(n ?: 1, GFP_KERNEL);
	if (!copy)
		return NULL;
	memset(copy, 0, n);
	memcpy(copy, data, min(n, *len));
	for (i = n ? fuzz_below(5) : 0; i; i--) {
		u8 *at = copy + fuzz_below(n);

		switch (fuzz_below(4)) {
		case 0:
			*at = fuzz_below(256);
			break;
		case 1:
			*at = fuzz_below(2) ? 0xff : 0;
			break;
		default:
			*at ^= 1 << fuzz_below(8);
		}
	}
	*len = n;
	return copy;
}

#endif /* REPATH_TESTS_FUZZ_H */
