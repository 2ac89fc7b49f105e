/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The model: switches, links and hosts in motion.
 *
 * A packet waits in the input queue of a port and VL. When it is the head there, the switch looks
 * up its output port and VL (its lane) and the queue lines up at the lane. A lane sends when its
 * link is idle and it has credits for the whole packet; among lanes VL arbitration decides, within
 * a lane the queue that has waited longest. The next packet of the queue lines up when the tail of
 * the head has left, and then the room is credited to the sender: within one VL a head blocks those
 * behind it, different VLs do not block each other (an input-queued switch whose crossbar is as
 * fast as its links). Everything hangs together by indices; NONE is no index.
 *
 * What each packet touches fits a line of the cache, with what else it needs there: in a large fabric
 * no cache has any of it, and to wait for memory is most of a hop's time.
 */
#ifndef VF_FABRIC_H
#define VF_FABRIC_H

#include "clock.h"
#include "counters.h"
#include "net.h"

#define NONE UINT32_MAX
#define EXTERNAL (UINT32_MAX - 1)	/* the peer of a port whose other end is a real HCA */
#define BLOCK 64u			/* a credit, in bytes */
#define MCAST_LID 0xc000u
#define MCAST_BLOCKS 32u		/* of 32 multicast LIDs each */
#define UCAST_LIDS 0xc000u
#define MAX_VLS 15
#define CACHE_LINE 64
#define OF_LINES __attribute__((aligned(CACHE_LINE)))

enum event_type { EV_ARRIVE, EV_SENT, EV_CREDIT, EV_LIFETIME, EV_FLOW, EV_RTO, EV_SAMPLE,
		  EV_FAULT, EV_CCTI, EV_TO_HCA, EV_FROM_HCA };
enum port_state { PORT_DOWN = 1, PORT_INIT, PORT_ARMED, PORT_ACTIVE };
enum phys_state { PHYS_POLLING = 2, PHYS_DISABLED = 3, PHYS_LINKUP = 5 };

/* Why a packet was dropped; drop.c says which of the standard's counters that is. */
enum drop { DROP_LFT, DROP_VL, DROP_LOOP, DROP_INACTIVE, DROP_MTU, DROP_LIFETIME, DROP_HOQ,
	    DROP_STALL, DROP_PKEY_IN, DROP_PKEY_OUT, DROP_LINK, DROP_CORRUPT, DROP_LOST,
	    DROP_NOT_MINE, DROP_BY_HAND, DROP_RAW, DROP_VF_QP0, DROP_UNREAD, DROP_DATAGRAM,
	    DROP_NOT_READY, NDROPS };
extern const char *const drop_name[NDROPS];

enum packet_kind { PACKET_DATA, PACKET_ACK, PACKET_REAL, PACKET_MAD };

struct packet {
	uint64_t born;		/* when its source had it */
	uint64_t entered;	/* this switch */
	uint64_t tail;		/* when its last byte is here */
	uint32_t flow, seq;
	uint32_t copies;	/* the packet that counts the copies of a multicast, or NONE */
	uint16_t ncopies;
	uint16_t slid, dlid, len, pkey;
	uint16_t sl : 12, vl : 4;
	uint8_t kind;
	uint8_t epoch;		/* of the link it came over */
	uint8_t marks;		/* congestion.h */
	void *bytes;		/* PACKET_REAL, PACKET_MAD (on the cable of a real HCA): LRH..ICRC */
} OF_LINES;
_Static_assert(sizeof(struct packet) == CACHE_LINE, "a packet is a line");

enum queue_state { QUEUE_EMPTY, QUEUE_WAITS, QUEUE_LEAVES, QUEUE_SPLIT };

