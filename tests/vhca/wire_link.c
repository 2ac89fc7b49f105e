// SPDX-License-Identifier: GPL-2.0
#include <linux/in.h>
#include <linux/net.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "function.h"
#include "lane.h"
#include "receive.h"
#include "wire_link.h"

#define TICK_MS 100
#define TURN 64			/* packets each way before the other way gets its turn */
#define ROUNDS 16		/* turns before others get the processor */
#define SOCKET_ROOM (32 << 20)	/* more than VHCA_WINDOW on all VLs, whatever an skb costs */

static bool disabled(const struct vhca_port *port)
{
	return port->phys == IB_PORT_PHYS_STATE_DISABLED;
}

static void tell(struct vhca_port *port, enum vhca_type type, u8 vl, const void *body, size_t size)
{
	struct vhca_wire *w = &port->wire;
	struct vhca_header h = {
		.magic = cpu_to_be32(VHCA_MAGIC), .version = VHCA_VERSION, .type = type,
		.port = port->num, .vl = vl, .session = cpu_to_be32(w->session),
		.sequence = cpu_to_be32(w->sequence++), .guid = cpu_to_be64(port->dev->guid),
		.link = disabled(port) ? VHCA_LINK_DOWN : VHCA_LINK_UP,
		.width = w->width, .speed = w->speed, .ext = w->ext, .length = cpu_to_be16(size),
		.function = port->dev->function, .era = w->era,
	};
	struct kvec vec[2] = { { &h, sizeof(h) }, { (void *)body, size } };
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };

	vhca_credits_tell(&w->credits, &h);
	w->told = jiffies;
	/* An error is the cable's: vfabric is gone, which its silence will tell. */
	kernel_sendmsg(w->socket, &msg, vec, size ? 2 : 1, sizeof(h) + size);
}

static void link_down(struct vhca_port *port)
{
	if (!port->wire.up)
		return;
	port->wire.up = false;
	vhca_port_link(port, false);
}

static void link_up(struct vhca_port *port)
{
	struct vhca_wire *w = &port->wire;

	vhca_credits_reset(&w->credits);
	w->blocked_since = 0;
	w->up = true;
	vhca_port_link(port, true);
}

static void detach(struct vhca_port *port)
{
	struct vhca_wire *w = &port->wire;

	link_down(port);
	w->attached = false;
	/* What is still on its way to the old session is not ours. */
	w->session = get_random_u32();
	w->sequence = 0;
	w->era = 0;
	vhca_credits_reset(&w->credits);
}

static void refused(struct vhca_port *port, const u8 *why, unsigned int size)
{
	if (!port->wire.complained)
		pr_warn("vhca: %s port %u at %s of %s: refused: %.*s\n",
			dev_name(&port->dev->rdi.ibdev.dev), port->num, port->dev->host,
			port->dev->where, (int)min(size, 100u), why);
	port->wire.complained = true;
}

/* The switch's view of the link, in every message. */
static void take_link(struct vhca_port *port, const struct vhca_header *h)
{
	struct vhca_wire *w = &port->wire;
	bool changed = h->era != w->era;

	/* Another era than this one's: it was down, whether we have heard that or not. */
	if (changed)
		link_down(port);
	w->era = h->era;
	w->width = h->width;
	w->speed = h->speed;
	w->ext = h->ext;
	if (h->link != VHCA_LINK_UP || disabled(port))
		link_down(port);
	else if (!w->up)
		link_up(port);
	/* The switch does not train the link before it knows that we have heard. */
	if (changed)
		tell(port, VHCA_FLOW, 0, NULL, 0);
}

static void message(struct vhca_port *port, size_t size, struct vhca_batch *batch)
{
	struct vhca_wire *w = &port->wire;
	u8 *body = w->buffer + sizeof(struct vhca_header);
	struct vhca_header h;
	unsigned int length;

	if (size < sizeof(h))
		return;
	memcpy(&h, w->buffer, sizeof(h));
	length = be16_to_cpu(h.length);
	if (be32_to_cpu(h.magic) != VHCA_MAGIC || h.version != VHCA_VERSION ||
	    length != size - sizeof(h) || be32_to_cpu(h.session) != w->session ||
	    be64_to_cpu(h.guid) != port->dev->guid || h.port != port->num)
		return;
	w->heard = jiffies;
	switch (h.type) {
	case VHCA_REFUSED:
		refused(port, body, length);
		return;
	case VHCA_BYE:
		detach(port);
		return;
	case VHCA_WELCOME:
		if (!w->attached)
			w->next = be32_to_cpu(h.sequence);
		w->attached = true;
		w->complained = false;
		break;
	case VHCA_DATA:
	case VHCA_FLOW:
	case VHCA_PORT:
		if (!w->attached)
			return;
		break;
	default:
		return;
	}
	port->wire_lost += vhca_wire_gap(&w->next, be32_to_cpu(h.sequence));
	take_link(port, &h);
	if (!w->up)
		return;
	vhca_credits_take(&w->credits, &h);
	if (h.type == VHCA_DATA)
		vhca_receive(port, body, length, false, batch);
	else if (h.type == VHCA_PORT && port->dev->function &&
		 length == sizeof(struct vhca_port_news))
		vhca_function_follow(port, (struct vhca_port_news *)body);
}

