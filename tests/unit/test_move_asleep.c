// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The peer's host is asleep, or cut off, for longer than a mover waits, which then goes on alone, or fails. When it is
 * there again it hears that: nobody is left behind until a lease ends.
 */
#include "check.h"
#include "clock_ahead.h"
#include "fake_module.h"
#include "mock.h"
#include "move_cycle.h"
#include "pair.h"
#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"

static struct end e[2];

static void goes(struct end *from, struct end *to)
{
	CHECK_EQ(post_recv(to, 7, 0, 64), 0);
	CHECK_EQ(post(from, to, IBV_WR_SEND, 8, IBV_SEND_SIGNALED, 4096, 16), 0);
	expect(to, 7, IBV_WC_SUCCESS);
	expect(from, 8, IBV_WC_SUCCESS);
}

/* As when its peer has vanished. */
static void fails(struct end *from, struct end *to)
{
	CHECK_EQ(post(from, to, IBV_WR_SEND, 20, IBV_SEND_SIGNALED, 4096, 16), 0);
	CHECK_EQ(post(from, to, IBV_WR_SEND, 21, IBV_SEND_SIGNALED, 4096, 16), 0);
	expect(from, 20, IBV_WC_RETRY_EXC_ERR);
	expect(from, 21, IBV_WC_WR_FLUSH_ERR);
}

static void end(void)
{
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* mock0 is being suspended, and @busy can not be drained; until a message of @type has been said. */
static void begin(struct end *busy, int type)
{
	unsigned int said = 0, delivered;
	const char *why = "";
	int ret;

	pair_open(e, &(struct pair_how){ 0 });
	mock_retry_ms(1000000);
	mock_stall(true);
	CHECK_EQ(post(busy, &e[busy == e], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 8), 0);
	ret = fake_check("mock0", &why);
	CHECK(!ret, "check: %d, %s", ret, why);
	fake_tap_set(&(struct fake_tap){ .type = type });
	fake_suspend_start("mock0");
	while (!said) {
		usleep(10000);
		fake_tap_get(&said, &delivered);
	}
	CHECK_EQ(fake_wait(REPATH_STAGE_GATE), 0);
	messages_are_lost(true);
}

/* ... and is given up, and the peer does not hear that. */
static void give_up(void)
{
	fake_abort_start();
	time_passes(0);
	time_passes(11);
	CHECK_EQ(fake_wait(REPATH_STAGE_ABORT), 0);
	/* For as long as a host may sleep. */
	time_passes(3000);
	time_passes(3000);
}

static void wake(void)
{
	messages_are_lost(false);
	time_passes(11);
	CHECK_EQ(fake_settled(), 0);
}

/* The peer has closed its gate, and is in RTS. */
static void gated(void)
{
	begin(&e[0], REPATH_MSG_GATE);
	give_up();
	mock_stall(false);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	wake();
	goes(&e[0], &e[1]);
	goes(&e[1], &e[0]);
	move_away("mock0");
	move_back("mock0");
	goes(&e[1], &e[0]);
	end();
}

/* It has left RTS, as both had stopped, and the mover does not know that. */
static void left(void)
{
	begin(&e[1], REPATH_MSG_READY);
	mock_stall(false);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	time_passes(0);
	give_up();
	wake();
	fails(&e[0], &e[1]);
	fails(&e[1], &e[0]);
	end();
}

/* The mover has begun anew when the peer hears of what is over. */
static void begun_anew(void)
{
	begin(&e[0], REPATH_MSG_GATE);
	give_up();
	mock_stall(false);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	messages_are_lost(false);
	move_away("mock0");
	time_passes(11);
	move_back("mock0");
	goes(&e[0], &e[1]);
	goes(&e[1], &e[0]);
	end();
}

/* The mover is back, and does not find its peer. */
static void resumed(void)
{
	unsigned int said = 0, delivered;

	pair_open(e, &(struct pair_how){ 0 });
	move_away("mock0");
	messages_are_lost(true);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
	fake_resume_start("mock0");
	CHECK_EQ(fake_wait(REPATH_STAGE_RECREATE), 0);
	fake_tap_set(&(struct fake_tap){ .type = REPATH_MSG_GONE });
	time_passes(0);
	/* It has keys to tell first, and waits as long for the answer to that. */
	while (!said) {
		time_passes(31);
		fake_tap_get(&said, &delivered);
	}
	CHECK_EQ(fake_wait(REPATH_STAGE_REPLAY), 0);
	fails(&e[0], &e[1]);
	messages_are_lost(false);
	CHECK_EQ(fake_settled(), 0);
	fails(&e[1], &e[0]);
	end();
}

int main(void)
{
	alarm(HANGS);
	gated();
	left();
	begun_anew();
	resumed();
	return 0;
}
