// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Nodes are found along directed routes, which need no tables; so are tables read. What needs
 * LIDs comes last: SLs from the subnet manager, and counters.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "live.h"
#include "mads.h"

#define QUEUED	4096		/* questions in the queue, more are not made before these are answered */
#define PAIRS	8000000ull	/* paths whose SL is asked for one by one */

/* Attributes (IBA 1.2.1 vol 1, 14.2.5, 15.2.5, 16.1.3). */
enum { NODE_DESCRIPTION = 0x10, NODE_INFO = 0x11, SWITCH_INFO = 0x12, PORT_INFO = 0x15,
	SL_TO_VL = 0x17, LINEAR_TABLE = 0x19, PATH_RECORD = 0x35, PORT_COUNTERS = 0x12,
	PORT_COUNTERS_EXTENDED = 0x1d };
enum { SMP_DATA = 64, SA_MASK = 48, SA_DATA = 56 };
enum { SA_NO_RECORDS = 0x0300 };	/* table 185 */
enum { BLOCK = 64, SWITCH = 2, LINK_UP = 5 };

struct route {
	uint8_t hops;
	uint8_t path[MADS_HOPS + 1];
};

struct live {
	struct fabric *f;
	struct mads *m;
	struct route *route;		/* by node, how it was found */
	unsigned int routes;
};

static uint16_t get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return be64toh(v);
}

static void ask_smp(struct live *l, unsigned int node, uint16_t attribute, uint32_t modifier,
		    unsigned int port)
{
	struct ask ask = { .class = MADS_SUBNET, .attribute = attribute, .modifier = modifier,
		.node = node, .port = port, .hops = l->route[node].hops };

	memcpy(ask.path, l->route[node].path, sizeof(ask.path));
	mads_ask(l->m, &ask);
}

/* Who is behind a port. */
static void ask_neighbour(struct live *l, unsigned int node, unsigned int port)
{
	struct ask ask = { .class = MADS_SUBNET, .attribute = NODE_INFO, .node = node, .port = port,
		.hops = l->route[node].hops + 1 };

	if (ask.hops > MADS_HOPS)
		return;
	memcpy(ask.path, l->route[node].path, sizeof(ask.path));
	ask.path[ask.hops] = port;
	mads_ask(l->m, &ask);
}

static void remember_route(struct live *l, const struct fabric_node *n, const struct ask *ask)
{
	if (n->index >= l->routes) {
		unsigned int room = 2 * n->index + 64;
		struct route *more = fabric_alloc(room, sizeof(*more));

		if (l->routes)
			memcpy(more, l->route, l->routes * sizeof(*more));
		free(l->route);
		l->route = more;
		l->routes = room;
	}
	l->route[n->index].hops = ask->hops;
	memcpy(l->route[n->index].path, ask->path, sizeof(ask->path));
}

/* The first answer of a node makes it; each tells of a cable. */
static void node_info(struct live *l, const struct ask *ask, const uint8_t *data)
{
	uint64_t guid = get64(data + 12), port_guid = get64(data + 20);
	struct fabric_node *n = fabric_node(l->f, guid);
	bool is_switch = data[2] == SWITCH, fresh = !n;
	unsigned int ports = data[3], port = data[36];
	char name[32];

	snprintf(name, sizeof(name), "%016llx", (unsigned long long)guid);
	n = fabric_add(l->f, guid, is_switch, ports, name);
	if (!n || port > ports || (!is_switch && !port)) {
		l->f->unanswered++;
		return;
	}
	if (fresh)
		remember_route(l, n, ask);
	if (ask->hops)
		fabric_cable(&l->f->node[ask->node]->port[ask->port], &n->port[port]);
	fabric_name_port(l->f, &n->port[is_switch ? 0 : port], port_guid);
	if (!is_switch) {
		struct ask info = *ask;

		/* A host answers for the port at which it is asked. */
		info.attribute = PORT_INFO;
		info.modifier = port;
		info.node = n->index;
		info.port = port;
		mads_ask(l->m, &info);
	}
	if (!fresh)
		return;
	ask_smp(l, n->index, NODE_DESCRIPTION, 0, 0);
	for (unsigned int p = 0; is_switch && p <= ports; p++)
		ask_smp(l, n->index, PORT_INFO, p, p);
}

