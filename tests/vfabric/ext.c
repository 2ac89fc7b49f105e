// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Links to real HCAs: attach, credits both ways, keep-alive. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../vhca/wire.h"
#include "ext_cable.h"
#include "shared.h"
#include "sma.h"

static uint32_t limit(const struct fabric *f, const struct cable *c, unsigned int vl)
{
	uint32_t taken = ext_taken(f, c, vl);

	return c->received[vl] + f->capacity - (taken < f->capacity ? taken : f->capacity);
}

void ext_tell(struct fabric *f, struct cable *c, enum vhca_type type, unsigned int vl,
	      const void *body, unsigned int length)
{
	const struct net_port *np =
		&f->nodes[f->ports[c->port].node].net->ports[f->ports[c->port].num];
	struct vhca_header h = {
		.magic = htonl(VHCA_MAGIC), .version = c->version, .type = type,
		.port = c->hca_port, .vl = vl, .session = htonl(c->session),
		.sequence = htonl(c->sequence++), .link = c->up, .width = np->width,
		.speed = np->speed, .ext = np->ext, .length = htons(length),
		.function = c->function, .era = c->era,
	};
	struct iovec iov[2] = { { &h, sizeof(h) }, { (void *)body, length } };
	struct msghdr msg = { .msg_name = &c->to, .msg_namelen = c->to_size, .msg_iov = iov,
		.msg_iovlen = 2 };

	put_be64((uint8_t *)&h.guid, c->guid);
	for (unsigned int i = 0; i < f->config.vls; i++) {
		c->told[i] = limit(f, c, i);
		h.credit[i].sent = htonl(c->sent[i]);
		h.credit[i].limit = htonl(c->told[i]);
	}
	c->told_ms = f->ext->now_ms;
	if (!c->late.n && sendmsg(f->ext->fd, &msg, MSG_DONTWAIT) >= 0)
		return;
	/* Data must not get lost here; news of credits come with it or later. */
	if (type != VHCA_DATA || (!c->late.n && errno != EAGAIN && errno != ENOBUFS))
		c->sequence--;
	else if (!ext_backlog_keep(&c->late, &h, body, length))
		f->drops[DROP_UNREAD]++;
}

struct cable *ext_cable_of(const struct fabric *f, uint32_t port)
{
	for (int i = 0; f->ext && i < f->ext->ncables; i++)
		if (f->ext->cables[i].used && f->ext->cables[i].port == port)
			return &f->ext->cables[i];
	return NULL;
}

static void set_up(struct fabric *f, struct cable *c)
{
	struct port *port = &f->ports[c->port];

	c->up = 1;
	c->era++;
	memset(c->sent, 0, sizeof(c->sent));
	memset(c->leaving, 0, sizeof(c->leaving));
	memset(c->coming, 0, sizeof(c->coming));
	memset(c->doubled, 0, sizeof(c->doubled));
	memset(c->received, 0, sizeof(c->received));
	memset(c->peer_limit, 0, sizeof(c->peer_limit));
	port->up = 1;
	port->epoch++;
	port->phys = PHYS_LINKUP;
	for (unsigned int vl = 0; vl < f->config.vls; vl++)
		f->lanes[c->port * f->config.vls + vl].credits = 0;
	port_set_state(f, c->port, PORT_INIT);
	shared_pf(f, c->port, 1);
}

/* A PF has told of its port, or is gone: its VFs are to know. */
static void pass_news(struct fabric *f, const struct cable *pf)
{
	for (int i = 0; i < f->ext->ncables; i++) {
		struct cable *c = &f->ext->cables[i];
		const void *news = c->used && c->up ? shared_told(f, c->port) : NULL;

		if (news && f->ports[c->port].node == f->ports[pf->port].node)
			ext_tell(f, c, VHCA_PORT, 0, news, sizeof(struct vhca_port_news));
	}
}

static void set_down(struct fabric *f, struct cable *c)
{
	if (!c->up)
		return;
	c->up = 0;
	c->era++;
	link_down(f, c->port);
	shared_pf(f, c->port, 0);
	pass_news(f, c);
}

void ext_down(struct fabric *f, uint32_t port)
{
	struct cable *c = ext_cable_of(f, port);

	if (!c || !c->up)
		return;
	c->up = 0;
	c->era++;
	shared_pf(f, port, 0);
	pass_news(f, c);
	ext_tell(f, c, VHCA_FLOW, 0, NULL, 0);
}

/* Whether this end lets the link train. */
static int may_train(const struct fabric *f, const struct cable *c)
{
	const struct port *port = &f->ports[c->port];

	return !c->pulled && port->phys != PHYS_DISABLED && !f->nodes[port->node].dead;
}

static void detach(struct fabric *f, struct cable *c)
{
	set_down(f, c);
	ext_backlog_free(&c->late);
	port_join(f, c->port, NONE);
	c->used = 0;
}

