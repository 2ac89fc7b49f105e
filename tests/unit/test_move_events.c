// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A completion queue that was armed and has told nothing since is armed behind a move, also where the
 * program read an event meanwhile that is older than that; one that has told is not.
 */
#include <poll.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static bool readable(struct end *e, int ms)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/* A message that end 0 is told of, and whose completion it polls. */
static void told(struct end e[2], uint64_t wr_id, unsigned int flags)
{
	CHECK_EQ(post_recv(&e[0], wr_id, 0, 64), 0);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, wr_id, flags, 0, 8), 0);
	CHECK(readable(&e[0], 2000), "message %lu", wr_id);
	expect(&e[0], wr_id, IBV_WC_SUCCESS);
}

/* A message that it is not told of. */
static void untold(struct end e[2], uint64_t wr_id)
{
	CHECK_EQ(post_recv(&e[0], wr_id, 0, 64), 0);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_SEND, wr_id, 0, 0, 8), 0);
	expect(&e[0], wr_id, IBV_WC_SUCCESS);
	CHECK(!readable(&e[0], 20), "message %lu", wr_id);
}

static void cycle(const char *dev)
{
	move_away(dev);
	move_back(dev);
}

/* @dev: mock0, whose end is watched, or mock1, its peer */
static void go(const char *dev)
{
	uint64_t id = 0;
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ .events = true });

	/* Read before the move, during it, and behind it; the second and third time as software event. */
	for (i = 0; i < 3; i++) {
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
		told(e, ++id, 0);
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
		if (i == 0)
			take_event(&e[0]);
		move_away(dev);
		if (i == 1)
			take_event(&e[0]);
		move_back(dev);
		if (i == 2)
			take_event(&e[0]);
		CHECK(!readable(&e[0], 20));
		told(e, ++id, 0);
		take_event(&e[0]);
		untold(e, ++id);
	}

	/* Three events, each older than the arming behind it: the last one is still owed. */
	for (i = 0; i < 3; i++) {
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
		told(e, ++id, 0);
	}
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
	while (readable(&e[0], 0))
		take_event(&e[0]);
	cycle(dev);
	told(e, ++id, 0);
	take_event(&e[0]);

	/* What has told is not armed, and tells nothing behind the move either. */
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
	told(e, ++id, 0);
	take_event(&e[0]);
	cycle(dev);
	untold(e, ++id);

	/* One for all is not made one for solicited completions by arming it for those. */
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 1), 0);
	cycle(dev);
	told(e, ++id, 0);
	take_event(&e[0]);
	cycle(dev);

	/* For those alone: it tells of no others. */
	while (readable(&e[0], 0))
		take_event(&e[0]);
	pair_close(e);
	pair_open(e, &(struct pair_how){ .events = true });
	CHECK_EQ(ibv_req_notify_cq(e[0].cq, 1), 0);
	cycle(dev);
	untold(e, ++id);
	told(e, ++id, IBV_SEND_SOLICITED);
	take_event(&e[0]);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Completions in error are for who waits for solicited ones, too; also where no device has made them. */
static void failed(bool armed_away)
{
	const char *why = "";
	struct end e[2];

	pair_open(e, &(struct pair_how){ .events = true });
	CHECK_EQ(post_recv(&e[0], 1, 0, 64), 0);
	if (!armed_away)
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 1), 0);
	move_away("mock0");
	if (armed_away)
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 1), 0);
	CHECK(!readable(&e[0], 0));
	fake_gone("mock0");
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0" }), 0);
	CHECK_EQ(fake_resume("mock0", &why), 0);
	CHECK(readable(&e[0], 2000));
	take_event(&e[0]);
	expect(&e[0], 1, IBV_WC_WR_FLUSH_ERR);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * A request that fails is an event for those, too, who wait for solicited ones only, also where the shim finds its key to
 * be nobody's. @peer: it is the peer's, which has moved; @late: armed when the request is on its way
 */
static void refused(bool peer, bool late)
{
	struct ibv_mr wrong = { .lkey = 0xdead00, .rkey = 0xdead00 }, *mr;
	struct end e[2];

	pair_open(e, &(struct pair_how){ .events = true });
	cycle(peer ? "mock1" : "mock0");
	mr = e[peer].mr;
	e[peer].mr = &wrong;
	if (!late)
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 1), 0);
	mock_stall(true);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 7, IBV_SEND_SIGNALED, 0, 8), 0);
	if (late)
		CHECK_EQ(ibv_req_notify_cq(e[0].cq, 1), 0);
	mock_stall(false);
	CHECK(readable(&e[0], 2000));
	take_event(&e[0]);
	expect(&e[0], 7, peer ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
	e[peer].mr = mr;
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	int i;

	alarm(HANGS);
	failed(false);
	failed(true);
	for (i = 0; i < 4; i++)
		refused(i % 2, i / 2);
	go("mock0");
	go("mock1");
	return 0;
}
