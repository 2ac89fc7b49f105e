// SPDX-License-Identifier: GPL-2.0
/* What a move does to a connection: its ends change, and messages say how far it is. */
#include <linux/module.h>
#include <linux/workqueue.h>
#include <repath_peer.h>

#include "conn.h"
#include "device.h"
#include "known.h"
#include "peer.h"
#include "proc.h"
#include "range.h"
#include "track.h"
#include "watch.h"

#define PEER_LEASE_MAX_S	(7 * 24 * 3600)	/* jiffies count on, also on 32 bits */

static unsigned int peer_lease_s = 3600;
REPATH_RANGE_PARAM(peer_lease_s, 0, PEER_LEASE_MAX_S, 0644);
MODULE_PARM_DESC(peer_lease_s,
		 "How long queue pairs stay suspended for a peer that does not come back, in s (3600; 0: for ever; at most 604800)");

#define LEASE_PERIOD (5 * HZ)

static struct delayed_work lease_work;

/**
 * repath_conn_rebind - the connection continues on another queue pair
 * @conn: connection
 * @rqp: queue pair of the same process
 * @port: port that it uses
 * @sgid_index: GID that it uses
 */
void repath_conn_rebind(struct repath_conn *conn, struct repath_qp *rqp, u32 port, u32 sgid_index)
{
	struct repath_conn *other;

	lockdep_assert_held(&repath_conn_mutex);
	if (conn->rqp != rqp) {
		/* The number belonged to a queue pair whose end was not heard of yet: this one's, too. */
		other = repath_conn_by_qp(rqp->dev, rqp->qpn);
		if (other && other->rqp == rqp)
			repath_conn_destroy(other);	/* made when it reached RTR without INFO */
		else if (other && other != conn)
			repath_conn_lost_qp(other);
		repath_conn_bind(conn, rqp);
		/* What the peer was connected to is no more. */
		conn->connected_rx = false;
		/* Another port may be in another network. */
		conn->addr.has_dmac = false;
	}
	conn->addr.port = port;
	conn->addr.sgid_index = sgid_index;
}

/* Others may be asked for by the GID, or by the LID alone, whatever this connection goes by. */
static struct repath_addr whole_address(const struct repath_addr *at, const union ib_gid *said)
{
	struct repath_addr addr = *at;

	if (!repath_addr_has_gid(&addr))
		addr.dgid = *said;
	return addr;
}

/**
 * repath_conn_readdress - the other end has moved
 * @conn: connection
 * @gid: GID of its port
 * @lid: LID of its port, 0 on RoCE
 * @qpn: its queue pair
 * @told: by an administrator; else it has said so itself
 * @last: what the last one of these said of its process, zero at first: a thousand connections of two processes say the same
 */
void repath_conn_readdress(struct repath_conn *conn, const u8 gid[16], u32 lid, u32 qpn, bool told,
			   struct repath_conn_moved *last)
{
	const struct repath_addr before = whole_address(&conn->addr, &conn->said_gid);
	static const union ib_gid none;
	struct repath_addr from, now;

	lockdep_assert_held(&repath_conn_mutex);
	/* Anybody can say that it is where somebody else is, and then that it has left there; an administrator may. */
	from = before;
	if (conn->remote && !conn->told && !repath_addr_is_same(&conn->addr, &conn->first) &&
	    !repath_remote_has_been(conn->remote, &conn->addr))
		from = whole_address(&conn->first, &conn->said_gid);
	conn->told = told;
	/* It has moved itself since its READY: what this end is connected to is no more. */
	if (!repath_conn_is_peer(conn, qpn, gid))
		conn->connected_tx = false;
	conn->dest_qpn = qpn;
	if (lid)
		conn->addr.dlid = lid;
	if (memcmp(&conn->addr.dgid, &none, sizeof(none))) {
		/* The GID may be the same, and the HCA behind it another. */
		conn->addr.has_dmac = false;
		memcpy(conn->addr.dgid.raw, gid, sizeof(none));
	}
	if (memcmp(gid, &none, sizeof(none)))
		memcpy(&conn->said_gid, gid, sizeof(none));
	now = whole_address(&conn->addr, &conn->said_gid);
	if (!conn->remote || repath_addr_is_same(&before, &now))
		return;
	if (last->proc == conn->proc && last->cookie == conn->remote->cookie &&
	    repath_addr_is_same(&last->from, &from) && repath_addr_is_same(&last->to, &now))
		return;
	*last = (struct repath_conn_moved){ conn->proc, conn->remote->cookie, from, now };
	/* MOVED may have said so before, to those who send; not to those who watch. */
	repath_known_moved(conn->proc, conn->remote->cookie, &from, &now);
	repath_watch_sender_moved(conn->proc, conn->remote->cookie, &from, &before, &now, told);
}