static void refuse(struct fabric *f, const struct cable *asking, const char *why)
{
	struct cable c = *asking;

	c.port = 0;
	ext_tell(f, &c, VHCA_REFUSED, 0, why, strlen(why));
}

static void hello(struct fabric *f, const struct vhca_header *h, const uint8_t *body,
		  unsigned int length, const struct cable *from)
{
	struct cable *c = NULL;
	uint32_t node, host, port;
	char id[64];

	if (h->version != VHCA_VERSION) {
		snprintf(id, sizeof(id), "version %u of the wire, this vfabric has %u", h->version,
			 VHCA_VERSION);
		refuse(f, from, id);
		return;
	}
	if (length >= sizeof(id))
		return;
	memcpy(id, body, length);
	id[length] = '\0';
	node = net_find(f->net, id);
	host = node == NET_NONE || f->nodes[node].type != NET_HCA || !h->port ? NONE :
		fabric_port(f, node, h->port);
	if (host == NONE) {
		refuse(f, from, "no such host port in the topology");
		return;
	}
	port = f->ports[host].was_peer;
	if (port == NONE || !f->ports[port].is_switch) {
		refuse(f, from, "that host port is not plugged into a switch");
		return;
	}
	port = shared_port(f, port, h->function);
	if (port == NONE) {
		refuse(f, from, "that host has no such virtual function");
		return;
	}
	c = ext_cable_of(f, port);
	if (c && (c->guid != from->guid || c->hca_port != h->port)) {
		refuse(f, from, "another HCA is plugged in there");
		return;
	}
	if (c && c->session == from->session) {	/* our WELCOME was lost */
		vhca_wire_gap(&c->next, ntohl(h->sequence));
		ext_tell(f, c, VHCA_WELCOME, 0, NULL, 0);
		return;
	}
	if (c)
		detach(f, c);
	for (int i = 0; !c && i < MAX_CABLES; i++)
		if (!f->ext->cables[i].used) {
			c = &f->ext->cables[i];
			if (i >= f->ext->ncables)
				f->ext->ncables = i + 1;
		}
	if (!c) {
		refuse(f, from, "too many HCAs");
		return;
	}
	*c = *from;
	c->next = ntohl(h->sequence) + 1;
	c->used = 1;
	c->port = port;
	c->hca_port = h->port;
	c->function = h->function;
	c->heard_ms = f->ext->now_ms;
	if (f->ports[port].up) {
		link_down(f, port);
		shared_pf(f, port, 0);
	}
	if (!h->function)
		port_join(f, host, NONE);
	port_join(f, port, EXTERNAL);
	if (may_train(f, c))
		set_up(f, c);
	ext_tell(f, c, VHCA_WELCOME, 0, NULL, 0);
}

static void take_credits(struct fabric *f, struct cable *c, const struct vhca_header *h)
{
	for (unsigned int vl = 0; vl < f->config.vls; vl++) {
		struct lane *lane = &f->lanes[c->port * f->config.vls + vl];
		uint32_t room;

		c->received[vl] = ntohl(h->credit[vl].sent);
		c->peer_limit[vl] = ntohl(h->credit[vl].limit);
		room = c->peer_limit[vl] - c->sent[vl] - c->leaving[vl];
		lane->credits = room > INT32_MAX ? 0 : room;
	}
}

static void message(struct fabric *f, uint8_t *text, size_t n, struct cable *from)
{
	struct vhca_header h;
	unsigned int length;
	struct cable *c = NULL;

	if (n < sizeof(h))
		return;
	memcpy(&h, text, sizeof(h));
	length = ntohs(h.length);
	if (ntohl(h.magic) != VHCA_MAGIC || length != n - sizeof(h) ||
	    (h.version != VHCA_VERSION && h.type != VHCA_HELLO))
		return;
	from->session = ntohl(h.session);
	from->guid = be64_at((uint8_t *)&h.guid);
	from->hca_port = h.port;
	from->function = h.function;
	from->version = h.version;
	if (h.type == VHCA_HELLO) {
		hello(f, &h, text + sizeof(h), length, from);
		return;
	}
	for (int i = 0; !c && i < f->ext->ncables; i++)
		if (f->ext->cables[i].used && f->ext->cables[i].session == from->session &&
		    f->ext->cables[i].guid == from->guid &&
		    f->ext->cables[i].hca_port == h.port)
			c = &f->ext->cables[i];
	if (!c)
		return;
	f->drops[DROP_DATAGRAM] += vhca_wire_gap(&c->next, ntohl(h.sequence));
	c->heard_ms = f->ext->now_ms;
	if (h.type == VHCA_BYE) {
		detach(f, c);
		return;
	}
	if (h.link == VHCA_LINK_DOWN) {
		if (c->up) {
			set_down(f, c);
			/* Only who knows of that can train the link again. */
			ext_tell(f, c, VHCA_FLOW, 0, NULL, 0);
		}
		return;
	}
	if (h.era != c->era || !may_train(f, c))
		return;
	if (!c->up) {
		set_up(f, c);
		ext_tell(f, c, VHCA_FLOW, 0, NULL, 0);
		return;
	}
	take_credits(f, c, &h);
	if (h.type == VHCA_DATA)
		ext_data(f, c, h.vl, text + sizeof(h), length);
	else if (h.type == VHCA_PORT && shared_news(f, c->port, text + sizeof(h), length))
		pass_news(f, c);
	/* What goes out promises room: only now does that know of what has come in. */
	if (!f->ports[c->port].busy)
		relay_send(f, c->port);
}

