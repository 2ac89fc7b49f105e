// SPDX-License-Identifier: GPL-2.0
/* Ports that did not answer a moment ago. */
#include <linux/jiffies.h>
#include <linux/string.h>

#include "conn.h"
#include "silent.h"

#define SILENT_MAX	64
#define SILENT_AGE	(5 * HZ)

/**
 * struct silent - a port that did not answer
 * @dev: own device; compared only
 * @port: own port
 * @gid: the port
 * @at: jiffies
 */
struct silent {
	const struct repath_device *dev;
	u32 port;
	union ib_gid gid;
	unsigned long at;
};

/* Protected by repath_conn_mutex. */
static struct silent silents[SILENT_MAX];
static unsigned int silent_next;

static struct silent *find(const struct repath_device *dev, const struct repath_addr *addr)
{
	struct silent *s;

	for (s = silents; s < silents + SILENT_MAX; s++)
		if (s->dev && s->dev == dev && s->port == addr->port &&
		    !memcmp(&s->gid, &addr->dgid, sizeof(s->gid)))
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

	lockdep_assert_held(&repath_conn_mutex);
	return s && time_before(jiffies, s->at + SILENT_AGE);
}

/**
 * repath_silent_add - a port does not answer
 * @dev: own device
 * @addr: the port
 */
void repath_silent_add(const struct repath_device *dev, const struct repath_addr *addr)
{
	struct silent *s = find(dev, addr);

	lockdep_assert_held(&repath_conn_mutex);
	/* Ports that are known by LID alone all look alike. */
	if (!memchr_inv(&addr->dgid, 0, sizeof(addr->dgid)))
		return;
	if (!s) {
		s = &silents[silent_next++ % SILENT_MAX];
		s->dev = dev;
		s->port = addr->port;
		s->gid = addr->dgid;
	}
	s->at = jiffies;
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
		if (!memcmp(&s->gid, gid, sizeof(s->gid)))
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
