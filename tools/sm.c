// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath sm: what libosmrepath.so, in the OpenSM of this machine, says of itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "command.h"
#include "out.h"

#define SOCKET		"/run/osm-repath.sock"
#define ANSWER_SECONDS	10

static int connect_to(const char *path)
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		int err = errno;

		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

/* One line of JSON, and the end. NULL with errno, EPROTO if it is something else. */
static struct json_object *read_status(int fd)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *o = NULL;
	char part[4096];
	ssize_t n;

	if (!tokener)
		abort();
	errno = EPROTO;
	while (!o && (n = read(fd, part, sizeof(part))) > 0) {
		o = json_tokener_parse_ex(tokener, part, n);
		errno = EPROTO;
		if (!o && json_tokener_get_error(tokener) != json_tokener_continue)
			break;
	}
	json_tokener_free(tokener);
	if (o && !json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		o = NULL;
	}
	return o;
}

/* The plugin, and then each of its parts on a line of its own. */
static void print_status(struct json_object *o)
{
	out_line(o);
	json_object_object_foreach(o, name, part) {
		if (!json_object_is_type(part, json_type_object))
			continue;
		printf("  %s ", name);
		out_line(part);
	}
}

int cmd_sm(struct door *door, struct args *a)
{
	const char *path = SOCKET;
	struct json_object *o;
	int fd;

	(void)door;
	take_show(a);
	while (a->argc) {
		if (take(a, "socket"))
			path = take_word(a, "PATH");
		else
			take_end(a);
	}
	fd = connect_to(path);
	if (fd < 0) {
		fprintf(stderr, "repath: %s: %s; does OpenSM run here with libosmrepath.so?\n", path,
			strerror(errno));
		return EXIT_NO_DOOR;
	}
	o = read_status(fd);
	if (!o)
		fprintf(stderr, "repath: %s: %s\n", path,
			errno == EPROTO ? "this is not the status of libosmrepath.so" :
					  strerror(errno));
	close(fd);
	if (!o)
		return EXIT_FAILED;
	if (out_json)
		out_object(o);
	else
		print_status(o);
	json_object_put(o);
	return 0;
}
