// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program forks, again and again, while its device is moved: its child finds nothing locked by the thread that moves
 * it, which it does not have, and can use verbs.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define FORKS	200

/* The mock's own lock, by who is neither the shim nor the child. */
static pthread_mutex_t plugging = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool stop;
static _Atomic unsigned int moves;

static void *mover(void *arg)
{
	const struct mock_plug plug = { .name = "mock0" };

	while (!stop) {
		if (fake_check("mock0", NULL))
			continue;	/* a child holds it just now */
		CHECK_EQ(fake_suspend("mock0"), 0);
		pthread_mutex_lock(&plugging);
		CHECK_EQ(mock_unplug("mock0"), 0);
		CHECK_EQ(mock_plug(&plug), 0);
		pthread_mutex_unlock(&plugging);
		CHECK_EQ(fake_resume("mock0", NULL), 0);
		moves++;
	}
	return arg;
}

static void child(void)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	struct ibv_pd *pd;
	int i;

	alarm(100);
	list = ibv_get_device_list(NULL);
	CHECK(list);
	for (i = 0; list[i]; i++)
		if (!strcmp(list[i]->name, "mock1"))
			ctx = ibv_open_device(list[i]);
	CHECK(ctx);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
	_exit(0);
}

int main(void)
{
	struct ibv_mr *mr[64];
	pthread_t thread;
	struct end e;
	int i, status;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	puts("ThreadSanitizer knows no threads in a child of a process with threads");
	return 77;
#endif
#ifdef __SANITIZE_ADDRESS__
	puts("AddressSanitizer does not hold its allocator's locks across fork()");
	return 77;
#endif
	alarm(HANGS);
	end_open(&e, "mock0", &(struct pair_how){ 0 });
	for (i = 0; i < 64; i++) {
		mr[i] = ibv_reg_mr(e.pd, e.buf, 8, ALL_ACCESS);
		CHECK(mr[i]);
	}
	CHECK(!pthread_create(&thread, NULL, mover, NULL));
	for (i = 0; i < FORKS; i++) {
		pthread_mutex_lock(&plugging);
		pid = fork();
		pthread_mutex_unlock(&plugging);
		CHECK(pid >= 0);
		if (!pid)
			child();
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "fork %d: status 0x%x", i, status);
	}
	stop = true;
	pthread_join(thread, NULL);
	CHECK(moves > 0);
	for (i = 0; i < 64; i++)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	end_close(&e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
