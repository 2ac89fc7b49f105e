/* SPDX-License-Identifier: GPL-2.0 */
/* Paths of a port as the subnet manager has told them. */
#ifndef REPATH_LEARNT_H
#define REPATH_LEARNT_H

#include <linux/string.h>
#include <linux/types.h>
#include <linux/xarray.h>

#define REPATH_LEARNT_MAX 65536	/* paths of one port; those above are not kept */

/**
 * struct repath_learnt - one path
 * @rcu: readers
 * @ns: when it was told: CLOCK_BOOTTIME
 * @changed_ns: when it was told to be another one than before; 0: never
 * @dgid: where it leads; all zero: not told
 * @slid: own LID
 * @dlid: where it leads
 * @pkey: 0: not told
 * @sl: service level
 * @mtu: enum ib_mtu; 0: not told
 * @rate: enum ib_rate; 0: not told
 * @source: enum repath_path_source
 * @unpath: it is about to break, and nothing else was told yet
 * @relayed: the hypervisor has told it
 * @shared: other GIDs than @dgid may have the DLID, too
 * @epoch: of who told an exception (REPATH_PATH_LANE): it ends with that
 * @lane: the newest number in @epoch of a notice that one begins or ends; 0: none
 */
struct repath_learnt {
	struct rcu_head rcu;
	u64 ns;
	u64 changed_ns;
	u8 dgid[16];
	u16 slid;
	u16 dlid;
	u16 pkey;
	u8 sl;
	u8 mtu;
	u8 rate;
	u8 source;
	bool unpath;
	bool relayed;
	bool shared;
	u32 epoch;
	u32 lane;
};

static inline bool repath_learnt_has_dgid(const struct repath_learnt *path)
{
	return memchr_inv(path->dgid, 0, sizeof(path->dgid));
}

/**
 * struct repath_learnts - the paths of a port
 * @paths: by SLID and DLID. Readers RCU; one writer
 * @n: entries
 */
struct repath_learnts {
	struct xarray paths;
	u32 n;
};

enum repath_learnt_change {
	REPATH_LEARNT_SAME,	/* but for its age and source */
	REPATH_LEARNT_NEW,
	REPATH_LEARNT_CHANGED,
	REPATH_LEARNT_ELSEWHERE,	/* the same, and the LID has got another GID */
	REPATH_LEARNT_NO_ROOM,
};

void repath_learnts_init(struct repath_learnts *paths);
enum repath_learnt_change repath_learnt_put(struct repath_learnts *paths,
					    const struct repath_learnt *path);
bool repath_learnt_find(struct repath_learnts *paths, u16 slid, u16 dlid,
			struct repath_learnt *found);
bool repath_learnt_next(struct repath_learnts *paths, unsigned long *index,
			struct repath_learnt *found);
void repath_learnt_drop(struct repath_learnts *paths, const struct repath_learnt *path);
void repath_learnts_clear(struct repath_learnts *paths);

#endif /* REPATH_LEARNT_H */
