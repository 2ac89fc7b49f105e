// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What hosts are told of changed paths: sm/method.c, whose notices are taken down here. */
#include <string.h>

#include "check.h"
#include "method.h"
#include "paths.h"
#include "plugin.h"
#include "repath_sm.h"
#include "signal.h"

#define LID	8
#define MOST	128

static osm_opensm_t osm;
static struct rsm rsm = { .osm = &osm };
static struct rsm_notice notices[MOST];
static uint16_t told[MOST];
static unsigned int n_notices;
static bool nobody;

bool rsm_signal_port(struct rsm *r, uint16_t lid, const struct rsm_notice *notice)
{
	(void)r;
	CHECK(n_notices < MOST);
	told[n_notices] = lid;
	notices[n_notices++] = *notice;
	return !nobody;
}

/* Paths back to the port; without there are none. */
static const struct way_back {
	uint8_t attr, n_lids;
	bool own_sl, is_news;
} *way_back;

const struct rsm_prd *rsm_paths_prd(const struct rsm *r)
{
	(void)r;
	return NULL;
}

bool rsm_prd_path(const struct rsm_prd *prd, uint16_t slid, uint16_t dlid, struct rsm_changed_end *end,
		  struct rsm_change *path)
{
	(void)prd;
	if (!way_back)
		return false;
	/* LID 21 is a second one of 20's port. */
	*end = (struct rsm_changed_end) {
		.lid = slid == 21 ? 20 : slid, .n_lids = way_back->n_lids, .own_sl = way_back->own_sl,
	};
	*path = (struct rsm_change) { .dlid = dlid, .attr = way_back->attr, .sl = 5 };
	return true;
}

bool rsm_prd_is_told(const struct rsm_prd *prd, uint16_t slid, uint16_t dlid)
{
	(void)prd;
	(void)slid;
	(void)dlid;
	return !way_back->is_news;
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
	struct rsm_change found[] = {
		{ .dlid = 20, .attr = RSM_ATTR(4, 3), .sl = 2 }, { .dlid = 21, .attr = RSM_NO_PATH },
	};
	struct rsm_changed_end end = {
		.lid = LID, .n_lids = n_lids, .own_sl = own_sl, .n = 2, .n_kept = 2, .changes = found,
	};
	struct rsm_changes changes = { .ends = &end, .n_ends = 1, .n = 2, .n_paths = 100 };

	rsm.opt.method = method;
	rsm.opt.unpath = -1;
	n_notices = 0;
	return rsm_method_tell(&rsm, trap, &changes);
}

/* A port that had LID 20 has 30, and another one 31, whose LID is a third one's now. */
static bool tell_other_lids(enum rsm_method method, uint16_t trap)
{
	struct rsm_change found[] = {
		{ .dlid = 30, .attr = RSM_ATTR(4, 3), .sl = 2, .was = 20, .guid = cl_hton64(0x1234) },
		{
			.dlid = 31, .attr = RSM_ATTR(4, 3), .sl = 2, .was = 21, .taken = true,
			.guid = cl_hton64(0x1235),
		},
	};
	struct rsm_changed_end end = { .lid = LID, .n_lids = 1, .n = 2, .n_kept = 2, .changes = found };
	struct rsm_changes changes = { .ends = &end, .n_ends = 1, .n = 2, .n_paths = 100 };

	rsm.opt.method = method;
	n_notices = 0;
	return rsm_method_tell(&rsm, trap, &changes);
}

static void other_lids(enum rsm_method method)
{
	const ib_gid_t gid = { .unicast = { cl_hton64(0xfe80ull << 48), cl_hton64(0x1234) } };

	osm.subn.opt.subnet_prefix = gid.unicast.prefix;
	/* They have them already when tables begin to change. */
	CHECK(!tell_other_lids(method, REPATH_SM_UNPATH) && !n_notices);
	CHECK(!tell_other_lids(method, REPATH_SM_REPATH));
	CHECK_EQ(n_notices, 2);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(notices[i].flags, REPATH_SM_MOVED);
		CHECK(notices[i].mask & REPATH_SM_MASK_DGID && notices[i].mask & REPATH_SM_MASK_DLID);
		CHECK(notices[i].path.dlid == cl_hton16(30 + i) && notices[i].mask & REPATH_SM_MASK_SL);
	}
	CHECK(!memcmp(notices[0].path.dgid, &gid, sizeof(gid)));
	/* Who goes there by LID alone may mean either of two. */
	CHECK(notices[0].old_dlid == 20 && !notices[1].old_dlid);
}

/* More ports than there are notices for one host have other LIDs: it is to ask, and hears of none alone. */
static void too_many(enum rsm_method method)
{
	struct rsm_change found[] = {
		{ .dlid = 30, .attr = RSM_ATTR(4, 3), .was = 20, .guid = cl_hton64(0x1234) },
		{ .dlid = 31, .attr = RSM_ATTR(4, 3), .was = 21, .guid = cl_hton64(0x1235) },
	};
	struct rsm_changed_end end = { .lid = LID, .n_lids = 1, .n = 3, .n_kept = 2, .changes = found };
	struct rsm_changes changes = { .ends = &end, .n_ends = 1, .n = 3, .n_paths = 100 };

	rsm.opt.method = method;
	n_notices = 0;
	rsm_method_tell(&rsm, REPATH_SM_REPATH, &changes);
	CHECK(n_notices == 1 && !notices[0].mask && notices[0].flags == REPATH_SM_ROUTE);
}

