// SPDX-License-Identifier: GPL-2.0
/* Ports that did not answer a moment ago, and ports at which no module listens. */
#include <linux/jiffies.h>
#include <linux/string.h>

#include "conn.h"
#include "silent.h"

#define SILENT_MAX	64
#define SILENT_AGE	(5 * HZ)
#define ABSENT_AGE	(10 * HZ)	/* a module is loaded anew in less; a shim asks for longer */

/**
 * struct silent - a port
 * @dev: own device; compared only
 * @addr: the port
 * @silent: nothing came back
 * @absent: the host is there, and no module
 * @silent_at: jiffies, the last time
 * @absent_since: jiffies, the first time
 */
struct silent {
	const struct repath_device *dev;
	struct repath_addr addr;
	bool silent;
	bool absent;
	unsigned long silent_at;
	unsigned long absent_since;
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
 * repath_silent_is - did a port not answer a moment ago?
 * @dev: own device
 * @addr: the port
 */
bool repath_silent_is(const struct repath_device *dev, const struct repath_addr *addr)
{
	struct silent *s = find(dev, addr);

	return s && s->silent && time_before(jiffies, s->silent_at + SILENT_AGE);
}

/**
 * repath_silent_is_absent - has no module been at a port for longer than it takes to load it anew?
 * @dev: own device
 * @addr: the port
 */
bool repath_silent_is_absent(const struct repath_device *dev, const struct repath_addr *addr)
{
	struct silent *s = find(dev, addr);

	return s && s->absent && time_after_eq(jiffies, s->absent_since + ABSENT_AGE);
}

/**
 * repath_silent_add - a port has not answered
 * @dev: own device
 * @addr: the port
 * @err: negative errno: why, as far as is known; what says nothing of the port is not kept
 */
void repath_silent_add(const struct repath_device *dev, const struct repath_addr *addr, int err)
{
	bool silent = (err == -ETIMEDOUT || err == -EHOSTUNREACH) && repath_addr_has_gid(addr);
	struct silent *s = find(dev, addr);

	if (!silent && err != -ENOPROTOOPT)
		return;
	if (!s) {
		s = &silents[silent_next++ % SILENT_MAX];
		*s = (struct silent){ .dev = dev, .addr = *addr };
	}
	if (silent) {
		s->silent = true;
		s->silent_at = jiffies;
	} else if (!s->absent) {
		s->absent = true;
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
		s->dev = NULL;
}

/**
 * repath_silent_forget - a port has spoken
 * @gid: its GID, as it says itself
 */
void repath_silent_forget(const u8 gid[16])
{
	struct silent *s;

	lockdep_assert_held(&repath_conn_mutex);
	for (s = silents; s < silents + SILENT_MAX; s++)
		if (!memcmp(&s->addr.dgid, gid, sizeof(s->addr.dgid)))
			s->dev = NULL;
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
