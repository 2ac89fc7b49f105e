/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between kernels in generic netlink. */
#ifndef REPATH_COMPAT_GENL_H
#define REPATH_COMPAT_GENL_H

#include <net/genetlink.h>

/**
 * repath_dump_attrs - the attributes of the request that a dump answers
 * @cb: as given to a dump's start(), dumpit() or done()
 */
static inline struct nlattr **repath_dump_attrs(struct netlink_callback *cb)
{
#ifdef REPATH_HAVE_GENL_INFO_DUMP
	return genl_info_dump(cb)->attrs;
#else
	return genl_dumpit_info(cb)->attrs;
#endif
}

#endif /* REPATH_COMPAT_GENL_H */