static unsigned int receive_some(struct vhca_port *port, struct vhca_batch *batch)
{
	struct vhca_wire *w = &port->wire;
	unsigned int n;

	for (n = 0; n < TURN; n++) {
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
		struct kvec vec = { w->buffer, sizeof(struct vhca_header) + VHCA_MAX_PACKET };
		int size = kernel_recvmsg(w->socket, &msg, &vec, 1, vec.iov_len, msg.msg_flags);

		if (size == -EAGAIN)
			break;
		if (size >= 0 && !(msg.msg_flags & MSG_TRUNC))
			message(port, size, batch);
	}
	if (w->up && vhca_credits_news(&w->credits))
		tell(port, VHCA_FLOW, 0, NULL, 0);
	return n;
}

static void count_sent(struct vhca_port *port, const struct vhca_packet *packet)
{
	struct vhca_counters *c = &port->counters;
	u16 dlid = get_unaligned_be16(packet->bytes + 2);

	c->xmit_pkts++;
	c->xmit_data += packet->size / 4;
	if (dlid >= VHCA_LID_MULTICAST && dlid != VHCA_LID_PERMISSIVE)
		c->multicast_xmit++;
	else
		c->unicast_xmit++;
}

/* PortXmitWait: how long there were packets and no credits. */
static void count_wait(struct vhca_port *port, bool blocked)
{
	struct vhca_wire *w = &port->wire;
	u64 now = ktime_get_ns();

	if (w->blocked_since)
		port->counters.xmit_wait += div_u64((now - w->blocked_since) *
						    (vhca_wire_mbps(port) / 32), 1000);
	w->blocked_since = blocked ? now : 0;
}

static unsigned int send_some(struct vhca_port *port, struct vhca_batch *batch)
{
	struct vhca_wire *w = &port->wire;
	struct vhca_packet *packet;
	bool blocked;
	unsigned int n;

	for (n = 0; n < TURN; n++) {
		packet = vhca_lane_next(port, &blocked);
		if (blocked || w->blocked_since)
			count_wait(port, blocked);
		if (!packet)
			break;
		if (packet->lane == VHCA_LANE_LOOP) {
			vhca_receive(port, packet->bytes, packet->size, true, batch);
			port->ibp.n_loop_pkts++;
		} else if (w->up) {
			vhca_packet_seal(packet);
			if (packet->lane < VHCA_DATA_VLS)
				w->credits.sent[packet->lane] += vhca_blocks(packet->size);
			count_sent(port, packet);
			tell(port, VHCA_DATA, packet->lane, packet->bytes, packet->size);
		}
		kfree(packet);
	}
	return n;
}

static void tell_vfs(struct vhca_port *port)
{
	struct vhca_port_news news;

	WRITE_ONCE(port->news, false);
	vhca_function_news(port, &news);
	tell(port, VHCA_PORT, 0, &news, sizeof(news));
}

static void keep(struct vhca_port *port)
{
	struct vhca_wire *w = &port->wire;

	if (w->attached && READ_ONCE(port->news))
		tell_vfs(port);
	if (w->attached && time_after(jiffies, w->heard + msecs_to_jiffies(VHCA_DEAD_MS)))
		detach(port);
	if (w->up && disabled(port)) {
		link_down(port);
		tell(port, VHCA_FLOW, 0, NULL, 0);
	}
	if (!w->attached) {
		if (!disabled(port) &&
		    time_after_eq(jiffies, w->told + msecs_to_jiffies(VHCA_HELLO_MS)))
			tell(port, VHCA_HELLO, 0, port->dev->host, strlen(port->dev->host));
	} else if (time_after_eq(jiffies, w->told + msecs_to_jiffies(VHCA_KEEPALIVE_MS / 2))) {
		if (port->dev->vfs)
			tell_vfs(port);
		else
			tell(port, VHCA_FLOW, 0, NULL, 0);
	}
}