void ext_ready(struct fabric *f, uint64_t tag)
{
	(void)tag;
	for (int i = 0; i < 256; i++) {
		struct cable from = { .to_size = sizeof(from.to) };
		ssize_t n = recvfrom(f->ext->fd, f->ext->message, sizeof(f->ext->message),
				     MSG_DONTWAIT, (struct sockaddr *)&from.to, &from.to_size);

		if (n < 0)
			break;
		message(f, f->ext->message, n, &from);
	}
	/* Room that was freed meanwhile: tell those who have used up half of what we told. */
	for (int i = 0; i < f->ext->ncables; i++) {
		struct cable *c = &f->ext->cables[i];

		if (c->used && c->up)
			ext_room(f, c->port);
	}
}

void ext_room(struct fabric *f, uint32_t port)
{
	struct cable *c = ext_cable_of(f, port);

	if (!c || !c->up)
		return;
	for (unsigned int vl = 0; vl < f->config.vls; vl++)
		if (limit(f, c, vl) - c->told[vl] >= f->capacity / 4 &&
		    (int32_t)(limit(f, c, vl) - c->told[vl]) > 0) {
			ext_tell(f, c, VHCA_FLOW, 0, NULL, 0);
			return;
		}
}

int ext_tick(struct fabric *f, uint64_t now_ms)
{
	int any = 0, late = 0;

	if (!f->ext)
		return -1;
	f->ext->now_ms = now_ms;
	for (int i = 0; i < f->ext->ncables; i++) {
		struct cable *c = &f->ext->cables[i];

		if (!c->used)
			continue;
		any = 1;
		late |= ext_backlog_send(&c->late, f->ext->fd, &c->to, c->to_size);
		if (now_ms - c->heard_ms > VHCA_DEAD_MS) {
			trap_flow_control(f, c->port);
			detach(f, c);
		} else if (now_ms - c->told_ms >= VHCA_KEEPALIVE_MS) {
			ext_tell(f, c, VHCA_FLOW, 0, NULL, 0);
		}
	}
	return late ? 1 : any ? VHCA_KEEPALIVE_MS / 5 : -1;
}

int ext_plug(struct fabric *f, uint32_t port, int in)
{
	struct cable *c = ext_cable_of(f, port);

	if (!c || c->pulled != in)
		return -1;
	c->pulled = !in;
	if (!in)
		set_down(f, c);
	else if (may_train(f, c))
		set_up(f, c);
	ext_tell(f, c, VHCA_FLOW, 0, NULL, 0);
	return 0;
}

int ext_dismiss(struct fabric *f, uint32_t port)
{
	struct cable *c = ext_cable_of(f, port);

	if (!c || !c->pulled)
		return -1;
	ext_tell(f, c, VHCA_BYE, 0, NULL, 0);
	detach(f, c);
	return 0;
}

void ext_print(const struct fabric *f, FILE *file)
{
	for (int i = 0; f->ext && i < f->ext->ncables; i++) {
		const struct cable *c = &f->ext->cables[i];

		if (c->used)
			fprintf(file, "HCA %llx port %u function %u at %s%s: %u wait, most %u, %llu lost\n",
				(unsigned long long)c->guid, c->hca_port, c->function,
				port_name(f, c->port), c->up ? "" : " down", c->late.n,
				c->late.most, (unsigned long long)c->late.lost);
	}
}

int ext_listen(struct fabric *f, const char *where, int epoll)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = TAG_EXT };
	int fd = ext_socket_open(where);

	if (fd < 0)
		return -1;
	f->ext = calloc(1, sizeof(*f->ext));
	if (!f->ext || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e)) {
		close(fd);
		return -1;
	}
	f->ext->fd = fd;
	return 0;
}

void ext_close(struct fabric *f)
{
	if (!f->ext)
		return;
	for (int i = 0; i < f->ext->ncables; i++)
		if (f->ext->cables[i].used) {
			ext_backlog_free(&f->ext->cables[i].late);
			ext_tell(f, &f->ext->cables[i], VHCA_BYE, 0, NULL, 0);
		}
	close(f->ext->fd);
	free(f->ext);
	f->ext = NULL;
}
