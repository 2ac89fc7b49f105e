// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fork() while the control thread is at work would leave the child with whatever that holds: locks of libibverbs and
 * of its providers, which nobody gives back there. So fork() waits until it is at rest, and it until fork() is through;
 * not for ever, as either may be what the other one waits for. Where several threads fork all the time, those that come
 * while it waits let it go first.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "ctl.h"
#include "shim.h"

#define PATIENCE_S	10

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool works, wants;
static pthread_t worker;
static unsigned int forks;	/* under way */
static __thread bool in_fork;

/* Caller holds the lock. */
static void wait_while(bool (*so)(void))
{
	struct timespec until;
	int cancel;

	if (!so())
		return;
	cancel = rp_uncancelled();
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	while (so() && pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		;
	rp_cancelled_as(cancel);
}

static bool forking(void)
{
	return forks;
}

static bool working(void)
{
	return works && !pthread_equal(worker, pthread_self());
}

static bool wanted(void)
{
	return wants;
}

void rp_work_begin(void)
{
	pthread_mutex_lock(&lock);
	wants = true;
	wait_while(forking);
	wants = false;
	works = true;
	worker = pthread_self();
	pthread_cond_broadcast(&changed);	/* for those who have waited for its turn */
	pthread_mutex_unlock(&lock);
}

void rp_work_end(void)
{
	pthread_mutex_lock(&lock);
	works = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void prepare(void)
{
	pthread_mutex_lock(&lock);
	in_fork = true;
	wait_while(wanted);
	forks++;
	wait_while(working);
	pthread_mutex_unlock(&lock);
}

/* A handler of another library may want something of the control thread. */
bool rp_fork_let(void)
{
	if (!in_fork)
		return false;
	pthread_mutex_lock(&lock);
	forks--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return true;
}

void rp_fork_go_on(void)
{
	pthread_mutex_lock(&lock);
	forks++;
	wait_while(working);
	pthread_mutex_unlock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_lock(&lock);
	in_fork = false;
	forks--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	in_fork = false;
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	works = wants = false;
	forks = 0;
}

static void watch(void)
{
	pthread_atfork(prepare, in_parent, in_child);
}

void rp_forks_wait(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
