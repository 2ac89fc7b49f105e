/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A software InfiniBand HCA: the objects.
 *
 *	vhca_dev --- 1..2 vhca_port --- lanes, one per VL --- wire, a cable to vfabric
 *	   |             |
 *	rdmavt        SMA, PMA, traps
 *	   |
 *	vhca_qp (the private part of an rvt_qp): its engine builds packets into a lane, and waits there
 *	for room; the port's pump is the only one that touches the wire: it sends what lanes hold
 *	as far as there are credits, and gives what comes to the queue pairs.
 *
 * Locks, outer first: qp->r_lock, qp->s_hlock, qp->s_lock, port->lane_lock. Everything that changes
 * a queue pair's transport state holds r_lock and s_lock, see vhca_qp_lock().
 */
#ifndef VHCA_H
#define VHCA_H

#include <linux/pci.h>
#include <linux/workqueue.h>
#include <rdma/rdma_vt.h>
#include <rdma/rdmavt_qp.h>
#include <rdma/rdmavt_cq.h>
#include <rdma/ib_smi.h>

#include "arbiter.h"
#include "credit.h"
#include "packet.h"
#include "wire.h"

#define VHCA_MAX_PORTS 2
#define VHCA_PKEYS 32			/* one block */
#define VHCA_GUIDS 32			/* four blocks, alias GUIDs included */
#define VHCA_LANE_LOOP 16		/* packets of this port to itself */
#define VHCA_LANES 17
#define VHCA_MAX_TRAPS 16
#define VHCA_MAX_RD_ATOMIC 16
#define VHCA_NO_VGUID ~0ull
#define VHCA_GID_PREFIX 0xfe80000000000000ull

struct ib_sa_query;
struct socket;
struct vhca_dev;
struct vhca_port;

/* What PMA counts (IBA 1.2.1 vol 1, 16.1.3.5): in units of the wire, 64 bits, never stopped. */
struct vhca_counters {
	u64 xmit_data, rcv_data;	/* words */
	u64 xmit_pkts, rcv_pkts;
	u64 unicast_xmit, unicast_rcv, multicast_xmit, multicast_rcv;
	u64 xmit_wait;			/* ticks, each the time of a word at 8 Gbit/s per lane of 4 */
	u64 xmit_discards;
	u64 symbol_errors, link_recovers, link_downed;
	u64 rcv_errors, rcv_switch_relay, xmit_constraint, rcv_constraint;
	u64 integrity, overruns, vl15_dropped;
};

struct vhca_lane {
	struct list_head packets;
	struct list_head waiting;	/* vhca_qp.waiting */
	u32 count;
	u32 places;			/* promised to queue pairs; vhca_qp.place_in */
};

/* What the transport counts beside rdmavt's. */
struct vhca_rc_counters {
	u64 acks;			/* sent, without NAKs */
	u64 ack_requests;		/* executed, that asked for an ACK */
	u64 rnr_naks;			/* sent */
	u64 read_replays, atomic_replays;
};

/* The cable; its pump is the only user, but for kick. */
struct vhca_wire {
	struct socket *socket;
	void (*data_ready)(struct sock *sk);
	struct work_struct pump;
	struct delayed_work tick;
	struct vhca_credits credits;
	u32 session, sequence;
	u32 next;			/* the switch's sequence */
	unsigned long heard, told;	/* jiffies */
	u64 blocked_since;		/* ns; there are packets, and no credits */
	bool attached;			/* we have had WELCOME */
	bool up;			/* both ends say so */
	bool closing;
	bool complained;
	u8 width, speed, ext;		/* the cable's */
	u8 era;				/* of the link, as the switch counts */
	u8 *buffer;
};

struct vhca_trap {
	u8 notice[64];
	u64 tid;
	u8 tries;
};

struct vhca_port {
	struct rvt_ibport ibp;
	struct vhca_dev *dev;
	u8 num;

	/* Set by SMPs; ibp.lock for what is more than a word. */
	u16 lid;
	u8 lmc, state, phys, link_default;
	u8 neighbor_mtu;		/* enum ib_mtu */
	u8 op_vls;			/* PortInfo.OperationalVLs: 1..5 */
	u8 hoq_life;			/* VLStallCount and HOQLife as set; not used by an HCA */
	u8 enforce;			/* the low bits beside OperationalVLs */
	u8 speed_enabled, width_enabled, error_limits;
	u8 sl2vl[16];
	u16 pkeys[VHCA_PKEYS];
	__be64 guids[VHCA_GUIDS];

	spinlock_t lane_lock;		/* lanes, arbiter */
	struct vhca_lane lane[VHCA_LANES];
	struct vhca_arbiter arbiter;
	u32 lane_most;			/* packets that a lane has held at a time */

	struct vhca_wire wire;
	struct vhca_counters counters, counters_base[2];
	struct vhca_rc_counters rc;
	u64 wire_lost;			/* messages of the switch that did not come */

	spinlock_t trap_lock;
	struct vhca_trap traps[VHCA_MAX_TRAPS];
	unsigned int ntraps;
	bool traps_stopped;
	struct delayed_work trap_work;

	u32 reregistered;		/* how often the SM asked for it */
	bool news;			/* for VFs; the pump tells them */
	struct delayed_work vguid_work;	/* a PF's */
	struct ib_sa_query *vguid_query;
	bool vguids_known, vguids_stopped;
};