/* Which of several LIDs has the place of which is not in a notice of a GID. */
static void several(enum rsm_method method)
{
	struct rsm_change found[] = {
		{ .dlid = 40, .attr = RSM_ATTR(4, 3), .was = 20, .several = true, .guid = cl_hton64(0x1234) },
		{ .dlid = 41, .attr = RSM_ATTR(4, 3), .was = 21, .several = true, .guid = cl_hton64(0x1234) },
	};
	struct rsm_changed_end end = { .lid = LID, .n_lids = 2, .n = 2, .n_kept = 2, .changes = found };
	struct rsm_changes changes = { .ends = &end, .n_ends = 1, .n = 2, .n_paths = 100 };

	rsm.opt.method = method;
	n_notices = 0;
	rsm_method_tell(&rsm, REPATH_SM_REPATH, &changes);
	CHECK(n_notices == 1 && !notices[0].mask && notices[0].flags == REPATH_SM_ROUTE);
}

/* Whether a host is told each of so many changed paths, in a subnet of so many LIDs of hosts and switches. */
static bool told_each(enum rsm_method method, uint32_t n, uint8_t n_lids, uint32_t of_hosts, size_t switches)
{
	struct rsm_change found[MOST] = { { 0 } };
	struct rsm_changed_end end = { .lid = LID, .n_lids = n_lids, .n = n, .n_kept = n, .changes = found };
	struct rsm_changes changes = { .ends = &end, .n_ends = 1, .n = n, .n_paths = of_hosts };

	for (uint32_t i = 0; i < n; i++)
		found[i] = (struct rsm_change) { .dlid = 100 + i, .attr = RSM_ATTR(4, 3) };
	osm.subn.sw_guid_tbl.count = switches;
	rsm.opt.method = method;
	n_notices = 0;
	rsm_method_tell(&rsm, REPATH_SM_REPATH, &changes);
	osm.subn.sw_guid_tbl.count = 0;
	CHECK(n_notices == n || n_notices == 1);
	CHECK((n_notices == n) == !!notices[0].mask);
	return n_notices == n;
}

/* As many as cost no more MADs than the answer to a question for all: packets of records, and their ACKs. */
static void cheaper(void)
{
	const struct {
		uint32_t most;
		uint8_t n_lids;
		uint32_t of_hosts;
		size_t switches;
	} is[] = {
		{ 4, 1, 6, 6 },		/* 2 + 1 + 4 + 2 of them */
		{ 14, 1, 36, 36 },	/* 2 + 1 + 24 + 2 */
		{ 8, 1, 36, 0 },	/* 2 + 1 + 12 + 2 */
		{ 49, 4, 36, 36 },	/* 2 + 1 + 93 + 3: from each of its LIDs */
		{ 36, 1, 206, 0 },	/* 2 + 1 + 66 + 3 */
		{ 67, 1, 403, 0 },	/* 2 + 1 + 129 + 3: the last is one of each 64th */
	};

	for (size_t i = 0; i < sizeof(is) / sizeof(*is); i++) {
		CHECK(told_each(RSM_AUTO, is[i].most, is[i].n_lids, is[i].of_hosts, is[i].switches));
		CHECK(!told_each(RSM_AUTO, is[i].most + 1, is[i].n_lids, is[i].of_hosts, is[i].switches));
		/* The paper's does not ask. */
		CHECK(told_each(RSM_REPATH_ONLY, is[i].most + 1, is[i].n_lids, is[i].of_hosts, is[i].switches));
		CHECK(!told_each(RSM_AFFECTED, is[i].most, is[i].n_lids, is[i].of_hosts, is[i].switches));
	}
}

/* One path of LID 8's to @to has changed, and perhaps the one back: how many notices. */
static unsigned int one_way(enum rsm_method method, uint16_t trap, uint16_t to, bool and_back)
{
	struct rsm_change there = { .dlid = to, .attr = RSM_ATTR(4, 3), .sl = 2 };
	struct rsm_change back = { .dlid = LID, .attr = RSM_ATTR(4, 3), .sl = 6 };
	struct rsm_changed_end ends[] = {
		{ .lid = LID, .n_lids = 1, .n = 1, .n_kept = 1, .changes = &there },
		{ .lid = 20, .n_lids = way_back ? way_back->n_lids : 1, .n = 1, .n_kept = 1, .changes = &back },
	};
	struct rsm_changes changes = { .ends = ends, .n_ends = 1 + and_back, .n = 1 + and_back, .n_paths = 100 };

	rsm.opt.method = method;
	n_notices = 0;
	CHECK_EQ(rsm_method_tell(&rsm, trap, &changes), trap == REPATH_SM_UNPATH && method != RSM_AFFECTED);
	CHECK_EQ(told[0], LID);
	return n_notices;
}