/* They are counted in 16 bits, and may overtake each other. */
static bool is_after(u16 round, u16 other)
{
	return (s16)(round - other) > 0;
}

/* Nothing more comes of that round of the peer's. */
static void is_over(struct repath_conn *conn, u16 round)
{
	if (!conn->has_over || is_after(round, conn->peer_over))
		conn->peer_over = round;
	conn->has_over = true;
}

static void settled(struct repath_conn *conn)
{
	conn->moving = false;
	conn->told = false;
	conn->must_reset = false;
	conn->connected_tx = false;
	conn->connected_rx = false;
	conn->peer_gated = false;
}

static void gated_by_peer(struct repath_conn *conn, u16 round)
{
	if (!conn->peer_gated || is_after(round, conn->peer_round))
		conn->peer_round = round;
	conn->peer_gated = true;
}

/* Its shim has begun to: what was said in a round before counts no more. */
static void begun(struct repath_conn *conn, u16 round)
{
	/* What its peer has not answered it says again. */
	if (conn->own_begun && !is_after(round, conn->own_round))
		return;
	conn->must_reset = false;
	conn->connected_tx = false;
	conn->connected_rx = false;
	conn->own_round = round;
	conn->own_begun = true;
}

static void connected(struct repath_conn *conn, u16 round, bool tx)
{
	if (tx) {
		conn->connected_tx = true;
	} else {
		conn->connected_rx = true;
		conn->peer_linked = round;
	}
	if (!conn->connected_tx || !conn->connected_rx)
		return;
	is_over(conn, conn->peer_linked);
	settled(conn);
}

/**
 * repath_conn_is_late - is a message of a round of the peer's that is over?
 * @conn: connection
 * @type: enum repath_msg
 * @flags: of its record, REPATH_REC_*
 *
 * It was on its way for long, or somebody says it again who has heard it: where the peer was then it is not
 * any more. The shim has the last word of what it is told; but the address is the module's.
 */
bool repath_conn_is_late(const struct repath_conn *conn, u8 type, u32 flags)
{
	u16 round = REPATH_REC_ROUND(flags);

	lockdep_assert_held(&repath_conn_mutex);
	if (type != REPATH_MSG_INFO && type != REPATH_MSG_CONNECTED)
		return false;
	return (conn->peer_gated && is_after(conn->peer_round, round)) ||
	       (conn->has_over && !is_after(round, conn->peer_over));
}

/* ABORTED of a round that is over: its ABORT was said more than once, and another round has begun since. */
static bool is_late_answer(const struct repath_conn *conn, u32 flags, bool tx)
{
	u16 round = REPATH_REC_ROUND(flags);

	if (!tx)
		return conn->own_begun && is_after(conn->own_round, round);
	if (conn->peer_gated)
		return is_after(conn->peer_round, round);
	return conn->has_over && !is_after(round, conn->peer_over);
}

static void aborted(struct repath_conn *conn, u32 flags, bool tx)
{
	if (is_late_answer(conn, flags, tx))
		return;
	/* Who leaves its device goes on, and the other end stays suspended as its peer. */
	if (flags & REPATH_REC_MOVER)
		return;
	conn->must_reset |= !!(flags & REPATH_REC_RESET);
	if (conn->must_reset)
		return;
	if (tx)
		is_over(conn, REPATH_REC_ROUND(flags));
	settled(conn);
}

/**
 * repath_conn_message - what a message that was sent or accepted means for the connection
 * @conn: connection; not valid any more after GONE
 * @type: enum repath_msg
 * @flags: of its record, REPATH_REC_*
 * @tx: it was sent
 */