static void pump(struct work_struct *work)
{
	struct vhca_port *port = container_of(work, struct vhca_port, wire.pump);
	struct vhca_batch batch = {};
	unsigned int rounds, n;

	for (rounds = 0; rounds < ROUNDS; rounds++) {
		keep(port);
		n = receive_some(port, &batch);
		vhca_batch_run(&batch);
		n += send_some(port, &batch);
		vhca_batch_run(&batch);
		if (!n)
			return;
		cond_resched();
	}
	vhca_wire_kick(port);
}

void vhca_wire_kick(struct vhca_port *port)
{
	if (!READ_ONCE(port->wire.closing))
		queue_work(port->dev->wq, &port->wire.pump);
}

static void tick(struct work_struct *work)
{
	struct vhca_port *port = container_of(work, struct vhca_port, wire.tick.work);

	vhca_wire_kick(port);
	queue_delayed_work(port->dev->wq, &port->wire.tick, msecs_to_jiffies(TICK_MS));
}

static void data_ready(struct sock *sk)
{
	struct vhca_port *port;

	read_lock_bh(&sk->sk_callback_lock);
	port = sk->sk_user_data;
	if (port)
		vhca_wire_kick(port);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void listen_to(struct vhca_port *port, bool on)
{
	struct vhca_wire *w = &port->wire;
	struct sock *sk = w->socket->sk;

	write_lock_bh(&sk->sk_callback_lock);
	if (on)
		w->data_ready = sk->sk_data_ready;
	sk->sk_user_data = on ? port : NULL;
	sk->sk_data_ready = on ? data_ready : w->data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
}

void vhca_wire_init(struct vhca_port *port)
{
	INIT_WORK(&port->wire.pump, pump);
	INIT_DELAYED_WORK(&port->wire.tick, tick);
	port->wire.closing = true;
}

int vhca_wire_open(struct vhca_port *port)
{
	struct vhca_wire *w = &port->wire;
	struct vhca_dev *dev = port->dev;
	int err;

	w->buffer = kmalloc(sizeof(struct vhca_header) + VHCA_MAX_PACKET, GFP_KERNEL);
	if (!w->buffer)
		return -ENOMEM;
	err = sock_create_kern(&init_net, dev->to.ss_family, SOCK_DGRAM, 0, &w->socket);
	if (err)
		goto err_buffer;
	lock_sock(w->socket->sk);
	w->socket->sk->sk_rcvbuf = SOCKET_ROOM;
	w->socket->sk->sk_userlocks |= SOCK_RCVBUF_LOCK;
	w->socket->sk->sk_allocation = GFP_NOIO;
	release_sock(w->socket->sk);
	err = kernel_connect(w->socket, (struct sockaddr *)&dev->to, dev->to_size, 0);
	if (err)
		goto err_socket;
	w->session = get_random_u32();
	w->told = jiffies - msecs_to_jiffies(VHCA_HELLO_MS);
	w->width = IB_WIDTH_4X;
	w->speed = IB_SPEED_QDR;
	WRITE_ONCE(w->closing, false);
	listen_to(port, true);
	queue_delayed_work(dev->wq, &w->tick, 0);
	return 0;

err_socket:
	sock_release(w->socket);
err_buffer:
	kfree(w->buffer);
	w->buffer = NULL;
	w->socket = NULL;
	return err;
}

void vhca_wire_close(struct vhca_port *port)
{
	struct vhca_wire *w = &port->wire;

	if (!w->socket)
		return;
	/* (1) Nobody queues the pump any more; (2) it ends; (3) the rest is ours alone. */
	WRITE_ONCE(w->closing, true);
	listen_to(port, false);
	cancel_delayed_work_sync(&w->tick);
	cancel_work_sync(&w->pump);
	if (w->attached)
		tell(port, VHCA_BYE, 0, NULL, 0);
	w->up = false;
	vhca_lanes_flush(port);
	sock_release(w->socket);
	w->socket = NULL;
	kfree(w->buffer);
	w->buffer = NULL;
}

u32 vhca_wire_mbps(const struct vhca_port *port)
{
	static const u16 lanes[] = { [1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2 };
	const struct vhca_wire *w = &port->wire;
	u32 width = w->width < ARRAY_SIZE(lanes) && lanes[w->width] ? lanes[w->width] : 4;

	switch (w->ext) {
	case 1:
		return width * 13636;	/* FDR */
	case 2:
		return width * 25000;	/* EDR */
	case 4:
		return width * 50000;
	case 8:
		return width * 100000;
	default:
		return width * (w->speed == 4 ? 8000 : w->speed == 2 ? 4000 : 2000);
	}
}
