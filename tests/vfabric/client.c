// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs on this machine that attach to a host of the model by ibsim's libumad2sim.so. A client
 * asks at the abstract datagram socket NAME:ctl; its MADs go between NAME:in<pid> and NAME:out<id>,
 * a socket of its own, so there are as many clients as there are file descriptors.
 *
 * The upper 16 bits of a transaction ID say which client waits for the answer; libumad2sim keeps
 * the next 16 for itself.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <arpa/inet.h>

#include "client.h"
#include "manager.h"
#include "sma.h"

#define QUEUE_MAX 65536u
#define LOOK_MS 1000	/* how long who is dead may hold its place */
#define SPARE_FDS 80u	/* that clients leave to consoles and files */

static socklen_t name_of(struct sockaddr_un *address, const char *prefix, const char *what,
			 long number)
{
	int n;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (number < 0)
		n = snprintf(address->sun_path + 1, 100, "%s:%s", prefix, what);
	else
		n = snprintf(address->sun_path + 1, 100, "%s:%s%ld", prefix, what, number);
	/* libumad2sim counts the terminating zero, too. */
	return offsetof(struct sockaddr_un, sun_path) + 1 + n + 1;
}

static int bound(const char *prefix, const char *what, long number)
{
	struct sockaddr_un address;
	socklen_t size = name_of(&address, prefix, what, number);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, size)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int watch(const struct manager *m, int fd, uint64_t tag, uint32_t events, int op)
{
	struct epoll_event e = { .events = events, .data.u64 = tag };

	return epoll_ctl(m->epoll, op, fd, &e);
}

/* File descriptors are below it if they are clients'. */
static int fd_limit(void)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur > INT32_MAX)
		return INT32_MAX;
	return limit.rlim_cur - (limit.rlim_cur / 4 < SPARE_FDS ? limit.rlim_cur / 4 : SPARE_FDS);
}

int clients_open(struct fabric *f, const char *name, int epoll)
{
	struct manager *m = calloc(1, sizeof(*m));

	if (!m)
		return -1;
	m->fd_limit = fd_limit();
	snprintf(m->name, sizeof(m->name), "%s", name);
	m->epoll = epoll;
	m->ctl = bound(m->name, "ctl", -1);
	if (m->ctl < 0 || watch(m, m->ctl, TAG_CTL, EPOLLIN, EPOLL_CTL_ADD)) {
		free(m);
		return -1;
	}
	f->manager = m;
	return 0;
}

static void drop(struct fabric *f, struct client *c)
{
	uint32_t port = c->port;

	if (c->fd < 0)
		return;
	close(c->fd);
	free(c->queue);
	pending_drop(f->manager, c - f->manager->clients);
	pending_taker_gone(f->manager, c - f->manager->clients);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
	if (f->port_sma[port].is_sm && !clients_have_sm(f, port)) {
		f->port_sma[port].is_sm = 0;
		trap_capabilities(f, port);
	}
}

void clients_close(struct fabric *f)
{
	struct manager *m = f->manager;

	if (!m)
		return;
	for (uint32_t i = 0; i < m->nclients; i++)
		drop(f, &m->clients[i]);
	if (m->ctl >= 0)
		close(m->ctl);
	free(m->clients);
	free(m->traps);
	free(m->pending);
	free(m);
	f->manager = NULL;
}

/*
 * Nobody tells that a datagram socket's peer has been closed. But its name leads nowhere then, or to
 * the socket of somebody else, who talks to another (EPERM). A connection to who lives stays as it is.
 */
void clients_look(struct fabric *f)
{
	struct manager *m = f->manager;

	for (uint32_t i = 0; i < m->nclients; i++) {
		struct client *c = &m->clients[i];
		struct sockaddr_un address;
		socklen_t size = name_of(&address, m->name, "in", c->id);

		if (c->fd >= 0 && connect(c->fd, (struct sockaddr *)&address, size) &&
		    (errno == ECONNREFUSED || errno == EPERM))
			drop(f, c);
	}
	m->looked_ms = m->now_ms;
}

int clients_tick(struct fabric *f)
{
	struct manager *m = f->manager;
	int any = 0;

	if (m->now_ms - m->looked_ms >= LOOK_MS)
		clients_look(f);
	for (uint32_t i = 0; !any && i < m->nclients; i++)
		any = m->clients[i].fd >= 0;
	return any ? (int)(m->looked_ms + LOOK_MS - m->now_ms) : -1;
}

int clients_drop(struct fabric *f, uint32_t number)
{
	if (number >= f->manager->nclients || f->manager->clients[number].fd < 0)
		return -1;
	drop(f, &f->manager->clients[number]);
	return 0;
}

