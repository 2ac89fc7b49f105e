// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What stops two ends that have nothing under way is one exchange (docs/protocol.md): each says READY as it
 * closes its gate, which includes what a GATE says.
 */
#include "../../include/repath_peer.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static unsigned int sent(int type)
{
	unsigned int touched, delivered;

	fake_tap_set(&(struct fake_tap){ .type = type, .forget = true });
	move_away("mock0");
	fake_tap_get(&touched, &delivered);
	move_back("mock0");
	return touched;
}

int main(void)
{
	struct end e[2];
	int i;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 10; i++) {
		CHECK_EQ(sent(REPATH_MSG_GATE), 0);
		CHECK(sent(REPATH_MSG_READY) >= 2);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