/* The input buffer of a port and VL, a host's source, or one copy of a multicast packet. */
struct queue {
	uint32_t head, tail;
	uint32_t blocks;	/* in packets that wait here */
	uint32_t came;		/* in all, modulo 2^32; less what nobody was there to be credited with */
	uint32_t next;		/* in the line at the lane */
	uint32_t lane;		/* where it waits */
	uint32_t port;
	uint32_t node;		/* the port's */
	uint32_t flow;		/* a source's, else NONE */
	uint32_t origin;	/* a copy's: the queue whose buffer holds it, else NONE */
	uint64_t since;		/* its head waits */
	uint8_t vl, state;
	uint8_t in;		/* the port's number */
	uint8_t out;		/* a copy's port */
} OF_LINES;
_Static_assert(sizeof(struct queue) == CACHE_LINE, "a queue is a line");

/* The output side of a port and VL. */
struct lane {
	uint32_t credits;	/* blocks the other end has room for */
	uint32_t first, last;	/* queues that wait */
	uint32_t given;		/* blocks that the other end has credited it with, modulo 2^32 */
	uint64_t stalled_until;
	uint64_t sent : 56;	/* packets */
	uint64_t stalls : 8;	/* packets in a row that outlived HOQLife */
} __attribute__((aligned(CACHE_LINE / 2)));
_Static_assert(sizeof(struct lane) == CACHE_LINE / 2, "a lane is half a line");

struct vl_weight {
	uint8_t vl, weight;
};

struct arbiter {
	struct vl_weight table[2][64];	/* low, high: as set, with zero weights */
	uint8_t at[2];
	int32_t left[2];		/* weight left of the current entry, in bytes */
	int32_t high_left;		/* bytes the high table may still send before a low packet */
	uint8_t limit;			/* VLHighLimit */
};

struct link_fault {
	double loss, corrupt, duplicate, reorder;	/* probabilities */
	uint64_t delay, jitter;				/* ps */
	uint64_t reorder_by;
	uint32_t mute;					/* attribute of SMPs that it does not answer; 0: none */
	/* What has come of it, in packets */
	uint64_t lost, corrupted, doubled, not_doubled, delayed, late;
	uint64_t overtook, most;	/* came before one that had left before; most before the same */
	uint64_t latest, run;
};

struct port {
	uint32_t node, peer;		/* peer: port index, NONE or EXTERNAL; set by port_join() */
	uint32_t fs_per_byte;		/* femtoseconds: fast links take no whole ps */
	uint16_t waiting;		/* lanes with a line, one bit each */
	uint16_t mtu;			/* NeighborMTU, bytes */
	uint16_t lid;
	uint8_t num, state, epoch, lmc, op_vls;
	uint8_t busy : 1, blocked : 1, timer : 1;
	uint8_t up : 1;			/* the cable is plugged and both ends powered */
	uint8_t is_switch : 1, to_host : 1;	/* to_host: what the peer is */
	uint8_t enforce_in : 1, enforce_out : 1;
	uint8_t weighted : 1;		/* the arbiter's high table is in use */
	uint8_t timed : 1;		/* HOQLife is not for ever */
	uint8_t disturbed : 1;		/* there is a fault, or it is slow */

	struct counters counters;	/* of which the first fit the line of the port */

	/* Seldom */
	uint64_t hoq;			/* HOQLife, ps; CLOCK_NEVER */
	struct arbiter *arbiter;
	struct link_fault *fault;
	uint64_t drained;		/* when a host has taken what it got */
	uint32_t slow;			/* percent of the link's time a byte takes; 0: 100 */
	uint32_t drain;			/* of a host: as slow, for taking it; 0: it takes all at once */
	uint32_t was_peer;		/* ReLink's memory */
	uint16_t smlid;
	uint8_t phys, stall_count;
} OF_LINES;
_Static_assert(__builtin_offsetof(struct port, counters.xmit_wait) == CACHE_LINE, "a line of a port");

static inline void port_set_hoq(struct port *port, uint64_t hoq)
{
	port->hoq = hoq;
	port->timed = hoq != CLOCK_NEVER;
}

