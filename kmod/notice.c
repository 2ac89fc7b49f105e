// SPDX-License-Identifier: GPL-2.0
/* Reports of the subnet manager: reading what came over the wire. include/repath_sm.h. */
#include <linux/build_bug.h>
#include <linux/string.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>
#include <repath_sm.h>

#include "notice.h"

static_assert(sizeof(struct repath_sm_details) == 54);
static_assert(offsetof(struct repath_sm_report, issuer_gid) == 64);
static_assert(offsetof(struct repath_sm_report, path) == 80);
static_assert(sizeof(struct repath_sm_report) <= IB_MGMT_SA_DATA);

#define MULTICAST_LID	0xc000
#define NUMBERS_APART	(1 << 20)

/**
 * repath_notice_is_behind - was a notice said before another one?
 * @number: of the notice
 * @newest: of the other one, to the same subscriber
 *
 * Who subscribes anew is told by numbers that are far from those before.
 */
bool repath_notice_is_behind(u32 number, u32 newest)
{
	s32 behind = newest - number;

	return behind > 0 && behind < NUMBERS_APART;
}

/**
 * repath_notice_is_report - is it a Report at all, whatever it reports?
 * @mad: as it has come
 *
 * Only then it may be answered: an answer is never answered.
 */
bool repath_notice_is_report(const struct ib_mad *mad)
{
	const struct ib_mad_hdr *hdr = &mad->mad_hdr;

	return hdr->base_version == IB_MGMT_BASE_VERSION &&
	       hdr->mgmt_class == IB_MGMT_CLASS_SUBN_ADM &&
	       hdr->method == IB_MGMT_METHOD_REPORT &&
	       hdr->attr_id == cpu_to_be16(IB_SA_ATTR_NOTICE);
}

static bool is_unicast(u16 lid)
{
	return lid && lid < MULTICAST_LID;
}

/* What the mask has is there and can be. */
static bool path_ok(const struct repath_sm_path *path, u64 mask)
{
	u8 mtu = path->mtu & 0x3f;

	if (mask & REPATH_SM_MASK_DLID && !is_unicast(be16_to_cpu(path->dlid)))
		return false;
	if (mask & REPATH_SM_MASK_SLID && !is_unicast(be16_to_cpu(path->slid)))
		return false;
	if (mask & REPATH_SM_MASK_MTU && (mtu < IB_MTU_256 || mtu > IB_MTU_4096))
		return false;
	if (mask & REPATH_SM_MASK_RATE && ib_rate_to_mbps(path->rate & 0x3f) <= 0)
		return false;
	return true;
}

/**
 * repath_notice_parse - read a Report
 * @mad: a Report; 256 bytes
 * @notice: result
 *
 * Return: 0; -ENOMSG: of another trap; -EPROTO: of another version of the sender;
 * -EBADMSG: it makes no sense.
 */