int clients_have_sm(const struct fabric *f, uint32_t port)
{
	for (uint32_t i = 0; f->manager && i < f->manager->nclients; i++)
		if (f->manager->clients[i].fd >= 0 && f->manager->clients[i].is_sm &&
		    f->manager->clients[i].port == port)
			return 1;
	return 0;
}

void clients_print(const struct fabric *f, FILE *file)
{
	for (uint32_t i = 0; i < f->manager->nclients; i++) {
		const struct client *c = &f->manager->clients[i];

		if (c->fd >= 0)
			fprintf(file, "Client %u: pid %u at %s lid %u%s: %u wait, most %u, %llu lost\n",
				i, c->id, port_name(f, c->port), f->ports[c->port].lid,
				c->is_sm ? " SM" : "", c->nqueue, c->most,
				(unsigned long long)c->unread);
	}
}

static uint32_t host_port(const struct fabric *f, const char *id)
{
	uint32_t node = NONE;

	if (*id) {
		node = net_find(f->net, id);
		if (node == NET_NONE)
			return NONE;
	} else {
		for (uint32_t i = 0; node == NONE && i < f->nnodes; i++)
			if (f->nodes[i].type == NET_HCA)
				node = i;
		if (node == NONE)
			return NONE;
	}
	return f->nodes[node].first + (f->nodes[node].type != NET_SWITCH);
}

static struct client *free_slot(struct manager *m)
{
	struct client *clients;
	uint32_t i;

	for (i = 0; i < m->nclients; i++)
		if (m->clients[i].fd < 0)
			return &m->clients[i];
	if (i == UINT16_MAX)	/* transaction IDs have 16 bits for it; the last is our own */
		return NULL;
	clients = realloc(m->clients, (i + 1) * sizeof(*clients));
	if (!clients)
		return NULL;
	m->clients = clients;
	memset(&clients[i], 0, sizeof(*clients));
	clients[i].fd = -1;
	m->nclients++;
	return &clients[i];
}

static void set_sm(struct fabric *f, struct client *c, int on)
{
	c->is_sm = on;
	on = clients_have_sm(f, c->port);
	if (f->port_sma[c->port].is_sm != on) {
		f->port_sma[c->port].is_sm = on;
		trap_capabilities(f, c->port);
	}
}

/* A number and a socket for one more, or NULL. */
static struct client *take_in(struct manager *m)
{
	struct client *c = free_slot(m);

	if (!c)
		return NULL;
	c->fd = bound(m->name, "out", c - m->clients);
	if (c->fd >= m->fd_limit) {
		close(c->fd);
		c->fd = -1;
	}
	return c->fd >= 0 ? c : NULL;
}

static int join(struct fabric *f, struct sim_ctl *ctl)
{
	struct manager *m = f->manager;
	struct sim_client_info info;
	struct sockaddr_un address;
	struct client *c;
	uint32_t number, port;
	socklen_t size;

	memcpy(&info, ctl->data, sizeof(info));
	info.nodeid[sizeof(info.nodeid) - 1] = '\0';
	port = host_port(f, info.nodeid);
	if (port == NONE)
		return -1;
	for (uint32_t i = 0; i < m->nclients; i++)	/* its name has gone to this one */
		if (m->clients[i].id == info.id)
			drop(f, &m->clients[i]);
	c = take_in(m);
	if (!c) {	/* the dead may have left their places just now */
		clients_look(f);
		c = take_in(m);
	}
	if (!c)
		return -1;
	number = c - m->clients;
	c->port = port;
	c->id = info.id;
	size = name_of(&address, m->name, "in", info.id);
	if (connect(c->fd, (struct sockaddr *)&address, size) ||
	    watch(m, c->fd, TAG_CLIENT + number, EPOLLIN, EPOLL_CTL_ADD)) {
		drop(f, c);
		return -1;
	}
	if (info.issm)
		set_sm(f, c, 1);
	info.id = number;
	snprintf(info.nodeid, sizeof(info.nodeid), "%.31s",
		 f->nodes[f->ports[port].node].net->id);
	memcpy(ctl->data, &info, sizeof(info));
	return 0;
}

static void get_attribute(struct fabric *f, uint32_t port, unsigned int attr, uint32_t mod,
			  char *data)
{
	uint8_t found[64] = { 0 };

	sma_read(f, port, attr, mod, found);
	memcpy(data, found, SIM_DATA);
}