/* Of each port what others ask for: so short that a cache has all of them. */
struct wire {
	uint32_t peer;			/* as the port's */
	uint32_t delay;			/* of the cable, ps */
};

struct sma;	/* what management has set: sma.h */
struct port_sma;
struct hca;	/* shared.h */

/* A switch of 36 ports has 20 KiB of SLtoVL, of which most fabrics need 16 bytes. */
enum turns { TURNS_SET, TURNS_ALIKE, TURNS_DIFFER };

struct node {
	const struct net_node *net;
	uint32_t first;			/* its port 0; HCA's ports are first + 1 .. */
	uint8_t type, nports, dead;
	uint8_t shared;			/* no switch to management: functions share a port */
	uint8_t *lft;			/* switch; lft_top + 1 entries */
	uint32_t lft_room;
	uint16_t lft_top;
	uint8_t turns;			/* whether all of sl2vl is the same: enum turns */
	union {
		uint16_t *mft;		/* [(lid - 0xc000) * 16 + position] */
		struct hca *hca;	/* if shared */
	};
	/* [(in * (nports + 1) + out) * sls + sl]; HCA: in = out = 0. Set by relay_set_vl(). */
	uint8_t *sl2vl;
	uint64_t lifetime;		/* LifeTimeValue, ps */
	struct sma *sma;
};

struct fabric_config {
	unsigned int vls;		/* data VLs of every port, 1..15 (default 8) */
	unsigned int sls;		/* of tables, for what no SM can set (default 16) */
	unsigned int buffer;		/* bytes an input port has per VL (default 16384) */
	uint64_t switch_delay;		/* ps from header in to header out (default 100 ns) */
	uint64_t cable_delay;		/* ps, of cables without a length (default 10 ns: 2 m) */
	uint64_t seed;
	uint8_t endless;		/* lifetimes are infinite, whatever the SM sets */
};

struct flow;
struct traffic;
struct congestion;
struct ext;
struct manager;
struct journal;

struct fabric {
	struct fabric_config config;
	struct clock clock;
	const struct net *net;
	struct node *nodes;
	struct port *ports;
	struct wire *wires;
	struct port_sma *port_sma;
	struct queue *queues;		/* [port * vls + vl], then sources and copies */
	struct lane *lanes;		/* [port * vls + vl] */
	struct packet *packets;
	uint32_t *behind;		/* by packet: the next in its queue, or of the free ones */
	uint32_t nnodes, nports, nqueues, queue_room, free_queue, npackets, free_packet;
	uint32_t capacity;		/* blocks of an input queue */
	uint32_t *lids;			/* LID -> port index, for hosts; NONE */
	uint64_t rng;
	uint64_t hops, drops[NDROPS];
	struct traffic *traffic;
	struct congestion *congestion;	/* NULL: hosts and switches have none */
	struct manager *manager;	/* traps and clients; NULL in a fabric without them */
	struct ext *ext;		/* links to real HCAs */
	struct journal *journal;	/* of tables and cables; NULL: nobody wants it */
	/* Takes a PACKET_REAL that arrived at a host port of ours or leaves by an external one. */
	void (*deliver)(struct fabric *f, uint32_t port, uint32_t packet);
};

/* fabric.c */
int fabric_init(struct fabric *f, const struct net *net, const struct fabric_config *config);
void fabric_free(struct fabric *f);
uint32_t fabric_port(const struct fabric *f, uint32_t node, unsigned int num);
/* "S1"[2] as text; static buffer, four at a time. */
const char *port_name(const struct fabric *f, uint32_t port);
uint64_t fabric_random(struct fabric *f);
double fabric_chance(struct fabric *f);
/* Runs the model up to the time, or for ever if CLOCK_NEVER until nothing is left to happen. */
void fabric_run(struct fabric *f, uint64_t until);
uint32_t packet_new(struct fabric *f);
void packet_put(struct fabric *f, uint32_t packet);
uint32_t queue_new(struct fabric *f, uint32_t port, uint32_t flow);
void queue_put(struct fabric *f, uint32_t queue);
/* The other end of the port's cable; what the queues hold stays what they hold. */
void port_join(struct fabric *f, uint32_t port, uint32_t peer);
/* Blocks in an input queue that have not been credited to the sender: those that wait, and what is leaving. */
uint32_t queue_held(const struct fabric *f, uint32_t queue);
void node_lft_set(struct fabric *f, uint32_t node, unsigned int lid, uint8_t port);
uint64_t life_time(unsigned int value);	/* 4.096 us * 2^value in ps; above 19 never */
uint32_t link_fs_per_byte(unsigned int width, unsigned int speed, unsigned int ext);

