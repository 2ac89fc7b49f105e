/* SPDX-License-Identifier: GPL-2.0 */
/* HELLO: the two ends of a connection tell each other their tokens. See docs/protocol.md. */
#ifndef REPATH_HELLO_H
#define REPATH_HELLO_H

#include <linux/types.h>

struct repath_conn;
struct repath_device;
struct repath_hello;
struct repath_qp;

int repath_hello_init(void);
void repath_hello_exit(void);

/* Start or repeat HELLO; @force: although the peer did not answer a moment ago. conn mutex held. */
void repath_hello_start(struct repath_conn *conn, bool force);
/* A new connection: take the HELLO that came before it was there. conn mutex held. */
void repath_hello_early(struct repath_conn *conn);
/* Is somebody connected to a queue pair that is connected to nobody yet, and who? conn mutex held. */
bool repath_hello_is_early(const struct repath_qp *rqp, struct repath_hello *from);
/* A HELLO has come in on @dev. Takes the conn mutex. Returns enum repath_peer_status. */
u8 repath_hello_receive(struct repath_device *dev, const void *data, u32 len);
/* The device goes away: forget what was kept for it. */
void repath_hello_device_removed(struct repath_device *dev);

#endif /* REPATH_HELLO_H */