static int control(struct fabric *f, struct sim_ctl *ctl)
{
	struct manager *m = f->manager;
	const struct net_node *net;
	struct client *c;
	uint32_t word;

	if (ctl->type == SIM_CONNECT)
		return join(f, ctl);
	if (ctl->clientid >= m->nclients || m->clients[ctl->clientid].fd < 0)
		return -1;
	c = &m->clients[ctl->clientid];
	net = f->nodes[f->ports[c->port].node].net;
	switch (ctl->type) {
	case SIM_DISCONNECT:
		drop(f, c);
		return 0;
	case SIM_GET_PORT:
		memset(ctl->data, 0, 4);
		memcpy(ctl->data, &f->ports[c->port].lid, 2);
		ctl->data[2] = f->ports[c->port].state;
		return 0;
	case SIM_GET_VENDOR:
		memset(ctl->data, 0, SIM_DATA);
		memcpy(ctl->data, &net->vendor, 4);
		memcpy(ctl->data + 4, &net->device, 4);
		word = 0xa0;
		memcpy(ctl->data + 8, &word, 4);
		ctl->data[16] = 1;
		return 0;
	case SIM_GET_GID:
		put_be64((uint8_t *)ctl->data, 0xfe80000000000000ull);
		put_be64((uint8_t *)ctl->data + 8, net->guid);
		return 0;
	case SIM_GET_GUID:
		put_be64((uint8_t *)ctl->data, net->guid);
		return 0;
	case SIM_GET_NODEINFO:
		get_attribute(f, c->port, 0x11, 0, ctl->data);
		return 0;
	case SIM_GET_PORTINFO:
		word = (uint8_t)ctl->data[0];
		get_attribute(f, c->port, 0x15, word && word <= net->nports ? word :
			      f->ports[c->port].num, ctl->data);
		return 0;
	case SIM_SET_ISSM:
		memcpy(&word, ctl->data, 4);
		set_sm(f, c, word != 0);
		return 0;
	case SIM_GET_PKEYS:
		get_attribute(f, c->port, 0x16, 0, ctl->data);
		return 0;
	default:
		return -1;
	}
}

static void serve_ctl(struct fabric *f)
{
	struct sockaddr_un from;
	struct sim_ctl ctl;

	for (;;) {
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(f->manager->ctl, &ctl, sizeof(ctl), MSG_TRUNC,
				     (struct sockaddr *)&from, &size);

		if (n < 0)
			return;
		if (n != sizeof(ctl) || ctl.magic != SIM_MAGIC)
			continue;
		if (control(f, &ctl))
			ctl.type = SIM_ERROR;
		/* Who does not wait for the answer has gone; that shows again when it has MADs. */
		sendto(f->manager->ctl, &ctl, sizeof(ctl), MSG_DONTWAIT, (struct sockaddr *)&from,
		       size);
	}
}

