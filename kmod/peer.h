/* SPDX-License-Identifier: GPL-2.0 */
/* Messages from shim to shim: over the wire, or straight to a process of this host. */
#ifndef REPATH_PEER_CHANNEL_H
#define REPATH_PEER_CHANNEL_H

#include <linux/types.h>
#include <repath_peer.h>

struct genl_info;
struct repath_conn;
struct repath_device;
struct sk_buff;

/* What a shim says; all else is between modules. */
static inline bool repath_peer_is_shims(u8 type)
{
	return type >= REPATH_MSG_PREPARE && type < __REPATH_MSG_MAX &&
	       type != REPATH_MSG_RESOLVE && type != REPATH_MSG_MOVED;
}

int repath_peer_init(void);
void repath_peer_exit(void);

/* PEER_SEND */
int repath_peer_send_cmd(struct sk_buff *skb, struct genl_info *info);
/* A whole message has come in. Process context; returns enum repath_peer_status. */
u8 repath_peer_receive(struct repath_device *dev, u8 type, const void *data, u32 len);
/* Say that this end is gone; once, or until it is heard. conn mutex held. */
void repath_peer_send_gone(struct repath_conn *conn, bool waited_for);
/* Tell the own shim that the peer's end is gone. conn mutex held. */
void repath_peer_tell_gone(struct repath_conn *conn);
/* Messages that were dropped because their tokens are not known. */
u64 repath_peer_bad_tokens(void);

#endif /* REPATH_PEER_CHANNEL_H */