int repath_notice_parse(const struct ib_mad *mad, struct repath_notice *notice)
{
	const struct repath_sm_report *report = (void *)((const struct ib_sa_mad *)mad)->data;
	const struct repath_sm_details *details = &report->details;
	const struct repath_sm_path *path = &report->path;
	u16 trap = be16_to_cpu(report->trap);

	/* The type may be another one; that it is a generic one must be. */
	if (!(report->type & 0x80) || (trap != REPATH_SM_UNPATH && trap != REPATH_SM_REPATH))
		return -ENOMSG;
	if (details->version != REPATH_SM_VERSION)
		return -EPROTO;
	memset(notice, 0, sizeof(*notice));
	notice->repath = trap == REPATH_SM_REPATH;
	notice->mask = be64_to_cpu(details->comp_mask);
	notice->kind = details->flags & REPATH_SM_KIND;
	notice->wait = details->flags & REPATH_SM_WAIT_FOR_REPATH;
	notice->ahead = details->flags & REPATH_SM_AHEAD;
	notice->epoch = be32_to_cpu(details->sm_epoch);
	notice->serial = be32_to_cpu(details->serial);
	notice->number = be32_to_cpu(details->number);
	if (!path_ok(path, notice->mask))
		return -EBADMSG;
	if (notice->kind == REPATH_SM_MOVED) {
		notice->old_dlid = be16_to_cpu(details->old_dlid);
		if (!notice->repath || !(notice->mask & REPATH_SM_MASK_DGID) ||
		    !(notice->mask & REPATH_SM_MASK_DLID) || notice->old_dlid >= MULTICAST_LID)
			return -EBADMSG;
	}

	if (notice->mask & REPATH_SM_MASK_DGID)
		memcpy(notice->dgid, path->dgid, sizeof(notice->dgid));
	if (notice->mask & REPATH_SM_MASK_DLID)
		notice->dlid = be16_to_cpu(path->dlid);
	if (notice->mask & REPATH_SM_MASK_SLID)
		notice->slid = be16_to_cpu(path->slid);
	if (notice->mask & REPATH_SM_MASK_PKEY)
		notice->pkey = be16_to_cpu(path->pkey);
	if (notice->mask & REPATH_SM_MASK_SL)
		notice->sl = be16_to_cpu(path->qos_class_sl) & 0xf;
	if (notice->mask & REPATH_SM_MASK_MTU)
		notice->mtu = path->mtu & 0x3f;
	if (notice->mask & REPATH_SM_MASK_RATE)
		notice->rate = path->rate & 0x3f;
	return 0;
}

static bool was_heard(const struct repath_notice_ring *ring, const struct repath_notice *notice)
{
	u32 i, n = min_t(u32, ring->n[notice->repath], REPATH_NOTICE_RING);

	for (i = 0; i < n; i++)
		if (ring->heard[notice->repath][i] == notice->number)
			return true;
	return false;
}

/* One that was lost and repeated comes behind those that were said later. */
static bool is_late_move(struct repath_notice_ring *ring, const struct repath_notice *notice)
{
	if (ring->any_moved && repath_notice_is_behind(notice->number, ring->moved))
		return true;
	ring->moved = notice->number;
	ring->any_moved = true;
	return false;
}

/**
 * repath_notice_age - is a notice news?
 * @ring: what was heard; it remembers this one
 * @notice: notice
 */
enum repath_notice_age repath_notice_age(struct repath_notice_ring *ring,
					 const struct repath_notice *notice)
{
	u32 *n = &ring->n[notice->repath];

	if (ring->epoch != notice->epoch || !ring->any) {
		memset(ring, 0, sizeof(*ring));
		ring->epoch = notice->epoch;
		ring->serial = notice->serial;
		ring->any = true;
	}
	if (was_heard(ring, notice))
		return REPATH_NOTICE_AGAIN;
	ring->heard[notice->repath][(*n)++ % REPATH_NOTICE_RING] = notice->number;
	/* It wraps, so n would begin anew: what is full stays full. */
	if (!*n)
		*n = REPATH_NOTICE_RING;
	if (notice->kind == REPATH_SM_MOVED &&
	    (is_late_move(ring, notice) || (s32)(notice->serial - ring->serial) < 0))
		return REPATH_NOTICE_LATE;
	if (notice->kind != REPATH_SM_ROUTE)
		return REPATH_NOTICE_NEW;
	if ((s32)(notice->serial - ring->serial) < 0)
		return REPATH_NOTICE_LATE;
	ring->serial = notice->serial;
	/*
	 * RePath is said when the tables have been changed, UnPath before. One that comes after any
	 * RePath of its routing was lost and repeated: nothing is about to break any more.
	 */
	if (!notice->repath && ring->any_repath && ring->repathed == notice->serial)
		return REPATH_NOTICE_LATE;
	if (notice->repath) {
		ring->repathed = notice->serial;
		ring->any_repath = true;
	}
	return REPATH_NOTICE_NEW;
}