/* All have another path to one, who hears of no more ways back than auto_records; and of a port with two LIDs of both. */
static void many(void)
{
	struct rsm_change there = { .dlid = 20, .attr = RSM_ATTR(4, 3), .sl = 2 };
	struct rsm_changed_end ends[5];
	struct rsm_changes changes = { .ends = ends, .n_ends = 5, .n = 5, .n_paths = 100 };

	for (int i = 0; i < 5; i++)
		ends[i] = (struct rsm_changed_end) { .lid = 100 + 2 * i, .n_lids = 2, .n = 1, .n_kept = 1, .changes = &there };
	rsm.opt.method = RSM_AUTO;
	rsm.opt.auto_records = 3;
	n_notices = 0;
	rsm_method_tell(&rsm, REPATH_SM_REPATH, &changes);
	CHECK_EQ(n_notices, 5 + 3);
	for (int i = 0; i < 3; i++)
		CHECK(told[5 + i] == 20 && notices[5 + i].path.dlid == cl_hton16(100 + i));
}

/* Who is at the other end hears of the way back as it is, with what is ours only, and once. */
static void both_ends(void)
{
	static const struct way_back plain = { RSM_ATTR(4, 3), 1, false, false },
				     several = { RSM_ATTR(4, 3), 2, false, false },
				     own = { RSM_ATTR(4, 3), 2, true, false }, news = { RSM_ATTR(4, 3), 1, false, true };

	way_back = &plain;
	rsm.opt.both_ends = 1;
	rsm.opt.auto_records = 2;
	CHECK_EQ(one_way(RSM_AUTO, REPATH_SM_UNPATH, 20, false), 1);
	CHECK_EQ(one_way(RSM_AUTO, REPATH_SM_REPATH, 20, false), 2);
	CHECK_EQ(told[1], 20);
	CHECK(notices[1].trap == REPATH_SM_REPATH && notices[1].flags == REPATH_SM_WAY_BACK);
	CHECK(notices[1].path.slid == cl_hton16(20) && notices[1].path.dlid == cl_hton16(LID) &&
	      cl_ntoh16(notices[1].path.qos_class_sl) == 5);
	/* Its own has changed, too. */
	CHECK_EQ(one_way(RSM_AUTO, REPATH_SM_REPATH, 20, true), 2);
	CHECK(told[1] == 20 && cl_ntoh16(notices[1].path.qos_class_sl) == 6 && notices[1].flags == REPATH_SM_ROUTE);
	CHECK_EQ(one_way(RSM_REPATH_ONLY, REPATH_SM_REPATH, 20, false), 1);
	CHECK_EQ(one_way(RSM_AFFECTED, REPATH_SM_REPATH, 20, false), 1);
	/* Of the second LID of a port with several nothing is said: paths from any of them are the same. */
	way_back = &several;
	CHECK_EQ(one_way(RSM_AUTO, REPATH_SM_REPATH, 21, false), 1);
	CHECK_EQ(one_way(RSM_AUTO, REPATH_SM_REPATH, 20, false), 2);
	CHECK(told[1] == 20 && !(notices[1].mask & REPATH_SM_MASK_SLID));
	many();
	way_back = &own;
	CHECK_EQ(one_way(RSM_AUTO, REPATH_SM_REPATH, 20, false), 1);
	way_back = NULL;
	CHECK_EQ(one_way(RSM_AUTO, REPATH_SM_REPATH, 20, false), 1);
	/* Of another reason: if it is about to be another, that is told in its time. */
	way_back = &news;
	n_notices = 0;
	rsm.opt.method = RSM_AUTO;
	rsm_method_way_back(&rsm, 20, LID);
	CHECK_EQ(n_notices, 0);
	way_back = &plain;
	rsm_method_way_back(&rsm, 20, LID);
	CHECK(n_notices == 1 && told[0] == 20 && notices[0].trap == REPATH_SM_REPATH && notices[0].flags == REPATH_SM_WAY_BACK);
	rsm.opt.both_ends = 0;
	rsm_method_way_back(&rsm, 20, LID);
	CHECK_EQ(n_notices, 1);
	CHECK_EQ(one_way(RSM_AUTO, REPATH_SM_REPATH, 20, false), 1);
	way_back = NULL;
}

int main(void)
{
	const enum rsm_method methods[] = { RSM_AUTO, RSM_REPATH_ONLY };
	const uint64_t record = REPATH_SM_MASK_SL | REPATH_SM_MASK_MTU | REPATH_SM_MASK_RATE |
				REPATH_SM_MASK_LIFE | REPATH_SM_MASK_DLID;

	for (int i = 0; i < 2; i++) {
		other_lids(methods[i]);
		too_many(methods[i]);
		several(methods[i]);
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
	CHECK(!tell_other_lids(RSM_AFFECTED, REPATH_SM_REPATH) && n_notices == 1 && !notices[0].mask);
	cheaper();
	both_ends();
	puts("ok");
	return 0;
}
