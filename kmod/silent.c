// SPDX-License-Identifier: GPL-2.0
/* Ports that did not answer a moment ago, and ports at which no module listens. */
#include <linux/jiffies.h>
#include <linux/string.h>

#include "conn.h"
#include "silent.h"
#include "xprt.h"

#define SILENT_MAX	256
#define SILENT_AGE	(5 * HZ)
#define SILENT_AGE_LID	HZ		/* without a GID: not all who speak say their LID */
#define ABSENT_AGE	(10 * HZ)	/* a module is loaded anew in less; a shim asks for longer */

/**
 * struct silent - a port
 * @dev: own device; compared only
 * @addr: the port
 * @silent: nothing came back
 * @absent: the host is there, and no module
 * @was_there: and there were connections to it that its module knew of
 * @spoke: neither of them, any more: something has come from it
 * @silent_at: jiffies, the last time
 * @absent_since: jiffies, the first time
 * @spoke_at: jiffies, the last time
 */
struct silent {
	const struct repath_device *dev;
	struct repath_addr addr;
	bool silent;
	bool absent;
	bool was_there;
	bool spoke;
	unsigned long silent_at;
	unsigned long absent_since;
	unsigned long spoke_at;
};

/* Protected by repath_conn_mutex. */
static struct silent silents[SILENT_MAX];
static unsigned int silent_next;

static struct silent *find(const struct repath_device *dev, const struct repath_addr *addr)
{
	struct silent *s;

	lockdep_assert_held(&repath_conn_mutex);
	for (s = silents; s < silents + SILENT_MAX; s++)
		if (s->dev && s->dev == dev && s->addr.port == addr->port &&
		    repath_addr_is_same_place(&s->addr, addr))
			return s;
	return NULL;
}

/**
 * repath_silent_was - did a port not answer, the last time that something was said to it?
 * @dev: own device
 * @addr: the port
 * @age: jiffies: and was that no longer ago?
 */
bool repath_silent_was(const struct repath_device *dev, const struct repath_addr *addr, unsigned long age)
{
	struct silent *s = find(dev, addr);

	return s && s->silent && time_before(jiffies, s->silent_at + age);
}

/**
 * repath_silent_is - did a port not answer a moment ago?
 * @dev: own device
 * @addr: the port
 */
bool repath_silent_is(const struct repath_device *dev, const struct repath_addr *addr)
{
	return repath_silent_was(dev, addr, repath_addr_has_gid(addr) ? SILENT_AGE : SILENT_AGE_LID);
}

struct place {
	const struct repath_device *dev;
	const struct repath_addr *addr;
};

static int leads_to(struct repath_conn *conn, void *arg)
{
	const struct place *place = arg;

	return conn->state == REPATH_CONN_READY && conn->dev == place->dev &&
	       repath_addr_is_same_place(&conn->addr, place->addr);
}

static bool has_conns(const struct repath_device *dev, const struct repath_addr *addr)
{
	struct place place = { dev, addr };

	return repath_conn_for_each(leads_to, &place);
}

/**
 * repath_silent_is_loaded_anew - has a module been at a port, and has not for no longer than it takes to load it anew?
 * @dev: own device
 * @addr: the port, of which repath_silent_add() was told
 */
bool repath_silent_is_loaded_anew(const struct repath_device *dev, const struct repath_addr *addr)
{
	struct silent *s = find(dev, addr);

	/* Too many were added since. */
	if (!s || !s->absent)
		return has_conns(dev, addr);
	return s->was_there && time_before(jiffies, s->absent_since + ABSENT_AGE);
}

/* Has the port spoken since that was sent of which it is known by now that nobody has answered? */
static bool has_spoken_since(const struct silent *s, int err)
{
	return s && s->spoke && err == -ETIMEDOUT &&
	       time_before(jiffies, s->spoke_at + repath_xprt_patience());
}

/* What has been sent to it before may time out later. */
static void set_spoke(struct silent *s)
{
	s->silent = false;
	s->absent = false;
	s->spoke = true;
	s->spoke_at = jiffies;
}

/**
 * repath_silent_add - a port has not answered
 * @dev: own device
 * @addr: the port
 * @err: negative errno: why, as far as is known; what says nothing of the port is not kept
 */
void repath_silent_add(const struct repath_device *dev, const struct repath_addr *addr, int err)
{
	bool silent = err == -ETIMEDOUT || err == -EHOSTUNREACH;
	struct silent *s = find(dev, addr);

	if ((!silent && err != -ENOPROTOOPT) || has_spoken_since(s, err))
		return;
	if (!s) {
		s = &silents[silent_next++ % SILENT_MAX];
		*s = (struct silent){ .dev = dev, .addr = *addr };
	}
	s->spoke = false;
	if (silent) {
		s->silent = true;
		s->silent_at = jiffies;
	} else if (!s->absent) {
		s->absent = true;
		s->was_there = has_conns(dev, addr);
		s->absent_since = jiffies;
	}
}

/**
 * repath_silent_answered - a port has answered
 * @dev: own device
 * @addr: the port
 */
void repath_silent_answered(const struct repath_device *dev, const struct repath_addr *addr)
{
	struct silent *s = find(dev, addr);

	if (s)
		set_spoke(s);
}

/**
 * repath_silent_forget - a port has spoken
 * @gid: its GID, as it says itself
 * @lid: its LID, likewise; 0: it does not say
 */
void repath_silent_forget(const u8 gid[16], u32 lid)
{
	struct silent *s;

	lockdep_assert_held(&repath_conn_mutex);
	for (s = silents; s < silents + SILENT_MAX; s++)
		if (repath_addr_has_gid(&s->addr) ? !memcmp(&s->addr.dgid, gid, sizeof(s->addr.dgid)) :
						    lid && s->addr.dlid == lid)
			set_spoke(s);
}

/**
 * repath_silent_device_removed - forget what was kept for a device
 * @dev: device
 */
void repath_silent_device_removed(const struct repath_device *dev)
{
	struct silent *s;

	lockdep_assert_held(&repath_conn_mutex);
	for (s = silents; s < silents + SILENT_MAX; s++)
		if (s->dev == dev)
			s->dev = NULL;
}
