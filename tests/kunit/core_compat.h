/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Force-included into KUnit's own core; see suite_compat.h. The core wants to hear of modules
 * that carry suites (struct module has no place for them here), and to leave the running test in
 * struct task_struct (which has no place for it either): it gets neither.
 */
#ifndef CORE_COMPAT_H
#define CORE_COMPAT_H

#include "suite_compat.h"

/* All that the core includes itself has to be read before `current` is taken away. */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/panic.h>
#include <linux/random.h>
#include <linux/sched/debug.h>
#include <linux/slab.h>

#ifdef CORE_IS_TEST_C
struct current_test {
	struct kunit *kunit_test;
};

static struct current_test current_test;

#undef CONFIG_MODULES
#undef current
#define current (&current_test)
#endif

#endif /* CORE_COMPAT_H */
