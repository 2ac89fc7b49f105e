// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath relay: what the subnet manager says to a hypervisor's port, for the guests that share it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent.h"
#include "command.h"
#include "names.h"
#include "out.h"
#include "relay_guest.h"

#define GUESTS_MAX 256

struct relay {
	char dev[DEV_NAME_LEN];
	uint32_t port;
	struct relay_guest *guests;
	unsigned int n;
};

static void say(struct relay_guest *g, const char *event, const char *text)
{
	struct json_object *o = json_object_new_object();

	out_text(o, "event", event);
	out_text(o, "socket", g->socket);
	out_text(o, "dev", g->dev);
	out_number(o, "begun", g->begun);
	out_number(o, "told", g->told);
	out_number(o, "refused", g->refused);
	if (text)
		out_text(o, "reason", text);
	out_one(o);
	json_object_put(o);
}

static void begin_all(struct relay *r)
{
	for (unsigned int i = 0; i < r->n; i++)
		relay_guest_begin(&r->guests[i]);
}

static void take_event(uint8_t cmd, struct nlattr **tb, void *arg)
{
	struct relay *r = arg;

	if (cmd != REPATH_CMD_EV_NOTICE || !tb[REPATH_A_DEV_NAME] || !tb[REPATH_A_PORT] ||
	    strcmp(nla_get_string(tb[REPATH_A_DEV_NAME]), r->dev) ||
	    nla_get_u32(tb[REPATH_A_PORT]) != r->port)
		return;
	if (!tb[REPATH_A_NOTICE] || nla_len(tb[REPATH_A_NOTICE]) != REPATH_NOTICE_SIZE) {
		begin_all(r);
		return;
	}
	for (unsigned int i = 0; i < r->n; i++)
		relay_guest_notice(&r->guests[i], nla_data(tb[REPATH_A_NOTICE]));
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int serve_once(struct relay *r, struct door *door)
{
	struct pollfd fds[GUESTS_MAX + 1] = { { .fd = door_event_fd(door), .events = POLLIN } };
	int timeout = -1, err = 0;

	for (unsigned int i = 0; i < r->n; i++)
		timeout = sooner(timeout, relay_guest_poll(&r->guests[i], agent_now(), &fds[i + 1]));
	if (poll(fds, r->n + 1, timeout) < 0)
		return 0;
	if (fds[0].revents)
		err = door_events(door, take_event, r);
	for (unsigned int i = 0; i < r->n; i++)
		relay_guest_serve(&r->guests[i], agent_now(), fds[i + 1].revents);
	if (err != -ENOBUFS)
		return err;
	begin_all(r);
	return 0;
}

static void take_guest(struct args *a, struct relay *r)
{
	const char *socket = take_word(a, "a socket");
	char dev[DEV_NAME_LEN];
	uint32_t port;

	port = take_dev_port(a, dev);
	if (r->n == GUESTS_MAX)
		usage_error(a, "more than %d guests", GUESTS_MAX);
	r->guests = realloc(r->guests, (r->n + 1) * sizeof(*r->guests));
	if (!r->guests)
		abort();
	relay_guest_init(&r->guests[r->n++], socket, strdup(dev), port, say);
}

struct own_port {
	uint32_t number;
	bool found;
	uint8_t state;
};

static void take_port(uint8_t cmd, struct nlattr **top, void *arg)
{
	struct nlattr *tb[REPATH_A_MAX + 1];
	struct own_port *port = arg;

	(void)cmd;
	if (!top[REPATH_A_SM])
		return;
	door_nest(top[REPATH_A_SM], tb);
	if (!tb[REPATH_A_PORT] || nla_get_u32(tb[REPATH_A_PORT]) != port->number || !tb[REPATH_A_SM_STATE])
		return;
	port->found = true;
	port->state = nla_get_u8(tb[REPATH_A_SM_STATE]);
}

static int look_at_port(struct door *door, const struct relay *r, struct own_port *port)
{
	struct nl_msg *msg = door_request(REPATH_CMD_SM_GET);

	*port = (struct own_port){ .number = r->port };
	nla_put_string(msg, REPATH_A_DEV_NAME, r->dev);
	return door_dump(door, msg, take_port, port);
}

/*
 * Guests end what they have subscribed to themselves once they are told to listen here: not before there is the port. Its
 * driver may come later than this. Exits where nothing will ever be heard.
 */
static void wait_for_port(struct door *door, const struct relay *r)
{
	struct own_port port;
	bool told = false;
	int err;

	while ((err = look_at_port(door, r, &port)) == -ENODEV) {
		if (!told)
			fprintf(stderr, "repath: relay: %s/%u: %s; it is waited for\n", r->dev, r->port, door_error(door));
		told = true;
		sleep(1);
	}
	if (err) {
		fprintf(stderr, "repath: relay: %s/%u: %s\n", r->dev, r->port, door_error(door));
		exit(door_exit_status(err));
	}
	if (!port.found) {
		fprintf(stderr, "repath: relay: %s/%u: no such InfiniBand port; repath path sm lists them\n", r->dev, r->port);
		exit(EXIT_FAILED);
	}
	if (port.state != REPATH_SM_SUBSCRIBED)
		fprintf(stderr, "repath: relay: %s/%u is \"%s\": the guests hear nothing until it is subscribed; see repath path sm\n",
			r->dev, r->port, name_of(NAMES_SM_STATE, port.state));
}

int cmd_relay(struct door *door, struct args *a)
{
	struct relay r = { .n = 0 };
	int err;

	r.port = take_dev_port(a, r.dev);
	while (a->argc && take(a, "to"))
		take_guest(a, &r);
	take_end(a);
	if (!r.n)
		usage_error(a, "\"to\" is missing");

	err = door_listen(door, REPATH_MCGRP_NOTICE);
	if (!err)
		wait_for_port(door, &r);
	while (!err) {
		err = serve_once(&r, door);
		if (err != -ENODEV)
			continue;
		/* What comes until the next module is there is not heard. */
		err = door_wait(door);
		if (!err)
			err = door_listen(door, REPATH_MCGRP_NOTICE);
		if (!err)
			wait_for_port(door, &r);
		begin_all(&r);
	}
	fprintf(stderr, "repath: relay: %s\n", door_error(door));
	return door_exit_status(err);
}
