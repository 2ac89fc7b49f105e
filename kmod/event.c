// SPDX-License-Identifier: GPL-2.0
/*
 * Events on the multicast group "monitor", in the network namespace of the device. One message goes
 * to all listeners, whatever PID namespace they are in: it tells processes by their PIDs in the
 * initial one, and only in the initial network namespace; who listens elsewhere has to dump.
 */
#include <linux/pid_namespace.h>

#include "device.h"
#include "event.h"
#include "netlink.h"
#include "track.h"

#define EVENT_SIZE 1280

static struct pid_namespace *pids_of(struct repath_device *dev)
{
	return net_eq(repath_device_net(dev), &init_net) ? &init_pid_ns : NULL;
}

/**
 * repath_event_is_wanted - does anybody listen to events of a device?
 * @dev: the device
 *
 * Context: any, of who tracks.
 */
bool repath_event_is_wanted(const struct repath_device *dev)
{
	return repath_nl_hook_has_listeners(repath_device_net(dev), REPATH_NL_MONITOR);
}

static struct sk_buff *event_new(struct repath_device *dev, u8 cmd, void **hdr)
{
	/* Queue pairs come by the thousand; mostly nobody listens. */
	if (!repath_nl_has_listeners(repath_device_net(dev), REPATH_NL_MONITOR))
		return NULL;
	return repath_nl_msg_new(cmd, EVENT_SIZE, hdr);
}

static void event_send(struct repath_device *dev, struct sk_buff *skb, void *hdr, int err,
		       enum repath_ev_action action)
{
	/* EVENT_SIZE holds every nest; a listener that misses an event finds out by dumping. */
	if (WARN_ON_ONCE(err || nla_put_u8(skb, REPATH_A_EV_ACTION, action))) {
		nlmsg_free(skb);
		return;
	}
	repath_nl_multicast(repath_device_net(dev), REPATH_NL_MONITOR, skb, hdr);
}

/**
 * repath_event_qp - EV_QP
 * @rqp: the queue pair
 * @action: what has happened to it
 */
void repath_event_qp(struct repath_qp *rqp, enum repath_ev_action action)
{
	struct sk_buff *skb;
	void *hdr;

	skb = event_new(rqp->dev, REPATH_CMD_EV_QP, &hdr);
	if (skb)
		event_send(rqp->dev, skb, hdr, repath_fill_qp(skb, rqp, pids_of(rqp->dev)), action);
}

/**
 * repath_event_user - EV_PROCESS
 * @user: the process on a device
 * @action: what has happened to it
 */
void repath_event_user(struct repath_user *user, enum repath_ev_action action)
{
	struct sk_buff *skb;
	void *hdr;

	skb = event_new(user->dev, REPATH_CMD_EV_PROCESS, &hdr);
	if (skb)
		event_send(user->dev, skb, hdr, repath_fill_process(skb, user, pids_of(user->dev)),
			   action);
}

static int event_of_user(struct repath_user *user, void *arg)
{
	repath_event_user(user, *(enum repath_ev_action *)arg);
	return 0;
}

/**
 * repath_event_process - EV_PROCESS, one for each device that the process uses
 * @tgid: the process
 * @action: what has happened to it
 */
void repath_event_process(struct pid *tgid, enum repath_ev_action action)
{
	repath_user_for_each(NULL, tgid, event_of_user, &action);
}

/**
 * repath_event_device - EV_DEVICE
 * @dev: the device
 * @action: what has happened to it
 */
void repath_event_device(struct repath_device *dev, enum repath_ev_action action)
{
	struct sk_buff *skb;
	void *hdr;

	skb = event_new(dev, REPATH_CMD_EV_DEVICE, &hdr);
	if (skb)
		event_send(dev, skb, hdr, repath_fill_device(skb, dev), action);
}

/**
 * repath_event_path - EV_PATH
 * @dev: the device
 * @port: its port
 * @path: the path
 * @action: what has happened to it
 */
void repath_event_path(struct repath_device *dev, u32 port, const struct repath_learnt *path,
		       enum repath_ev_action action)
{
	struct sk_buff *skb;
	void *hdr;

	skb = event_new(dev, REPATH_CMD_EV_PATH, &hdr);
	if (skb)
		event_send(dev, skb, hdr, repath_fill_learnt(skb, dev, port, path), action);
}
