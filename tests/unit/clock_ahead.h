/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A clock that tests put forward or stop, for all of their program; of one .c file. */
#ifndef CLOCK_AHEAD_H
#define CLOCK_AHEAD_H

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake_module.h"

#define S	1000000000ll

/* Time is that of the machine and so much more; or, while @stopped, this. */
static _Atomic long long ahead_ns, stopped_ns;
/* ... but so many looks of the control thread see a little less. */
static _Atomic int looks;
/* How many it has taken at all. */
static _Atomic unsigned int looked;

int clock_gettime(clockid_t id, struct timespec *t)
{
	int ret = syscall(SYS_clock_gettime, id, t);
	long long ns;

	if (id != CLOCK_MONOTONIC)
		return ret;
	ns = stopped_ns ? stopped_ns : t->tv_sec * S + t->tv_nsec + ahead_ns;
	if (fake_is_control()) {
		looked++;
		if (looks > 0) {
			looks--;
			ns -= 1000;
		}
	}
	t->tv_sec = ns / S;
	t->tv_nsec = ns % S;
	return ret;
}

/* Who waits does it by that clock, too. */
int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t id, const struct timespec *until)
{
	struct timespec now, t;
	long long ns;

	clock_gettime(id, &now);
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	ns = t.tv_nsec + until->tv_nsec - now.tv_nsec + S * (t.tv_sec + until->tv_sec - now.tv_sec);
	t.tv_sec = ns / S;
	t.tv_nsec = ns % S;
	return pthread_cond_timedwait(cond, mutex, &t);
}

/* For the machine as well, and at least as long as the control thread needs to act upon it. */
static inline void time_passes(int seconds)
{
	unsigned int before;

	ahead_ns += seconds * S;
	before = looked;
	usleep(200000);
	while (looked - before < 64)
		usleep(1000);
}

static inline void messages_are_lost(bool lost)
{
	fake_faults_set(&(struct fake_faults){ .seed = 1, .lost = lost ? 100 : 0 });
}

#endif /* CLOCK_AHEAD_H */
