// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One guest that is told what the subnet manager has said. See relay_guest.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <json-c/json.h>
#include "out.h"
#include "relay_guest.h"

#define ANSWER_MS	5000	/* a guest may be starting, or have no agent */
#define LINGER_MS	500	/* before others are let in */
#define RETRY_MS	2000

static void enter(struct relay_guest *g, enum relay_state state, unsigned int ms)
{
	g->state = state;
	g->until = g->now + ms;
}

void relay_guest_init(struct relay_guest *g, const char *socket, const char *dev, uint32_t port,
		      void (*say)(struct relay_guest *g, const char *event, const char *text))
{
	*g = (struct relay_guest){ .socket = socket, .dev = dev, .port = port, .say = say, .fd = -1 };
	relay_guest_begin(g);
}

void relay_guest_close(struct relay_guest *g)
{
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
	g->have = 0;
	g->skip = false;
	g->noise = 0;
	enter(g, RELAY_CLOSED, 0);
}

/* Whatever the guest has taken of what it was told: it asks for everything. */
static void try_later(struct relay_guest *g, const char *why)
{
	g->say(g, "failed", why);
	relay_guest_begin(g);
	relay_guest_close(g);
	enter(g, RELAY_CLOSED, RETRY_MS);
}

void relay_guest_begin(struct relay_guest *g)
{
	g->begin = true;
	g->n = 0;
}

void relay_guest_notice(struct relay_guest *g, const uint8_t *notice)
{
	if (g->begin)
		return;		/* it will ask for everything, and not before */
	if (g->n == RELAY_QUEUE) {
		relay_guest_begin(g);
		return;
	}
	memcpy(g->queue[(g->first + g->n) % RELAY_QUEUE], notice, REPATH_NOTICE_SIZE);
	g->n++;
}

static bool connect_to(struct relay_guest *g)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(g->socket) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(address.sun_path, g->socket);
	g->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return g->fd >= 0 && !connect(g->fd, (struct sockaddr *)&address, sizeof(address));
}

static struct json_object *request(struct relay_guest *g)
{
	struct json_object *o = json_object_new_object();
	const uint8_t *notice = g->queue[g->first];
	char hex[2 * REPATH_NOTICE_SIZE + 1];

	g->id++;
	g->was_begin = g->begin;
	g->begin = false;
	out_number(o, "id", g->id);
	out_text(o, "cmd", "relay");
	out_text(o, "dev", g->dev);
	out_number(o, "port", g->port);
	if (g->was_begin)
		return o;
	g->first = (g->first + 1) % RELAY_QUEUE;
	g->n--;
	for (unsigned int i = 0; i < REPATH_NOTICE_SIZE; i++)
		sprintf(hex + 2 * i, "%02x", notice[i]);
	out_text(o, "notice", hex);
	return o;
}

static void ask(struct relay_guest *g)
{
	char line[RELAY_LINE];
	struct json_object *o;
	int len;

	if (g->fd < 0 && !connect_to(g)) {
		try_later(g, strerror(errno));
		return;
	}
	o = request(g);
	/* The empty line ends what another host has left half said. */
	len = snprintf(line, sizeof(line), "\n%s\n",
		       json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
	if (send(g->fd, line, len, MSG_NOSIGNAL) != len)
		try_later(g, "the socket takes nothing");
	else
		enter(g, RELAY_ASKED, ANSWER_MS);
}

/* The request that is under way was answered. */
static void answered(struct relay_guest *g, struct json_object *o)
{
	struct json_object *ok = NULL, *text = NULL;

	json_object_object_get_ex(o, "ok", &ok);
	enter(g, RELAY_OPEN, LINGER_MS);
	if (!json_object_get_boolean(ok)) {
		json_object_object_get_ex(o, "code", &text);
		/* Another device, or another module, than the one that had begun: it begins now. */
		if (!g->was_begin && text && !strcmp(json_object_get_string(text), "ENOTCONN")) {
			relay_guest_begin(g);
			return;
		}
		json_object_object_get_ex(o, "error", &text);
		try_later(g, text ? json_object_get_string(text) : "refused");
	} else if (g->was_begin) {
		g->begun++;
		g->say(g, "begun", NULL);
	} else {
		g->told++;
		g->say(g, "told", NULL);
	}
}

static bool is_answer(struct relay_guest *g, struct json_object *o)
{
	struct json_object *id = NULL, *ok = NULL;

	return g->state == RELAY_ASKED && json_object_is_type(o, json_type_object) &&
	       json_object_object_get_ex(o, "id", &id) && json_object_is_type(id, json_type_int) &&
	       json_object_get_int64(id) == g->id &&
	       json_object_object_get_ex(o, "ok", &ok) && json_object_is_type(ok, json_type_boolean);
}

static void take_line(struct relay_guest *g, const char *line, size_t len)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *o = NULL;

	if (!g->skip && memchr(line, 0, len) == NULL)
		o = json_tokener_parse_ex(tok, line, len);
	if (is_answer(g, o)) {
		answered(g, o);
	} else {
		g->refused++;
		g->noise++;
		g->say(g, "refused", NULL);
	}
	json_object_put(o);
	json_tokener_free(tok);
}

static void take_input(struct relay_guest *g)
{
	ssize_t n = read(g->fd, g->in + g->have, sizeof(g->in) - g->have);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (g->state == RELAY_ASKED)
			try_later(g, "the guest has gone");
		else
			relay_guest_close(g);
		return;
	}
	g->have += n;
	while (g->fd >= 0 && (end = memchr(g->in, '\n', g->have))) {
		size_t len = end - g->in;

		/* An answer may close the connection, and nothing of it is left then. */
		take_line(g, g->in, len);
		g->skip = false;
		if (g->fd < 0)
			return;
		if (g->noise >= RELAY_REFUSED) {
			try_later(g, "the guest says what nobody has asked for");
			return;
		}
		g->have -= len + 1;
		memmove(g->in, end + 1, g->have);
	}
	if (g->have == sizeof(g->in)) {
		g->skip = true;
		g->have = 0;
	}
}

static bool has_news(const struct relay_guest *g)
{
	return g->begin || g->n;
}

int relay_guest_poll(struct relay_guest *g, uint64_t now, struct pollfd *fd)
{
	*fd = (struct pollfd){ .fd = g->fd, .events = POLLIN };
	if (g->state == RELAY_OPEN && has_news(g))
		return 0;
	if (g->state == RELAY_CLOSED && !has_news(g))
		return -1;
	return g->until > now ? g->until - now : 0;
}

void relay_guest_serve(struct relay_guest *g, uint64_t now, short revents)
{
	bool due;

	g->now = now;
	if (g->fd >= 0 && revents)
		take_input(g);
	due = now >= g->until;
	if (g->state == RELAY_ASKED && due)
		try_later(g, "no answer: does \"repath agent\" run there?");
	else if (g->state == RELAY_OPEN && has_news(g))
		ask(g);
	else if (g->state == RELAY_OPEN && due)
		relay_guest_close(g);
	else if (g->state == RELAY_CLOSED && due && has_news(g))
		ask(g);
}
