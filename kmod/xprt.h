/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The carrier of peer messages: IB CM service ID resolution, fragment by fragment.
 * Knows nothing of connections or processes.
 */
#ifndef REPATH_XPRT_H
#define REPATH_XPRT_H

#include <linux/if_ether.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

struct repath_device;

/**
 * struct repath_addr - how a port of this host reaches another port
 * @dgid: the other port's GID; all zero: reached by LID alone
 * @port: own port
 * @sgid_index: own GID, if @dgid is given
 * @dlid: 0 on RoCE
 * @sl: service level
 * @traffic_class: of the GRH
 * @hop_limit: of the GRH
 * @flow_label: of the GRH
 * @dmac: RoCE; valid if @has_dmac, else found when something is sent
 * @has_dmac: see @dmac
 */
struct repath_addr {
	union ib_gid dgid;
	u32 port;
	u32 sgid_index;
	u32 dlid;
	u8 sl;
	u8 traffic_class;
	u8 hop_limit;
	u32 flow_label;
	u8 dmac[ETH_ALEN];
	bool has_dmac;
};

static inline bool repath_addr_has_gid(const struct repath_addr *addr)
{
	return memchr_inv(&addr->dgid, 0, sizeof(addr->dgid));
}

/* An address with a GID is its GID; without, its LID. */
static inline bool repath_addr_is_same_place(const struct repath_addr *a,
					     const struct repath_addr *b)
{
	if (repath_addr_has_gid(a) || repath_addr_has_gid(b))
		return !memcmp(&a->dgid, &b->dgid, sizeof(a->dgid));
	return a->dlid == b->dlid;
}

/* By GID and by LID. */
static inline bool repath_addr_is_same(const struct repath_addr *a, const struct repath_addr *b)
{
	return a->dlid == b->dlid && !memcmp(&a->dgid, &b->dgid, sizeof(a->dgid));
}

/**
 * typedef repath_xprt_done_fn - a message has been answered, or has failed
 * @arg: as given to repath_xprt_send()
 * @err: 0: the other module answered; else -ETIMEDOUT, -EHOSTUNREACH, -ENOPROTOOPT (no module
 *	listens there), -ESHUTDOWN (device went away), -ENOMEM, or what repath_xprt_check_fn said
 * @status: the answer, enum repath_peer_status; valid if @err is 0
 *
 * Called once for every message that repath_xprt_send() took, in process context, no lock held.
 */
typedef void (*repath_xprt_done_fn)(void *arg, int err, u8 status);

int repath_xprt_init(void);
void repath_xprt_exit(void);

/* ib_client add and remove. Nothing of the device is used any more when remove returns. */
int repath_xprt_add_device(struct repath_device *dev);
void repath_xprt_remove_device(struct repath_device *dev);

/**
 * typedef repath_xprt_check_fn - is a message still of use?
 * @arg: as given to repath_xprt_send()
 *
 * Asked before any of the message is sent, in process context, no lock held.
 *
 * Return: 0, or a negative errno: nothing is sent, and @done is told that.
 */
typedef int (*repath_xprt_check_fn)(void *arg);

/**
 * struct repath_xprt_send - what repath_xprt_send() is given
 * @to: the port to send to
 * @order: of what a shim says: messages with the same non-zero number to the same port arrive in the order of
 *	sending; 0: what the module itself says, in no order
 * @payer: with whom others of the same kind take turns, however much he has to say: a process, compared only;
 *	NULL: with each port
 * @type: enum repath_msg
 * @data: the message, allocated with kvmalloc; taken over in every case
 * @len: its length, at most REPATH_WIRE_MAX
 * @answer: of a question, of one fragment: takes the bytes that come back with REPATH_PEER_OK, and is valid until
 *	@done has returned; else NULL
 * @answer_len: bytes there
 * @check: or NULL
 * @done: called when it was answered or has failed, unless an error is returned
 * @arg: for @check and @done; valid until @done is called
 */
struct repath_xprt_send {
	const struct repath_addr *to;
	u64 order;
	const void *payer;
	u8 type;
	void *data;
	u32 len;
	void *answer;
	u32 answer_len;
	repath_xprt_check_fn check;
	repath_xprt_done_fn done;
	void *arg;
};

/**
 * repath_xprt_send - send a message
 * @dev: the device to send from
 * @msg: the message
 *
 * Context: may sleep for memory, not for the network; conn mutex may be held.
 * Return: 0, -ENODEV (the device is going or has no CM), -ENOMEM, -EMSGSIZE.
 */
int repath_xprt_send(struct repath_device *dev, const struct repath_xprt_send *msg);

/* In how many jiffies a message of one fragment that nobody answers times out, at least. */
unsigned long repath_xprt_patience(void);

/* Messages of the device that are not answered yet: who releases it waits for none to be left. */
bool repath_xprt_busy(struct repath_device *dev);

/* Number and error of enum repath_peer_status as a positive errno for EV_PEER_SENT. */
int repath_xprt_status_errno(u8 status);

#endif /* REPATH_XPRT_H */
