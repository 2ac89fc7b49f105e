/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A subnet as it is set up: nodes, cables, LIDs, forwarding tables, SLtoVL tables, SLs of paths.
 * Filled by readers (read.h, live.h), judged by check.h. Shares nothing with the plugin of OpenSM,
 * whose work it judges.
 */
#ifndef REPATH_FABRIC_H
#define REPATH_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FABRIC_LIDS	0xc000	/* unicast LIDs are below (IBA 1.2.1 vol 1, 4.1.3) */
#define FABRIC_NO_PORT	255	/* what a table has for a LID that it does not know */
#define FABRIC_LANES	16
#define FABRIC_DISCARD	15	/* an SLtoVL entry that drops (7.6.6) */
#define FABRIC_NO_SL	0xff	/* of a path that the subnet manager does not give: no common P_Key */
#define FABRIC_PORTS	254

struct fabric_node;

/**
 * struct fabric_port - a port, or the management port 0 of a switch
 * @node: whose it is
 * @peer: the other end of its cable, or NULL
 * @guid: port GUID
 * @load: what it has sent, 32-bit words; only live
 * @waited: PortXmitWait, ticks; only live
 * @sl2vl: by input port, of data that leaves here; NULL if nothing is known
 * @lid: base LID, 0 without
 * @lmc: it has 2^lmc LIDs
 * @num: port number
 * @vls: data VLs that are in operation, 0 if that is not known
 * @gbps: speed of its link, 0 if that is not known
 */
struct fabric_port {
	struct fabric_node *node;
	struct fabric_port *peer;
	uint64_t guid;
	uint64_t load;
	uint64_t waited;
	uint8_t (*sl2vl)[FABRIC_LANES];
	uint16_t lid;
	uint8_t lmc;
	uint8_t num;
	uint8_t vls;
	uint16_t gbps;
};

/**
 * struct fabric_node - a switch or a host (channel adapter, router)
 * @guid: node GUID
 * @name: node description, made printable
 * @index: its place in fabric.node
 * @order: of a switch its place in fabric.sw, else -1
 * @nports: ports 1..nports
 * @port: all, 0 included
 * @table: of a switch, by LID; NULL if it was not read
 */
struct fabric_node {
	uint64_t guid;
	char *name;
	unsigned int index;
	int order;
	unsigned int nports;
	struct fabric_port *port;
	uint8_t *table;
};

/**
 * struct fabric - a subnet
 * @node: all nodes
 * @nodes: how many
 * @sw: switches among them
 * @switches: how many
 * @lid: the port that has a LID, or NULL
 * @lids: the highest LID that is in use, and one
 * @sl: by DLID and SLID, SL of a path; a row that is NULL has @default_sl
 * @sl_lids: length of each row
 * @default_sl: SL of paths of which nothing was said
 * @has_sl2vl: SLtoVL tables were read
 * @has_sl: SLs of paths were read
 * @has_load: counters were read
 * @unanswered: questions about nodes, tables and paths that nobody has answered; @unread: about counters
 * @guids: hash of node and port GUIDs; see fabric.c
 * @slots: its size
 * @used: filled slots
 */
struct fabric {
	struct fabric_node **node;
	unsigned int nodes;
	struct fabric_node **sw;
	unsigned int switches;
	struct fabric_port *lid[FABRIC_LIDS];
	unsigned int lids;
	uint8_t *sl[FABRIC_LIDS];
	unsigned int sl_lids;
	uint8_t default_sl;
	bool has_sl2vl;
	bool has_sl;
	bool has_load;
	unsigned int unanswered;
	unsigned int unread;
	struct fabric_guid *guids;
	size_t slots;
	size_t used;
};

struct fabric *fabric_new(void);
void fabric_free(struct fabric *f);

/* Memory that is there; the program ends without. */
void *fabric_alloc(size_t n, size_t size);

/* Finds or makes a node. NULL if there is one of that GUID that is another kind, or bad words. */
struct fabric_node *fabric_add(struct fabric *f, uint64_t guid, bool is_switch,
			       unsigned int nports, const char *name);
void fabric_rename(struct fabric_node *n, const char *name);
struct fabric_node *fabric_node(const struct fabric *f, uint64_t guid);
struct fabric_port *fabric_port_of(const struct fabric *f, uint64_t port_guid);
/* False if there is no such port, or it has another cable already. */
bool fabric_cable(struct fabric_port *a, struct fabric_port *b);
/* A port's GUID, by which tables name it. */
bool fabric_name_port(struct fabric *f, struct fabric_port *p, uint64_t port_guid);
/* False if the LID is none, or another port's. */
bool fabric_give_lid(struct fabric *f, struct fabric_port *p, unsigned int lid, unsigned int lmc);
/* A LID behind the base LID, of which a table tells. */
bool fabric_give_alias(struct fabric *f, struct fabric_port *p, unsigned int lid);
void fabric_set_entry(struct fabric_node *sw, unsigned int lid, uint8_t port);
void fabric_set_sl2vl(struct fabric *f, struct fabric_port *out, unsigned int in,
		      const uint8_t vl[FABRIC_LANES]);
/* Only when all LIDs are known. False if one of these is nobody's. */
bool fabric_set_sl(struct fabric *f, unsigned int slid, unsigned int dlid, uint8_t sl);

static inline bool fabric_is_switch(const struct fabric_node *n)
{
	return n->order >= 0;
}

static inline uint8_t fabric_entry(const struct fabric_node *sw, unsigned int lid)
{
	return sw->table ? sw->table[lid] : FABRIC_NO_PORT;
}

static inline uint8_t fabric_sl(const struct fabric *f, unsigned int slid, unsigned int dlid)
{
	return f->sl[dlid] && slid < f->sl_lids ? f->sl[dlid][slid] : f->default_sl;
}

/* The lane behind @out for what came in by port @in; without tables it is the SL's own. */
static inline uint8_t fabric_vl(const struct fabric_port *out, unsigned int in, uint8_t sl)
{
	uint8_t vl;

	if (sl == FABRIC_NO_SL)
		return FABRIC_DISCARD;
	vl = out->sl2vl ? out->sl2vl[in][sl] : sl;
	return out->vls && vl >= out->vls ? FABRIC_DISCARD : vl;
}

#endif /* REPATH_FABRIC_H */