void repath_conn_message(struct repath_conn *conn, u8 type, u32 flags, bool tx)
{
	lockdep_assert_held(&repath_conn_mutex);
	if (!tx && repath_conn_is_late(conn, type, flags))
		return;
	/* What this end says on and on, to where nobody is, is no sign of life. */
	if (conn->moving && !tx)
		conn->moving_since = jiffies;
	switch (type) {
	case REPATH_MSG_GATE:
	case REPATH_MSG_DRAINED:	/* say that, too */
	case REPATH_MSG_READY:
		if (!conn->moving) {
			settled(conn);
			conn->moving = true;
			conn->moving_since = jiffies;
		}
		if (tx)
			begun(conn, REPATH_REC_ROUND(flags));
		else
			gated_by_peer(conn, REPATH_REC_ROUND(flags));
		break;
	case REPATH_MSG_INFO:
		if (flags & REPATH_REC_CONNECTED)
			connected(conn, REPATH_REC_ROUND(flags), tx);
		break;
	case REPATH_MSG_CONNECTED:
		connected(conn, REPATH_REC_ROUND(flags), tx);
		break;
	case REPATH_MSG_ABORT:
		conn->must_reset |= !!(flags & REPATH_REC_RESET);
		break;
	case REPATH_MSG_ABORTED:
		aborted(conn, flags, tx);
		break;
	case REPATH_MSG_GONE:
		conn->state = REPATH_CONN_GONE;
		if (!conn->rqp)
			repath_conn_destroy(conn);
		break;
	}
}

/**
 * repath_conn_rest - it is on no move
 * @conn: connection
 * @heard: the peer's last round that its shim has heard of
 *
 * As its shim says, which knows what is late of what its peer has said, and gives up a peer that does
 * not answer. What lies in its socket meanwhile it does not know.
 */
void repath_conn_rest(struct repath_conn *conn, u16 heard)
{
	lockdep_assert_held(&repath_conn_mutex);
	if (!conn->moving || (conn->peer_gated && is_after(conn->peer_round, heard)))
		return;
	if (conn->peer_gated)
		is_over(conn, heard);
	settled(conn);
}

/* --- the lease --- */

/**
 * repath_conn_lease_is_over - has a peer that is suspended given up to wait?
 * @since: jiffies, when it began
 *
 * As far as this end knows: the lease is the own one.
 */
bool repath_conn_lease_is_over(unsigned long since)
{
	unsigned int seconds = READ_ONCE(peer_lease_s);

	return seconds && time_after_eq(jiffies, since + (unsigned long)seconds * HZ);
}

/* An end that has kept its queue pair waits for a mover; after the lease, nobody comes any more. */
static int lease_check(struct repath_conn *conn, void *arg)
{
	const unsigned int *seconds = arg;

	if (!conn->moving || !conn->rqp || conn->state != REPATH_CONN_READY ||
	    time_before(jiffies, conn->moving_since + *seconds * HZ))
		return 0;
	repath_peer_tell_gone(conn);
	if (conn->state != REPATH_CONN_GONE)
		return 0;
	repath_stat_inc(conn->dev, REPATH_STAT_LEASE_EXPIRED);
	pr_info_ratelimited("repath: PID %d (%*pE): the peer of QP 0x%x has not come back in %u s: the connection is given up\n",
			    pid_nr(conn->proc->tgid), (int)strlen(conn->proc->comm), conn->proc->comm,
			    conn->qpn, *seconds);
	/* It may do so yet. */
	repath_peer_send_gone(conn, true);
	return 0;
}

static void lease_expire(struct work_struct *work)
{
	/* Once: who sets it to 0 meanwhile does not want all of them to expire. */
	unsigned int seconds = READ_ONCE(peer_lease_s);

	if (seconds) {
		mutex_lock(&repath_conn_mutex);
		repath_conn_for_each(lease_check, &seconds);
		mutex_unlock(&repath_conn_mutex);
	}
	queue_delayed_work(system_power_efficient_wq, &lease_work, LEASE_PERIOD);
}

void repath_conn_lease_init(void)
{
	INIT_DELAYED_WORK(&lease_work, lease_expire);
	queue_delayed_work(system_power_efficient_wq, &lease_work, LEASE_PERIOD);
}

void repath_conn_lease_exit(void)
{
	cancel_delayed_work_sync(&lease_work);
}
