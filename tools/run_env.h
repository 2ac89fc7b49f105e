/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a program must find in its environment so that its connections can be moved. */
#ifndef REPATH_TOOL_RUN_ENV_H
#define REPATH_TOOL_RUN_ENV_H

#include <stdbool.h>
#include <stddef.h>

enum run_whose {
	RUN_SET,	/* by us */
	RUN_KEPT,	/* the user's own, which will do */
	RUN_WARN,	/* the user's own, which will not */
};

/**
 * struct run_setting - one variable
 * @name: of the variable
 * @value: what it will be; on the heap
 * @why: for a person
 * @whose: who has decided
 */
struct run_setting {
	const char *name;
	char *value;
	const char *why;
	enum run_whose whose;
};

#define RUN_SETTINGS	8

/*
 * Fills @list with the settings for the environment as it is; their number, or -1 when
 * libibrepath.so is not found, which has been said then.
 */
int run_settings(struct run_setting list[RUN_SETTINGS]);

/* Puts those that are ours into the environment. */
void run_apply(const struct run_setting *list, int n);

/*
 * If @argv starts Open MPI's mpirun: a new argv with -x for each variable that the user does not pass
 * on by himself; else NULL. @list may be corrected: what the user gives with -x is his.
 */
char **run_mpirun(char **argv, struct run_setting *list, int n);

#endif /* REPATH_TOOL_RUN_ENV_H */
