/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sockets to the module, as ctl.c, ctl_send.c and ctl_event.c share them. */
#ifndef RP_CTL_SOCKET_H
#define RP_CTL_SOCKET_H

#include <pthread.h>

#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "ctl.h"
#include "list.h"

/**
 * struct rp_ctl - the control thread and its sockets
 * @lock: protects @started, @running and @calls
 * @done: something of those has changed
 * @wakefd: wakes the thread for @calls
 * @events: registered: events come here, requests go out here
 * @requests: dumps and questions that are waited for
 * @families: nlctrl's notifications: the module comes and goes
 * @family: 0: no module
 * @knows: bits of enum repath_knows that the module has said
 *
 * All but what @lock protects is the control thread's own.
 */
struct rp_ctl {
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool started, running;
	pthread_t thread;
	int wakefd;
	struct list_head calls;
	struct nl_sock *events;
	struct nl_sock *requests;
	struct nl_sock *families;
	int family;
	uint32_t knows;
};

extern struct rp_ctl rp_ctl;

/* ctl_event.c: callbacks of @events */
int rp_ctl_event_in(struct nl_msg *msg, void *arg);
int rp_ctl_event_error(struct sockaddr_nl *nla, struct nlmsgerr *err, void *arg);

/* ctl_send.c: callback of a request that is waited for; @arg is an int that becomes the error */
int rp_ctl_request_failed(struct sockaddr_nl *nla, struct nlmsgerr *err, void *arg);
/* ctl_send.c: false: there is none, or not all of it */
bool rp_ctl_parse_conn(struct nlattr *nest, struct rp_ctl_conn *c);

#endif /* RP_CTL_SOCKET_H */