struct vhca_dev {
	struct rvt_dev_info rdi;	/* first: rvt_alloc_device() */
	struct list_head list;
	struct device *parent;
	struct pci_dev *pci;		/* rdmavt wants one to print its name */
	struct workqueue_struct *wq;
	char host[64];			/* whose place in the topology it takes */
	char where[64];			/* vfabric's address, as given */
	struct sockaddr_storage to;
	int to_size;
	u64 guid;
	unsigned int nports;
	unsigned int function, vfs;	/* of a port that is shared; a PF has VFs, a VF its number */
	int numbers;			/* which HCA's it gives out; negative: its own */
	u64 vguid[VHCA_MAX_FUNCTIONS];	/* a PF's choice for its VFs; 0: the SM's, or NO_VGUID */
	bool registered;		/* events go somewhere */
	struct vhca_port port[VHCA_MAX_PORTS];
};

/* Transport state of a queue pair beyond rdmavt's; under r_lock and s_lock. */
struct vhca_qp {
	struct rvt_qp *qp;
	struct work_struct work;	/* runs the engine */

	struct list_head waiting;	/* at a lane; port->lane_lock */
	struct vhca_port *waits_at;	/* there it waits, or has waited */
	u8 waits_in;
	bool woken;			/* by that lane, whose next one is still to be; its lane_lock */
	struct vhca_port *place_at;	/* a place in a lane is ours, or NULL; its lane_lock */
	u8 place_in;
	atomic_t queued;		/* packets of ours in lanes */

	unsigned long events;		/* bits of enum ib_event_type, raised after unlocking */

	/* Requester */
	u32 next_new;			/* the first PSN that was never sent */
	u32 sge_psn;			/* s_sge is at this PSN's data, if sge_valid */
	u32 read_psn;			/* s_rdma_read_sge is, if read_valid */
	bool sge_valid, read_valid;
	bool implied_nak;		/* we went back for a lost response; once until one comes */
	bool draining, drain_notify;	/* in SQD; drain_notify: somebody waits for the event */

	struct rdma_ah_attr before;	/* apm.c, within one modify */
	bool ordered;
	bool mig_refused;		/* the owner has been told */

	/* Responder */
	bool ack_pending, nak_sent;
	u32 ack_psn;
	u32 ack_syndrome;		/* AETH of a NAK in place of the ACK, or 0 */
	bool refusing;			/* that NAK ends the connection when it is sent */
	enum ib_wc_status refused_as;	/* of the receive that is under way then */
	u32 reply_psn;			/* the next read response, if reply_active */
	bool reply_active;
	struct rvt_sge_state uc_sge;	/* UC: how far a receive was filled */
};

static inline struct vhca_dev *to_vhca(struct ib_device *device)
{
	return container_of(ib_to_rvt(device), struct vhca_dev, rdi);
}

static inline struct vhca_qp *to_vhca_qp(struct rvt_qp *qp)
{
	return qp->priv;
}

static inline struct vhca_port *vhca_port(struct vhca_dev *dev, u32 num)
{
	return &dev->port[num - 1];
}

static inline struct vhca_port *vhca_qp_port(struct rvt_qp *qp)
{
	return vhca_port(to_vhca(qp->ibqp.device), qp->port_num);
}

/* Whether a LID is one of the port's, by LMC. */
static inline bool vhca_is_my_lid(const struct vhca_port *port, u16 lid)
{
	return port->lid && !((lid ^ port->lid) >> port->lmc);
}

/* Our end of a path: the port's LID with the path's bits, as far as LMC leaves them to us. */
static inline u16 vhca_path_lid(const struct vhca_port *port, const struct rdma_ah_attr *path)
{
	return port->lid | (rdma_ah_get_path_bits(path) & ((1 << port->lmc) - 1));
}

/* Whether a packet to that LID stays here. On a shared port data may be for another function. */
static inline bool vhca_loops(const struct vhca_port *port, u16 lid, u8 vl)
{
	return vhca_is_my_lid(port, lid) &&
		(vl == 15 || (!port->dev->vfs && !port->dev->function));
}

/* The VL of a service level, or 15 if it is mapped to none: such packets are dropped (7.6.6). */
static inline u8 vhca_sl_to_vl(const struct vhca_port *port, u8 sl)
{
	u8 vl = READ_ONCE(port->sl2vl[sl & 15]);

	return vl < 15 && vl < (port->op_vls == 5 ? 15 : 1 << (port->op_vls - 1)) ? vl : 15;
}

extern bool vhca_with_apm, vhca_with_sqd;
extern int vhca_driver_id;

/* hotplug.c */
int vhca_hotplug_init(void);
void vhca_hotplug_exit(void);

/* device.c */
int vhca_dev_register(struct vhca_dev *dev);
void vhca_dev_unregister(struct vhca_dev *dev);
/* NULL for another driver's. */
struct vhca_dev *vhca_dev_of(struct ib_device *device);
void vhca_dev_event(struct vhca_port *port, enum ib_event_type event);

/* agents.c */
int vhca_agents_init(void);
void vhca_agents_exit(void);

/* mmap.c */
int vhca_mmap(struct ib_ucontext *context, struct vm_area_struct *vma);

/* port.c */
void vhca_port_init(struct vhca_dev *dev, unsigned int num);
int vhca_port_query(struct rvt_dev_info *rdi, u32 num, struct ib_port_attr *attr);
/* The physical link has come up or gone down; the pump calls it. */
void vhca_port_link(struct vhca_port *port, bool up);
void vhca_port_set_state(struct vhca_port *port, u8 state);

#endif
