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
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/panic.h>
#include <linux/random.h>
#include <linux/sched/debug.h>
#include <linux/slab.h>

/* The one test that runs at a time, in the place of current->kunit_test. */
struct kunit_task {
	struct kunit *kunit_test;
};

extern struct kunit_task kunit_task;

#pragma push_macro("current")
#undef current
#define current (&kunit_task)
#include <kunit/test-bug.h>
#ifdef CORE_IS_TEST_C
struct kunit_task kunit_task;

#undef CONFIG_MODULES
#else
#pragma pop_macro("current")
#endif

#endif /* CORE_COMPAT_H */
