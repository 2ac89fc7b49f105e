// SPDX-License-Identifier: GPL-2.0
/* Which queue pairs are on a path: the indexes by destination. */
#include <linux/jhash.h>

#include "device.h"
#include "index.h"
#include "track.h"

/* Writers and readers hold repath_track_lock. */
static struct repath_index by_lid, by_gid, by_alt;

static u32 lid_hash(const struct repath_device *dev, u32 port, u32 dlid)
{
	return jhash_3words(dev->index, port, dlid, 0);
}

static u32 gid_hash(const struct repath_device *dev, u32 port, const union ib_gid *dgid)
{
	return jhash2((const u32 *)dgid->raw, sizeof(*dgid) / sizeof(u32), dev->index ^ port << 24);
}

static u32 hash_of_lid_node(const struct hlist_node *node)
{
	const struct repath_qp *rqp = hlist_entry(node, struct repath_qp, lid_node);

	return lid_hash(rqp->dev, repath_path_port(&rqp->path), rqp->path.dlid);
}

static u32 hash_of_gid_node(const struct hlist_node *node)
{
	const struct repath_qp *rqp = hlist_entry(node, struct repath_qp, gid_node);

	return gid_hash(rqp->dev, repath_path_port(&rqp->path), &rqp->path.dgid);
}

static u32 hash_of_alt_node(const struct hlist_node *node)
{
	const struct repath_qp *rqp = hlist_entry(node, struct repath_qp, alt_node);

	return lid_hash(rqp->dev, rqp->alt.port, rqp->alt.dlid);
}

/**
 * repath_path_unlink_locked - a queue pair is on no path
 * @rqp: queue pair, whose paths are still those that it was linked with
 */
void repath_path_unlink_locked(struct repath_qp *rqp)
{
	lockdep_assert_held(&repath_track_lock);
	if (!repath_path_is_known(&rqp->path))
		return;
	repath_index_del(&by_lid, &rqp->lid_node);
	repath_index_del(&by_gid, &rqp->gid_node);
	repath_index_del(&by_alt, &rqp->alt_node);
}

/**
 * repath_path_link_locked - a queue pair is on the paths that it has now, or has just left
 * @rqp: queue pair, not linked
 */
void repath_path_link_locked(struct repath_qp *rqp)
{
	const struct repath_path *path = &rqp->path;

	lockdep_assert_held(&repath_track_lock);
	if (rqp->gone || !repath_path_is_known(path))
		return;
	if (path->dlid)
		repath_index_add(&by_lid, &rqp->lid_node);
	if (path->has_grh)
		repath_index_add(&by_gid, &rqp->gid_node);
	if (rqp->alt.dlid)
		repath_index_add(&by_alt, &rqp->alt_node);
}

static bool is_on_lid(const struct repath_qp *rqp, const struct repath_device *dev, u32 port,
		      u32 dlid)
{
	return rqp->dev == dev && repath_path_port(&rqp->path) == port && rqp->path.dlid == dlid;
}

static void on_lid_locked(struct repath_device *dev, u32 port, u32 dlid,
			  void (*fn)(struct repath_qp *rqp, void *arg), void *arg)
{
	u32 hash = lid_hash(dev, port, dlid);
	struct repath_qp *rqp;

	hlist_for_each_entry(rqp, repath_index_chain(&by_lid, hash), lid_node)
		if (is_on_lid(rqp, dev, port, dlid))
			fn(rqp, arg);
	/* Both paths may lead there: once is enough. */
	hlist_for_each_entry(rqp, repath_index_chain(&by_alt, hash), alt_node)
		if (rqp->dev == dev && rqp->alt.port == port && rqp->alt.dlid == dlid &&
		    !is_on_lid(rqp, dev, port, dlid))
			fn(rqp, arg);
}

/**
 * repath_qp_on_path_locked - walk the queue pairs of one path, and those that were on it when they were RESET last
 * @dev: device
 * @port: own port
 * @dlid: by DLID, of the path in use or the alternate one; 0: by @dgid
 * @dgid: see @dlid; of the path in use
 * @fn: told each of them; neither sleeps nor takes the track lock
 * @arg: for @fn
 *
 * Cost: the queue pairs on the path, not all there are.
 */
void repath_qp_on_path_locked(struct repath_device *dev, u32 port, u32 dlid,
			      const union ib_gid *dgid,
			      void (*fn)(struct repath_qp *rqp, void *arg), void *arg)
{
	struct repath_qp *rqp;

	lockdep_assert_held(&repath_track_lock);
	if (dlid)
		return on_lid_locked(dev, port, dlid, fn, arg);
	hlist_for_each_entry(rqp, repath_index_chain(&by_gid, gid_hash(dev, port, dgid)), gid_node)
		if (rqp->dev == dev && repath_path_port(&rqp->path) == port &&
		    !memcmp(&rqp->path.dgid, dgid, sizeof(*dgid)))
			fn(rqp, arg);
}

/**
 * repath_track_init - make the indexes, and the place for what is in them
 */
int repath_track_init(void)
{
	int err;

	err = repath_track_qp_cache_init();
	if (err)
		return err;
	err = repath_index_init(&by_lid, &repath_track_lock, hash_of_lid_node);
	if (err)
		goto err_cache;
	err = repath_index_init(&by_gid, &repath_track_lock, hash_of_gid_node);
	if (err)
		goto err_lid;
	err = repath_index_init(&by_alt, &repath_track_lock, hash_of_alt_node);
	if (err)
		goto err_gid;
	return 0;

err_gid:
	repath_index_exit(&by_gid);
err_lid:
	repath_index_exit(&by_lid);
err_cache:
	repath_track_qp_cache_exit();
	return err;
}

/**
 * repath_track_exit - free the indexes; no device is left, so no queue pair is
 */
void repath_track_exit(void)
{
	repath_index_exit(&by_alt);
	repath_index_exit(&by_gid);
	repath_index_exit(&by_lid);
	repath_track_qp_cache_exit();
}