static unsigned int speed(const uint8_t *data)
{
	static const uint8_t lanes[] = { [1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2 };
	unsigned int width = data[31] < sizeof(lanes) ? lanes[data[31]] : 0;
	unsigned int classic = data[35] >> 4, extended = data[62] >> 4;

	if (extended)
		return width * (extended & 8 ? 100 : extended & 4 ? 50 : extended & 2 ? 25 : 14);
	return width * (classic == 1 ? 5 : classic == 2 ? 10 : classic == 4 ? 20 : 0) / 2;
}

static void port_info(struct live *l, const struct ask *ask, const uint8_t *data)
{
	static const uint8_t lanes[] = { [1] = 1, [2] = 2, [3] = 4, [4] = 8, [5] = 15 };
	struct fabric_node *n = l->f->node[ask->node];
	struct fabric_port *p = &n->port[ask->port];
	unsigned int vls = data[43] >> 4, lid = get16(data + 16);

	p->vls = vls < sizeof(lanes) ? lanes[vls] : 0;
	p->gbps = speed(data);
	if ((!ask->port || !fabric_is_switch(n)) && lid &&
	    !fabric_give_lid(l->f, p, lid, fabric_is_switch(n) ? 0 : data[34] & 7))
		l->f->unanswered++;
	/* Beyond a host only this machine's own is asked: hosts do not forward. */
	if (ask->port && data[33] >> 4 == LINK_UP && !p->peer &&
	    (fabric_is_switch(n) || !l->route[ask->node].hops))
		ask_neighbour(l, ask->node, ask->port);
}

static void node_description(struct live *l, const struct ask *ask, const uint8_t *data)
{
	char name[65] = "";

	memcpy(name, data, 64);
	if (*name)
		fabric_rename(l->f->node[ask->node], name);
}

static void switch_info(struct live *l, const struct ask *ask, const uint8_t *data)
{
	unsigned int top = get16(data + 6);

	for (unsigned int block = 0; block <= top / BLOCK && block < FABRIC_LIDS / BLOCK; block++)
		ask_smp(l, ask->node, LINEAR_TABLE, block, top);
}

static void linear_table(struct live *l, const struct ask *ask, const uint8_t *data)
{
	for (unsigned int i = 0; i < BLOCK; i++) {
		unsigned int lid = ask->modifier * BLOCK + i;

		if (lid && lid <= ask->port)
			fabric_set_entry(l->f->node[ask->node], lid, data[i]);
	}
}

static void sl_to_vl(struct live *l, const struct ask *ask, const uint8_t *data)
{
	struct fabric_node *n = l->f->node[ask->node];
	uint8_t vl[FABRIC_LANES];

	for (unsigned int sl = 0; sl < FABRIC_LANES; sl++)
		vl[sl] = sl % 2 ? data[sl / 2] & 15 : data[sl / 2] >> 4;
	fabric_set_sl2vl(l->f, &n->port[ask->port], fabric_is_switch(n) ? ask->modifier >> 8 : 0, vl);
}

static void smp_answered(void *context, const struct ask *ask, const uint8_t *answer,
			 unsigned int status)
{
	struct live *l = context;

	if (!answer) {
		/* A node with one lane need not have such a table. */
		l->f->unanswered += status == MADS_SILENT || ask->attribute != SL_TO_VL;
		return;
	}
	switch (ask->attribute) {
	case NODE_INFO:
		node_info(l, ask, answer + SMP_DATA);
		break;
	case NODE_DESCRIPTION:
		node_description(l, ask, answer + SMP_DATA);
		break;
	case PORT_INFO:
		port_info(l, ask, answer + SMP_DATA);
		break;
	case SWITCH_INFO:
		switch_info(l, ask, answer + SMP_DATA);
		break;
	case LINEAR_TABLE:
		linear_table(l, ask, answer + SMP_DATA);
		break;
	case SL_TO_VL:
		sl_to_vl(l, ask, answer + SMP_DATA);
		break;
	}
}

static void path_answered(void *context, const struct ask *ask, const uint8_t *answer,
			  unsigned int status)
{
	struct live *l = context;
	uint8_t sl = FABRIC_NO_SL;

	if (answer)
		sl = answer[SA_DATA + 53] & 15;
	if ((status && status != SA_NO_RECORDS) || !fabric_set_sl(l->f, ask->node, ask->port, sl))
		l->f->unanswered++;
}

static void counters_answered(void *context, const struct ask *ask, const uint8_t *answer,
			      unsigned int status)
{
	struct live *l = context;
	struct fabric_port *p = &l->f->node[ask->node]->port[ask->port];

	(void)status;
	if (!answer) {
		l->f->unread++;
		return;
	}
	l->f->has_load = true;
	if (ask->attribute == PORT_COUNTERS_EXTENDED)
		p->load = get64(answer + SMP_DATA + 8);
	else
		p->waited = (uint32_t)get16(answer + SMP_DATA + 40) << 16 |
			    get16(answer + SMP_DATA + 42);
}

/* Of links that are there: what comes in by any of them and leaves by any of them. */
static bool ask_sl_to_vl(struct live *l, struct fabric_node *n)
{
	for (unsigned int out = 1; out <= n->nports; out++) {
		if (!n->port[out].peer)
			continue;
		if (!fabric_is_switch(n)) {
			ask_smp(l, n->index, SL_TO_VL, 0, out);
			continue;
		}
		for (unsigned int in = 0; in <= n->nports; in++)
			if (!in || n->port[in].peer)
				ask_smp(l, n->index, SL_TO_VL, in << 8 | out, out);
	}
	return mads_waiting(l->m) < QUEUED || mads_run(l->m, smp_answered, l);
}

static bool read_all_tables(struct live *l)
{
	for (unsigned int i = 0; i < l->f->nodes; i++) {
		if (fabric_is_switch(l->f->node[i]))
			ask_smp(l, i, SWITCH_INFO, 0, 0);
		if (!ask_sl_to_vl(l, l->f->node[i]))
			return false;
	}
	return mads_run(l->m, smp_answered, l);
}

static void ask_path(struct live *l, unsigned int slid, unsigned int dlid)
{
	/* Components: DLID and SLID. */
	struct ask ask = { .class = MADS_SA, .attribute = PATH_RECORD, .lid = mads_sm_lid(l->m),
		.node = slid, .port = dlid, .data_at = SA_MASK, .data_bytes = 52,
		.data = { [7] = 1 << 4 | 1 << 5, [8 + 40] = dlid >> 8, dlid, slid >> 8, slid } };

	mads_ask(l->m, &ask);
}

static bool is_end(const struct fabric *f, unsigned int lid)
{
	return f->lid[lid] && !fabric_is_switch(f->lid[lid]->node);
}

static bool read_sls(struct live *l)
{
	const struct fabric *f = l->f;

	for (unsigned int slid = 1; slid < f->lids; slid++) {
		for (unsigned int dlid = 1; is_end(f, slid) && dlid < f->lids; dlid++) {
			if (!is_end(f, dlid) || f->lid[slid] == f->lid[dlid])
				continue;
			ask_path(l, slid, dlid);
			if (mads_waiting(l->m) >= QUEUED && !mads_run(l->m, path_answered, l))
				return false;
		}
	}
	return mads_run(l->m, path_answered, l);
}

static void ask_counters(struct live *l, const struct fabric_port *p, uint16_t attribute)
{
	const struct fabric_node *n = p->node;
	struct ask ask = { .class = MADS_COUNTERS, .attribute = attribute, .node = n->index,
		.lid = n->port[fabric_is_switch(n) ? 0 : p->num].lid, .port = p->num,
		.data_at = SMP_DATA, .data_bytes = 2, .data = { [1] = p->num } };

	if (ask.lid)
		mads_ask(l->m, &ask);
}

static bool read_counters(struct live *l)
{
	for (unsigned int i = 0; i < l->f->nodes; i++) {
		for (unsigned int p = 1; p <= l->f->node[i]->nports; p++) {
			if (!l->f->node[i]->port[p].peer)
				continue;
			ask_counters(l, &l->f->node[i]->port[p], PORT_COUNTERS_EXTENDED);
			ask_counters(l, &l->f->node[i]->port[p], PORT_COUNTERS);
		}
		if (mads_waiting(l->m) >= QUEUED && !mads_run(l->m, counters_answered, l))
			return false;
	}
	return mads_run(l->m, counters_answered, l);
}

static bool read_everything(struct live *l, const struct live_wants *wants, char *message)
{
	struct ask self = { .class = MADS_SUBNET, .attribute = NODE_INFO };
	uint64_t ends = 0;

	mads_ask(l->m, &self);
	if (!mads_run(l->m, smp_answered, l) || !read_all_tables(l))
		goto lost;
	if (!l->f->switches && l->f->nodes < 2) {
		snprintf(message, READ_MESSAGE, "nothing answers beyond this machine's own port");
		return false;
	}
	for (unsigned int lid = 1; lid < l->f->lids; lid++)
		ends += is_end(l->f, lid);
	if (wants->sls && ends * ends > PAIRS) {
		snprintf(message, READ_MESSAGE, "there are %lu LIDs: too many paths to ask the subnet"
			 " manager for the SL of each; say \"sl N\"", ends);
		return false;
	}
	if (wants->sls && !mads_sm_lid(l->m)) {
		snprintf(message, READ_MESSAGE, "there is no subnet manager to ask for SLs of paths;"
			 " say \"sl N\"");
		return false;
	}
	if ((!wants->sls || read_sls(l)) && (!wants->load || read_counters(l)))
		return true;
lost:
	snprintf(message, READ_MESSAGE, "the RDMA device does not send any more: %s",
		 strerror(errno));
	return false;
}

bool live_read(struct fabric *f, const struct live_wants *wants, char message[READ_MESSAGE])
{
	struct live l = { .f = f, .m = mads_open(wants->device, wants->port) };
	bool done;

	if (!l.m) {
		snprintf(message, READ_MESSAGE, "%s: %s; is there an InfiniBand port, with ib_umad"
			 " loaded, and may you use it?", wants->device ? wants->device :
			 "the first RDMA device", strerror(errno));
		return false;
	}
	done = read_everything(&l, wants, message);
	mads_close(l.m);
	free(l.route);
	return done;
}
