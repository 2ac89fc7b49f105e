// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* More connections to one peer than a message holds: the check asks about each. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define LINKS 1030	/* REPATH_CONNS_MAX is 1024 */

int main(void)
{
	static struct end link[LINKS][2];
	struct pair_how how = { 0 };
	const char *why = "";
	int i, k, ret;

	alarm(HANGS);
	pair_open(link[0], &how);
	for (i = 1; i < LINKS; i++) {
		for (k = 0; k < 2; k++) {
			link[i][k] = link[0][k];
			link[i][k].qp = end_create_qp(&link[i][k], &how);
		}
		pair_connect(link[i]);
	}
	ret = fake_check("mock0", &why);
	CHECK(!ret, "%d, %s", ret, why);
	CHECK_EQ(fake_abort(), 0);
	/* One is in the way, the last: it can not be suspended with. */
	qp_to(link[LINKS - 1][1].qp, IBV_QPS_ERR);
	ret = fake_check("mock0", &why);
	CHECK(ret == EOPNOTSUPP && strstr(why, "peer"), "%d, %s", ret, why);
	CHECK_EQ(fake_abort(), 0);
	for (i = 1; i < LINKS; i++)
		for (k = 0; k < 2; k++)
			CHECK_EQ(ibv_destroy_qp(link[i][k].qp), 0);
	pair_close(link[0]);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