/* relay.c */
/* The VL by which a packet of that SL that came in by a switch's port leaves by another. */
unsigned int relay_vl(const struct fabric *f, struct node *node, unsigned int in, unsigned int out,
		      unsigned int sl);
/* That VL from now on. HCA: in = out = 0 */
void relay_set_vl(const struct fabric *f, struct node *node, unsigned int in, unsigned int out,
		  unsigned int sl, uint8_t vl);
void relay_arrive(struct fabric *f, uint32_t port, uint32_t packet);
void relay_sent(struct fabric *f, uint32_t port, uint32_t queue);
void relay_credit(struct fabric *f, uint32_t queue, uint32_t blocks);
/* The queue's head is new: find its lane, drop it and its followers as long as they have none. */
void relay_head(struct fabric *f, uint32_t queue);
void relay_send(struct fabric *f, uint32_t port);
/* Drops the head of a queue, whether it waits at a lane or not; the next one lines up. */
void relay_discard(struct fabric *f, uint32_t queue, uint32_t counts, enum drop why);
/* One copy less of a multicast packet in the buffer of @origin, which is free after the last. */
void relay_copy_gone(struct fabric *f, uint32_t origin, uint32_t original, uint64_t when);
void relay_leave_line(struct fabric *f, uint32_t queue);
static inline uint32_t packet_blocks(const struct packet *p)
{
	return (p->len + BLOCK - 1) / BLOCK;
}

/* drop.c: a packet ends here; the port counts it as the standard says */
void relay_drop(struct fabric *f, uint32_t port, uint32_t packet, enum drop why);

/* lifetime.c */
void lifetime_arm(struct fabric *f, uint32_t port);
void lifetime_expire(struct fabric *f, uint32_t port);

/* arbiter.c */
void arbiter_init(struct arbiter *a, unsigned int vls);
/* To be called when a table of the port's has been written. */
void arbiter_changed(struct port *port);
/* Which of the port's ready VLs (bits) sends its packet of that many bytes (per VL) now. */
unsigned int arbiter_pick(struct port *port, unsigned int ready, const uint32_t *bytes);

/* link.c */
void link_up(struct fabric *f, uint32_t port);		/* physically; both ends go to INIT */
void link_down(struct fabric *f, uint32_t port);
/* What one end's new state means for queues and lanes. */
void port_set_state(struct fabric *f, uint32_t port, enum port_state state);
void port_activate_all(struct fabric *f);
void link_set_speed(struct fabric *f, uint32_t port);

/* multicast.c */
void multicast_head(struct fabric *f, uint32_t queue);

/* deadlock.c */
/**
 * deadlock_find() - look for a cycle of input queues each of which waits for room in the next
 * @cycle: queues of one cycle, in order; room for as many as the array holds
 * Return: its length; 0 if there is none. No false alarms: nothing of what the cycle's queues
 * wait for is on a wire or leaving.
 */
unsigned int deadlock_find(struct fabric *f, uint32_t *cycle, unsigned int room);
void deadlock_print(const struct fabric *f, const uint32_t *cycle, unsigned int n, FILE *file);

/* routes.c: tables without a subnet manager */
int routes_minhop(struct fabric *f);

#endif
