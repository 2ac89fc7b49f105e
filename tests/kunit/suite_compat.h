/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Force-included into each KUnit suite, because distribution kernels have CONFIG_KUNIT off.
 *
 * The option can not simply be defined on the command line: it adds members to struct module and
 * struct task_struct, and a module built so would disagree with the running kernel about both.
 * Hence the headers with those structures are read first, and the option set after them.
 */
#ifndef SUITE_COMPAT_H
#define SUITE_COMPAT_H

#include <linux/module.h>
#include <linux/sched.h>

#if !defined(CONFIG_KUNIT) && !defined(CONFIG_KUNIT_MODULE)
#define CONFIG_KUNIT_MODULE		1
#define CONFIG_KUNIT_DEFAULT_ENABLED	1
#include <kunit/test.h>

/* The stock module loader does not look for suites in a module: run them from its init. */
#undef __kunit_test_suites
#define __kunit_test_suites(array, ...)						\
	static struct kunit_suite *array[] = { __VA_ARGS__ };			\
	static int __init run_suites(void)					\
	{									\
		return __kunit_test_suites_init(array, ARRAY_SIZE(array));	\
	}									\
	static void __exit end_suites(void)					\
	{									\
		__kunit_test_suites_exit(array, ARRAY_SIZE(array));		\
	}									\
	module_init(run_suites);						\
	module_exit(end_suites)
#endif

#endif /* SUITE_COMPAT_H */