static void flush(struct fabric *f, uint32_t number)
{
	struct client *c = &f->manager->clients[number];
	uint32_t sent = 0;

	while (sent < c->nqueue) {
		if (send(c->fd, &c->queue[sent], sizeof(*c->queue), MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
				break;
			drop(f, c);	/* the client is dead */
			return;
		}
		sent++;
	}
	memmove(c->queue, c->queue + sent, (c->nqueue - sent) * sizeof(*c->queue));
	c->nqueue -= sent;
	if (c->blocked != (c->nqueue != 0)) {
		c->blocked = c->nqueue != 0;
		watch(f->manager, c->fd, TAG_CLIENT + number,
		      EPOLLIN | (c->blocked ? EPOLLOUT : 0), EPOLL_CTL_MOD);
	}
}

static void enqueue(struct fabric *f, uint32_t number, const struct mad_address *a,
		    const uint8_t *mad, uint32_t status)
{
	struct client *c = &f->manager->clients[number];
	struct sim_request *r;

	if (c->nqueue == c->queue_room) {
		uint32_t room = c->queue_room ? c->queue_room * 2 : 16;

		if (room > QUEUE_MAX) {	/* it does not read: it shall not fill our memory */
			c->unread++;
			return;
		}
		r = realloc(c->queue, room * sizeof(*r));
		if (!r)
			return;
		c->queue = r;
		c->queue_room = room;
	}
	r = &c->queue[c->nqueue++];
	memset(r, 0, sizeof(*r));
	r->dlid = htons(a->dlid);
	r->slid = htons(a->slid);
	r->dqp = htonl(a->dqp);
	r->sqp = htonl(a->sqp);
	r->status = htonl(status);
	put_be64((uint8_t *)&r->length, 256);
	memcpy(r->mad, mad, 256);
	if (!c->blocked)
		flush(f, number);
	else if (c->nqueue > c->most)
		c->most = c->nqueue;
}

static int wants(const struct client *c, const uint8_t *mad)
{
	unsigned int class = mad[1], method = mad[3];

	if (class == CLASS_SM || class == CLASS_SM_DR)
		return c->is_sm;
	if (class == CLASS_SA)
		return method == 0x06 ? c->subscribed : c->is_sm;
	/* libumad2sim dies of a class that its program has not registered. */
	return c->classes[class / 8] >> class % 8 & 1;
}

static int is_answer(const uint8_t *mad)
{
	return mad[3] & 0x80 || mad[3] == SMP_REPRESS;
}

static int wants_answer(const uint8_t *mad)
{
	switch (mad[3]) {
	case SMP_GET:
	case SMP_SET:
	case SMP_TRAP:	/* OpenSM waits for the TrapRepress */
	case 0x06:	/* Report */
	case 0x12:	/* GetTable, GetTraceTable, GetMulti, Delete */
	case 0x13:
	case 0x14:
	case 0x15:
		return 1;
	default:
		return 0;
	}
}

/*
 * The kernel tells a program when an answer does not come in time; libumad2sim has no clock, so we
 * do it, and at once when we know that the packet was lost.
 */
void client_give_up(struct fabric *f, uint32_t number, const uint8_t *mad)
{
	enqueue(f, number, &(struct mad_address){ 0 }, mad, ETIMEDOUT);
}

int clients_take(struct fabric *f, uint32_t port, const struct mad_address *address,
		 const uint8_t *mad)
{
	struct manager *m = f->manager;
	uint32_t number = mad[8] << 8 | mad[9];
	int taken = 0;

	if (is_answer(mad)) {
		if (number == UINT16_MAX && be64_at(mad + 8) == m->answer_tid) {
			memcpy(m->answer, mad, 256);
			m->answered = 1;
			return 1;
		}
		if (number >= m->nclients || m->clients[number].fd < 0 ||
		    m->clients[number].port != port)
			return 0;
		if (pending_came(m, mad))
			enqueue(f, number, address, mad, 0);
		return 1;
	}
	for (uint32_t i = 0; i < m->nclients; i++)
		if (m->clients[i].fd >= 0 && m->clients[i].port == port &&
		    wants(&m->clients[i], mad)) {
			m->taker = i;
			enqueue(f, i, address, mad, 0);
			taken = 1;
		}
	return taken;
}

/* Who has taken it may have been found to be dead by that. */
static void hold(struct fabric *f, uint32_t number, const uint8_t *mad)
{
	struct manager *m = f->manager;

	if (m->clients[m->taker].fd < 0)
		client_give_up(f, number, mad);
	else
		pending_hold(f, number, m->taker, mad);
}

static void serve_mads(struct fabric *f, uint32_t number)
{
	struct sim_request r;

	/* A bounded number, so that one busy client does not keep the others waiting. */
	for (int i = 0; i < 64; i++) {
		struct client *c = &f->manager->clients[number];
		struct mad_address to;
		uint64_t lost, gone, faults;
		uint8_t copy[256];
		ssize_t n;

		if (c->fd < 0)
			return;
		n = recv(c->fd, &r, sizeof(r), MSG_TRUNC);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			drop(f, c);
		if (n < 0)
			return;
		if (n != sizeof(r))
			continue;
		to.dlid = ntohs(r.dlid);
		to.slid = r.slid == 0xffff ? 0xffff : 0;
		to.dqp = ntohl(r.dqp);
		to.sqp = ntohl(r.sqp);
		c->classes[r.mad[1] / 8] |= 1 << r.mad[1] % 8;
		if (r.mad[1] == CLASS_SA && r.mad[3] == SMP_SET && be16_at(r.mad + 16) == 3)
			c->subscribed = 1;
		if (!is_answer(r.mad))
			put_be16(r.mad + 8, number);
		if (r.mad[1] == CLASS_SM_DR)
			r.mad[6] = 0;
		memcpy(copy, r.mad, 256);
		lost = f->manager->lost;
		gone = f->manager->gone;
		faults = f->manager->faults;
		if (!is_answer(copy))
			pending_asked(f->manager, copy);
		f->manager->taker = NONE;
		mad_send(f, c->port, &to, r.mad);
		if (!wants_answer(copy))
			continue;
		if (f->manager->faults != faults)
			pending_resend(f, number, &to, copy);
		else if (f->manager->lost != lost)
			client_give_up(f, number, copy);
		else if (f->manager->gone != gone)
			pending_expect(f, number, copy);
		else if (f->manager->taker != NONE && (copy[1] == CLASS_SM || copy[1] == CLASS_SM_DR))
			hold(f, number, copy);
	}
}

void clients_ready(struct fabric *f, uint64_t tag, uint32_t events)
{
	uint32_t number = tag - TAG_CLIENT;

	if (tag == TAG_CTL) {
		serve_ctl(f);
		return;
	}
	if (number >= f->manager->nclients || f->manager->clients[number].fd < 0)
		return;
	if (events & EPOLLOUT) {
		f->manager->clients[number].blocked = 1;
		flush(f, number);
	}
	if (events & ~EPOLLOUT)
		serve_mads(f, number);
}
