// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a device, in its network namespace: to those who have asked to LISTEN, each with PIDs of its own
 * namespace; and on the multicast group "monitor", which is one message for all and names no process.
 */
#include <linux/pid_namespace.h>

#include "device.h"
#include "event.h"
#include "listen.h"
#include "netlink.h"
#include "track.h"

#define EVENT_SIZE 1280

/**
 * repath_event_is_wanted - does anybody listen to events of a device?
 * @dev: the device
 *
 * Context: any, of who tracks.
 */
bool repath_event_is_wanted(const struct repath_device *dev)
{
	struct net *net = repath_device_net(dev);

	return repath_listen_any(net) || repath_nl_hook_has_listeners(net, REPATH_NL_MONITOR);
}

/* An event: what has happened to what, of which @fill tells a reader what he may know. */
struct event {
	u8 action;
	int (*fill)(struct sk_buff *skb, const struct event *event, struct pid_namespace *ns);
	struct repath_device *dev;
	union {
		struct repath_qp *rqp;
		struct repath_user *user;
		const struct repath_learnt *path;
	};
	u32 port;
};

/* EVENT_SIZE holds every nest; a listener that misses an event finds out by dumping. */
static int event_fill(struct sk_buff *skb, struct pid_namespace *ns, void *arg)
{
	const struct event *event = arg;

	return event->fill(skb, event, ns) ?: nla_put_u8(skb, REPATH_A_EV_ACTION, event->action);
}

/* Queue pairs come by the thousand; mostly nobody listens. */
static void event_send(u8 cmd, struct event *event)
{
	struct net *net = repath_device_net(event->dev);

	repath_listen_tell(net, cmd, EVENT_SIZE, event_fill, event);
	repath_listen_tell_group(net, REPATH_NL_MONITOR, cmd, EVENT_SIZE, event_fill, event);
}

static int fill_qp(struct sk_buff *skb, const struct event *event, struct pid_namespace *ns)
{
	return repath_fill_qp(skb, event->rqp, ns);
}

/* Whom the reader can not see he is not told of. */
static int fill_user(struct sk_buff *skb, const struct event *event, struct pid_namespace *ns)
{
	if (ns && !pid_nr_ns(event->user->pid, ns))
		return -ENODATA;
	return repath_fill_process(skb, event->user, ns);
}

static int fill_device(struct sk_buff *skb, const struct event *event, struct pid_namespace *ns)
{
	return repath_fill_device(skb, event->dev);
}

static int fill_path(struct sk_buff *skb, const struct event *event, struct pid_namespace *ns)
{
	return repath_fill_learnt(skb, event->dev, event->port, event->path);
}

/**
 * repath_event_qp - EV_QP
 * @rqp: the queue pair
 * @action: what has happened to it
 */
void repath_event_qp(struct repath_qp *rqp, enum repath_ev_action action)
{
	struct event event = { .action = action, .fill = fill_qp, .dev = rqp->dev, .rqp = rqp };

	event_send(REPATH_CMD_EV_QP, &event);
}

/**
 * repath_event_user - EV_PROCESS
 * @user: the process on a device
 * @action: what has happened to it
 */
void repath_event_user(struct repath_user *user, enum repath_ev_action action)
{
	struct event event = { .action = action, .fill = fill_user, .dev = user->dev, .user = user };

	event_send(REPATH_CMD_EV_PROCESS, &event);
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
	struct event event = { .action = action, .fill = fill_device, .dev = dev };

	event_send(REPATH_CMD_EV_DEVICE, &event);
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
	struct event event = { .action = action, .fill = fill_path, .dev = dev, .path = path,
			       .port = port };

	event_send(REPATH_CMD_EV_PATH, &event);
}
