// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Threads that fork so that one of them is always about it: the shim's control thread has its turn between them. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "check.h"
#include "mock.h"
#include "pair.h"

#define THREADS	3
/* So many may begin until it has done what it is asked for. */
#define ENOUGH	64

static atomic_uint within, begun;
static atomic_bool over;

/* Runs when the shim knows of this fork(): it is at an end when there is another one, or none comes for long. */
static void overlap(void)
{
	unsigned int i, mine = atomic_fetch_add(&begun, 1) + 1;

	atomic_fetch_add(&within, 1);
	for (i = 0; i < 200 && atomic_load(&begun) == mine && !atomic_load(&over); i++)
		usleep(1000);
}

static void through(void)
{
	atomic_fetch_sub(&within, 1);
}

static void *fork_on(void *arg)
{
	while (!atomic_load(&over)) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			_exit(0);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
	}
	return arg;
}

int main(void)
{
	pthread_t thread[THREADS];
	unsigned int i, before;
	struct end e[2];

#ifdef __SANITIZE_THREAD__
	puts("ThreadSanitizer knows no threads in a child of a process with threads");
	return 77;
#endif
	alarm(HANGS);
	/* Before the shim's: the last to prepare, and the first to be through. */
	CHECK(!pthread_atfork(overlap, through, NULL));
	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, fork_on, NULL));
	while (atomic_load(&begun) < THREADS)
		usleep(1000);
	before = atomic_load(&begun);
	end_close(&e[0]);	/* asks the control thread */
	CHECK(atomic_load(&begun) - before < ENOUGH, "%u", atomic_load(&begun) - before);
	atomic_store(&over, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(atomic_load(&within), 0);
	end_close(&e[1]);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
