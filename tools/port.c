// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A virtio-serial port that carries JSON objects, one a line. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "port.h"

#define NO_HOST_MS	50	/* POLLHUP stays for as long as no host is there */
#define PORT_FLAGS	(O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

static bool read_name(const char *port, char *name, size_t size)
{
	char path[512];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", port);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(name, size, f);
	fclose(f);
	name[strcspn(name, "\n")] = 0;
	return ok;
}

/* udev makes the first name; without it the port has to be found by what QEMU calls it. */
static bool find_port(char *path, size_t size)
{
	struct dirent *d;
	bool found = false;
	DIR *dir;

	snprintf(path, size, "/dev/virtio-ports/%s", PORT_NAME);
	if (!access(path, F_OK))
		return true;
	dir = opendir("/sys/class/virtio-ports");
	while (dir && !found && (d = readdir(dir))) {
		char name[128] = "";

		if (d->d_name[0] == '.' || !read_name(d->d_name, name, sizeof(name)))
			continue;
		found = !strcmp(name, PORT_NAME);
		snprintf(path, size, "/dev/%s", d->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

bool port_open(struct port *p, const char *path)
{
	char found[512];

	*p = (struct port){ .fd = -1, .path = path, .empty = true };
	if (!path) {
		if (!find_port(found, sizeof(found))) {
			fprintf(stderr,
				"repath: agent: no virtio-serial port \"%s\": give the machine one with 'virtserialport,name=%s'\n",
				PORT_NAME, PORT_NAME);
			return false;
		}
		path = found;
	}
	p->fd = open(path, PORT_FLAGS);
	if (p->fd < 0) {
		fprintf(stderr, "repath: agent: %s: %s\n", path,
			errno == EBUSY ? "another agent has it open" : strerror(errno));
		return false;
	}
	return true;
}

int port_poll(const struct port *p, struct pollfd *fd)
{
	*fd = (struct pollfd){ .fd = p->fd, .events = POLLIN };
	if (p->pending)
		fd->events |= POLLOUT;
	return p->empty ? NO_HOST_MS : -1;
}

/* The port itself was taken away: another one of its name may come. */
static void port_again(struct port *p)
{
	char found[512];

	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	if (p->path || find_port(found, sizeof(found)))
		p->fd = open(p->path ? p->path : found, PORT_FLAGS);
}

static void take_lines(struct port *p, port_line_fn fn, void *arg)
{
	char *line = p->in, *end;

	while ((end = memchr(line, '\n', p->in + p->have - line))) {
		if (p->skip)
			fn(arg, NULL, 0);
		else
			fn(arg, line, end - line);
		p->skip = false;
		line = end + 1;
	}
	p->have -= line - p->in;
	memmove(p->in, line, p->have);
	if (p->have == sizeof(p->in)) {
		p->skip = true;
		p->have = 0;
	}
}

static void flush(struct port *p)
{
	while (p->pending) {
		ssize_t n = write(p->fd, p->out, p->pending);

		if (n <= 0)
			return;		/* EAGAIN: poll tells; a host that left: POLLHUP */
		p->pending -= n;
		memmove(p->out, p->out + n, p->pending);
	}
}

/*
 * Another host will not know what the last one was still to hear, nor, if it has not @spoken by now, what
 * that one had begun to say.
 */
static void host_left(struct port *p, bool spoken)
{
	p->host = false;
	p->pending = 0;
	if (!spoken) {
		p->have = 0;
		p->skip = false;
	}
}

/*
 * What a new host says comes by another way than the news that it is there, and can be first: POLLHUP with
 * something to read is a host too. Its answers wait: only a POLLHUP that begins tells that a host has left.
 */
void port_serve(struct port *p, short revents, port_line_fn fn, void *arg)
{
	bool empty = revents & POLLHUP || p->fd < 0;
	ssize_t n = -1;

	if (p->fd < 0)
		port_again(p);
	errno = 0;
	if (revents & (POLLIN | POLLHUP))
		n = read(p->fd, p->in + p->have, sizeof(p->in) - p->have);
	if (n < 0 && errno == ENODEV) {
		empty = true;
		port_again(p);
	}
	if (empty && !p->empty)
		host_left(p, n > 0);
	p->empty = empty;
	if (n > 0 || !empty)
		p->host = true;
	if (n > 0) {
		p->have += n;
		take_lines(p, fn, arg);
	}
	if (revents & POLLOUT)
		flush(p);
}

void port_send(struct port *p, struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
							     JSON_C_TO_STRING_NOSLASHESCAPE);
	size_t len = strlen(text);

	if (p->host && p->pending + len + 1 <= PORT_BACKLOG) {
		char *grown = realloc(p->out, p->pending + len + 1);

		if (!grown)
			abort();
		p->out = grown;
		memcpy(p->out + p->pending, text, len);
		p->out[p->pending + len] = '\n';
		p->pending += len + 1;
		flush(p);
	}
	json_object_put(o);
}
