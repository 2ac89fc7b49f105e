/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A fabric of that shape, or of a topology, routed, all ports active; and its end. */
#ifndef UNIT_MADE_H
#define UNIT_MADE_H

#include "check.h"
#include "fabric.h"
#include "sma.h"
#include "traffic.h"

static inline void made_of(struct fabric *f, const struct net *net, unsigned int vls)
{
	struct fabric_config config = { .seed = 1, .vls = vls };

	CHECK_EQ(fabric_init(f, net, &config), 0);
	CHECK_EQ(sma_init(f), 0);
	CHECK_EQ(routes_minhop(f), 0);
	port_activate_all(f);
}

static inline void made_up(struct fabric *f, struct net *net, const char *spec, unsigned int vls)
{
	net_init(net);
	CHECK_EQ(net_make(net, spec), 0);
	made_of(f, net, vls);
}

static inline void made_down(struct fabric *f, struct net *net)
{
	sma_free(f);
	fabric_free(f);
	net_free(net);
}

#endif
