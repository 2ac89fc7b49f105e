// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What hosts are told of changed paths: sm/method.c, whose notices are taken down here. */
#include <string.h>

#include "check.h"
#include "method.h"
#include "plugin.h"
#include "repath_sm.h"
#include "signal.h"

#define LID	8

static osm_opensm_t osm;
static struct rsm rsm = { .osm = &osm };
static struct rsm_notice notices[8];
static unsigned int n_notices;
static bool nobody;

bool rsm_signal_port(struct rsm *r, uint16_t lid, const struct rsm_notice *notice)
{
	(void)r;
	CHECK(lid == LID && n_notices < 8);
	notices[n_notices++] = *notice;
	return !nobody;
}

unsigned int rsm_signal_all(struct rsm *r, const struct rsm_notice *notice)
{
	(void)r;
	(void)notice;
	CHECK(!"all are told");
	return 0;
}

/* Two paths of one port. */
static bool tell(enum rsm_method method, uint16_t trap, uint8_t n_lids, bool own_sl)
{
	struct rsm_change found[] = { { 20, RSM_ATTR(4, 3), 2 }, { 21, RSM_NO_PATH, 0 } };
	struct rsm_changed_end end = {
		.lid = LID, .n_lids = n_lids, .own_sl = own_sl, .n = 2, .n_kept = 2, .changes = found,
	};
	struct rsm_changes changes = { .ends = &end, .n_ends = 1, .n = 2, .n_paths = 100 };

	rsm.opt.method = method;
	rsm.opt.unpath = -1;
	n_notices = 0;
	return rsm_method_tell(&rsm, trap, &changes);
}

int main(void)
{
	const enum rsm_method methods[] = { RSM_AUTO, RSM_REPATH_ONLY };
	const uint64_t record = REPATH_SM_MASK_SL | REPATH_SM_MASK_MTU | REPATH_SM_MASK_RATE |
				REPATH_SM_MASK_LIFE | REPATH_SM_MASK_DLID;

	for (int i = 0; i < 2; i++) {
		tell(methods[i], REPATH_SM_REPATH, 1, false);
		CHECK_EQ(n_notices, i ? 2 : 1);
		CHECK_EQ(notices[0].mask, record | REPATH_SM_MASK_SLID);
		CHECK(notices[0].path.slid == cl_hton16(LID) && notices[0].path.dlid == cl_hton16(20));
		CHECK(cl_ntoh16(notices[0].path.qos_class_sl) == 2);
		/* The same from all of its LIDs. */
		tell(methods[i], REPATH_SM_REPATH, 4, false);
		CHECK_EQ(n_notices, i ? 2 : 1);
		CHECK(notices[0].mask == record && !notices[0].path.slid);
		/* Before it is so: of the one that will be there is something to prepare. */
		CHECK(!(notices[0].flags & REPATH_SM_AHEAD));
		CHECK(tell(methods[i], REPATH_SM_UNPATH, 1, false) && n_notices == 2);
		CHECK(notices[0].flags & REPATH_SM_AHEAD && !(notices[1].flags & REPATH_SM_AHEAD));
		nobody = true;
		CHECK(!tell(methods[i], REPATH_SM_UNPATH, 1, false));
		nobody = false;
		/* Or from that one only: it asks for them. */
		for (uint16_t trap = REPATH_SM_UNPATH; trap <= REPATH_SM_REPATH; trap++) {
			CHECK(!tell(methods[i], trap, 4, true));
			CHECK(n_notices == 1 && !notices[0].mask && notices[0].trap == trap);
			CHECK(!notices[0].path.qos_class_sl && !notices[0].path.dlid);
		}
	}
	CHECK(!tell(RSM_AFFECTED, REPATH_SM_UNPATH, 1, false) && n_notices == 1 && !notices[0].mask);
	puts("ok");
	return 0;
}
