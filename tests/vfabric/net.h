/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A topology: nodes, their ports, what is plugged into what. Nothing here has state or time. */
#ifndef VF_NET_H
#define VF_NET_H

#include <stdint.h>
#include <stdio.h>

/* NodeInfo:NodeType */
enum net_type { NET_HCA = 1, NET_SWITCH = 2, NET_ROUTER = 3 };

#define NET_NONE UINT32_MAX
#define NET_MAX_PORTS 254
#define NET_MAX_METRES 100000u
#define NET_MAX_SHARED_VFS 7u	/* a block of GUIDInfo less the PF's */

struct net_port {
	uint32_t peer;		/* node index, or NET_NONE */
	uint8_t peer_port;
	uint8_t width;		/* LinkWidthActive's encoding: 1, 2 (4x), 4 (8x), 8 (12x), 16 (2x) */
	uint8_t speed;		/* LinkSpeedActive's: 1 SDR, 2 DDR, 4 QDR */
	uint8_t ext;		/* LinkSpeedExtActive's: 0, 1 FDR, 2 EDR, 4 HDR, 8 NDR */
	uint32_t length;	/* of the cable, cm; 0: as the model has it */
};

struct net_node {
	char *id;		/* unique, as in the file */
	char *desc;		/* NodeDescription */
	uint64_t guid;
	uint32_t vendor, device;
	uint64_t sysimg;
	uint8_t type;
	uint8_t nports;
	uint8_t esp0;		/* enhanced switch port 0 */
	uint8_t shared;		/* no switch, but an HCA's inside: shared.h */
	struct net_port *ports;	/* 0..nports */
};

struct net {
	struct net_node *nodes;
	unsigned int n, room;
	uint32_t *hash;		/* open addressing over ids; NET_NONE is free */
	unsigned int hash_size;
	uint64_t next_guid[4];	/* by type */
	char **todo;		/* console lines that the file has for when all is built */
	unsigned int ntodo;
	char error[256];	/* why the last call failed, with file and line */
};

void net_init(struct net *net);
void net_free(struct net *net);

/**
 * net_add() - add a node without links
 * @desc: NodeDescription, or NULL for @id
 * Return: its index, or NET_NONE with net->error set (id taken, too many ports).
 */
uint32_t net_add(struct net *net, enum net_type type, const char *id, const char *desc,
		 unsigned int nports);
/* Index of the node with this id, else of the first with this description, else NET_NONE. */
uint32_t net_find(const struct net *net, const char *id);
/* Plug port pa of a into port pb of b; -1 with net->error set if one is taken or not there. */
int net_plug(struct net *net, uint32_t a, unsigned int pa, uint32_t b, unsigned int pb);
void net_unplug(struct net *net, uint32_t a, unsigned int pa);
unsigned int net_count(const struct net *net, enum net_type type);

/**
 * net_read() - add what a file in ibsim's net format, or printed by ibnetdiscover, describes
 * Return: 0, or -1 with net->error saying file, line and why.
 */
int net_read(struct net *net, const char *path);
int net_read_stream(struct net *net, FILE *file, const char *name);
void net_write(const struct net *net, FILE *file);

/**
 * net_make() - add a generated topology
 * @spec: mesh:3x2[,hosts=1]  torus:4x4x4[,hosts=1]  xgft:18,36/1,18  tree:36,2 (m-port n-tree)
 *	random:16,degree=4,hosts=2,seed=1
 *
 * All links are 4x QDR unless speed=1|2|4 (or ext=1|2|4|8) is given, of length=METRES. vswitch=N: net_vswitch(),
 * shared=N: net_shared().
 * Return: 0, or -1 with net->error set.
 */
int net_make(struct net *net, const char *spec);

/**
 * net_vswitch() - give HCAs virtual functions that are HCAs of their own
 * @first: the first node to look at; those with one port that is plugged in are meant
 * @vfs: how many each of them gets
 *
 * "H1" comes to port 2 of a new switch "H1-hca", whose port 1 takes its cable, with "H1v1" at
 * port 3 and so on: a vSwitch, where each function has its own LID and queue pairs.
 * Return: 0, or -1 with net->error set.
 */
int net_vswitch(struct net *net, uint32_t first, unsigned int vfs);
/* The same with functions that share the port of "H1"; VFs are no nodes of the topology. */
int net_shared(struct net *net, uint32_t first, unsigned int vfs);

#endif
