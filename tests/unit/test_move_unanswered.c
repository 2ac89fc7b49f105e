// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer has the question whether it can be moved, and does not answer: the check is refused, and
 * the next one does not wait for that answer.
 */
#include <string.h>

#include "../../include/repath_peer.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

int main(void)
{
	const char *why = "";
	struct end e[2];
	int ret;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_PREPARED, .slow_us = 40000000 });
	ret = fake_check("mock0", &why);
	CHECK(ret && ret != ETIMEDOUT && strstr(why, "does not answer"), "%d, %s", ret, why);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	move_away("mock0");
	move_back("mock0");
	CHECK_EQ(post_recv(&e[1], 1, 0, 8), 0);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 2, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[1], 1, IBV_WC_SUCCESS);
	expect(&e[0], 2, IBV_WC_SUCCESS);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
