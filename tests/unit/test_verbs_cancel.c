// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A thread that is cancelled leaves no lock behind, be it while it waits for an event or where the
 * cancellation has come before the verb: all that it has used can be used, and destroyed, by the others.
 */
#include <pthread.h>
#include <semaphore.h>

#include "check.h"
#include "mock.h"
#include "pair.h"

static struct end e[2];
static sem_t about, cancelled;

static void read_cq_event(void)
{
	struct ibv_cq *cq;
	void *context;

	if (!ibv_get_cq_event(e[0].channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

static void read_async_event(void)
{
	struct ibv_async_event event;

	if (!ibv_get_async_event(e[0].ctx, &event))
		ibv_ack_async_event(&event);
}

/* Asks the control thread; no place to be cancelled at. */
static void use_queue_pair(void)
{
	CHECK_EQ(ibv_destroy_qp(end_create_qp(&e[0], &(struct pair_how){ 0 })), 0);
	pthread_testcancel();
}

static void *before(void *verb)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	sem_post(&about);
	sem_wait(&cancelled);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	for (;;)
		((void (*)(void))verb)();
	return NULL;
}

static void *within(void *verb)
{
	sem_post(&about);
	for (;;)
		((void (*)(void))verb)();
	return NULL;
}

static void cancel_one(void *(*how)(void *), void (*verb)(void), unsigned int us)
{
	pthread_t thread;
	void *ret;

	CHECK_EQ(pthread_create(&thread, NULL, how, (void *)verb), 0);
	sem_wait(&about);
	usleep(us);
	CHECK_EQ(pthread_cancel(thread), 0);
	sem_post(&cancelled);
	CHECK_EQ(pthread_join(thread, &ret), 0);
	CHECK(ret == PTHREAD_CANCELED);
	sem_init(&cancelled, 0, 0);
}

static void go(void (*verb)(void))
{
	int i;

	pair_open(e, &(struct pair_how){ .events = true });
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
	for (i = 0; i < 3; i++) {
		cancel_one(before, verb, 0);
		cancel_one(within, verb, i * 1000);
	}
	/* All of it works on. */
	CHECK_EQ(post_recv(&e[1], 1, 0, 4), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, IBV_SEND_SIGNALED, 0, 4), 0);
	take_event(&e[0]);
	expect(&e[0], 2, IBV_WC_SUCCESS);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	mock_async_event("mock0", IBV_EVENT_PORT_ACTIVE);
	read_async_event();
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	puts("AddressSanitizer does not know that a thread which is cancelled has left its frames");
	return 77;
#endif
	alarm(HANGS);
	sem_init(&about, 0, 0);
	sem_init(&cancelled, 0, 0);
	go(read_cq_event);
	go(read_async_event);
	go(use_queue_pair);
	return 0;
}
