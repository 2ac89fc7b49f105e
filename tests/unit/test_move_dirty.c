// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An application that does not stand still: while the device is away it destroys, modifies and
 * makes queue pairs of the connection, on the own side and on the peer's, and goes on afterwards.
 */
#include <pthread.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static void message(struct end *a, struct end *b, uint64_t n)
{
	CHECK_EQ(post_recv(b, n, 4096, 64), 0);
	CHECK_EQ(post(a, b, IBV_WR_SEND, n + 1, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(b, n, IBV_WC_SUCCESS);
	expect(a, n + 1, IBV_WC_SUCCESS);
}

static void *to_error(void *arg)
{
	qp_to(arg, IBV_QPS_ERR);
	return NULL;
}

static void *destroy(void *arg)
{
	CHECK_EQ(ibv_destroy_qp(arg), 0);
	return NULL;
}

/* With queue pairs that are made now: their numbers are the devices'. */
static void reconnect(struct end e[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		if (e[i].qp)
			CHECK_EQ(ibv_destroy_qp(e[i].qp), 0);
		e[i].qp = end_create_qp(&e[i], &(struct pair_how){ 0 });
	}
	pair_connect(e);
}

/* A verb on a queue pair that is away waits, and is then done on the new one. */
static void modified(int end)
{
	struct end e[2];
	pthread_t t;

	pair_open(e, &(struct pair_how){ 0 });
	message(&e[0], &e[1], 10);
	move_away("mock0");
	CHECK_EQ(post_recv(&e[end], 100, 0, 64), 0);
	CHECK_EQ(pthread_create(&t, NULL, to_error, e[end].qp), 0);
	usleep(20000);
	move_back("mock0");
	pthread_join(t, NULL);
	expect(&e[end], 100, IBV_WC_WR_FLUSH_ERR);
	reconnect(e);
	message(&e[0], &e[1], 20);
	move_away("mock0");
	move_back("mock0");
	message(&e[1], &e[0], 30);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Destroyed on the mover's side: waits. On the peer's: at once, and the other end fails. */
static void destroyed(int end)
{
	struct end e[2];
	pthread_t t;
	const char *why = "";
	int ret;

	pair_open(e, &(struct pair_how){ 0 });
	message(&e[0], &e[1], 10);
	move_away("mock0");
	CHECK_EQ(post(&e[!end], &e[end], IBV_WR_SEND, 1, IBV_SEND_SIGNALED, 0, 8), 0);
	CHECK_EQ(pthread_create(&t, NULL, destroy, e[end].qp), 0);
	usleep(20000);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
	ret = fake_resume("mock0", &why);
	CHECK(!ret, "%d, %s", ret, why);
	pthread_join(t, NULL);
	mock_retry_ms(50);
	expect(&e[!end], 1, IBV_WC_RETRY_EXC_ERR);
	mock_retry_ms(1000);
	e[end].qp = NULL;
	reconnect(e);
	message(&e[0], &e[1], 20);
	move_away("mock0");
	move_back("mock0");
	message(&e[1], &e[0], 30);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Other queue pairs between moves; the completions that those before had left in the CQ go with them. */
static void again(void)
{
	uint64_t executed;
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 4; i++) {
		move_away(i % 2 ? "mock1" : "mock0");
		move_back(i % 2 ? "mock1" : "mock0");
		executed = mock_executed();
		CHECK_EQ(post_recv(&e[1], 100, 0, 64), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 101, IBV_SEND_SIGNALED, 0, 8), 0);
		while (mock_executed() == executed || !mock_quiet())
			usleep(100);
		reconnect(e);
		expect_none(&e[0], 1);
		expect_none(&e[1], 1);
		message(&e[0], &e[1], 20);
		message(&e[1], &e[0], 30);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	modified(0);
	modified(1);
	destroyed(0);
	destroyed(1);
	again();
	return 0;
}
