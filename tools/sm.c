// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath sm: what libosmrepath.so, in the OpenSM of this machine, says of itself, and moves of VMs. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "command.h"
#include "op.h"
#include "out.h"

#define SOCKET		"/run/osm-repath.sock"
#define VM_SOCKET	"/run/osm-repath-vm.sock"
#define ANSWER_SECONDS	30	/* a move waits for a sweep of OpenSM to end */

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
static struct json_object *read_object(int fd)
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

/* The plugin, and then each of its parts on a line of its own, and what these have of parts. */
static void print_status(struct json_object *o, unsigned int indent)
{
	out_line(o);
	json_object_object_foreach(o, name, part) {
		if (!json_object_is_type(part, json_type_object))
			continue;
		printf("%*s%s ", indent, "", name);
		print_status(part, indent + 2);
	}
}

/* @option: that it has the socket by */
static int no_plugin(const char *path, const char *option)
{
	if (errno == EACCES)
		fprintf(stderr, "repath: %s: %s; root may\n", path, strerror(errno));
	else
		fprintf(stderr, "repath: %s: %s; does OpenSM run here with libosmrepath.so%s?\n", path,
			strerror(errno), option);
	return EXIT_NO_DOOR;
}

/* Why read_object() has none. */
static const char *no_object(const char *what_else)
{
	static char late[32];

	if (errno == EPROTO)
		return what_else;
	if (errno != EAGAIN)
		return strerror(errno);
	snprintf(late, sizeof(late), "no answer in %d s", ANSWER_SECONDS);
	return late;
}

/* A number, perhaps with a slash and another: nothing in it may end the line or the word. */
static const char *take_number(struct args *a, const char *what)
{
	const char *word = take_word(a, what);

	if (!isdigit((unsigned char)*word) || strpbrk(word, " \t\r\n"))
		usage_error(a, "%s \"%s\" is not a LID or a GUID", what, word);
	return word;
}

/* The line for the plugin, which says what is wrong with what the words mean. Returns its length. */
static size_t take_vm(struct args *a, char *line, size_t size, const char **path)
{
	static const struct {
		const char *name;
		bool has_vm, has_place, has_ways;
	} verbs[] = {
		{ "plan", true, true, true }, { "begin", true, true, true }, { "move", true, true, true },
		{ "end", true, false, false }, { "cancel", true, false, false },
		{ "start", true, true, false }, { "stop", true, false, false }, { "list", false, false, false },
	};
	static const char all[] = "plan, begin, move, end, cancel, start, stop or list";
	bool limited = false, closed = false;
	const char *vm = "", *place = "";
	size_t n, i = 0;

	while (i < sizeof(verbs) / sizeof(verbs[0]) && !take(a, verbs[i].name))
		i++;
	if (i == sizeof(verbs) / sizeof(verbs[0]))
		usage_error(a, "\"%s\" is none of %s", take_word(a, all), all);
	if (verbs[i].has_vm)
		vm = take_number(a, "VM");
	if (verbs[i].has_place)
		place = take_number(a, "PLACE");
	while (a->argc) {
		if (take(a, "socket"))
			*path = take_word(a, "PATH");
		else if (verbs[i].has_ways && take(a, "limited"))
			limited = true;
		else if (verbs[i].has_ways && take(a, "closed"))
			closed = true;
		else
			take_end(a);
	}
	n = snprintf(line, size, "%s%s%s%s%s%s%s\n", verbs[i].name, *vm ? " " : "", vm, *place ? " " : "", place,
		     limited ? " limited" : "", closed ? " closed" : "");
	if (n >= size)
		usage_error(a, "too long a line");
	return n;
}

static bool is_question(const char *line)
{
	return !strncmp(line, "list", 4) || !strncmp(line, "plan", 4);
}

/* A line is said, and its answer shown, but that of a list: that is left in @list. */
static int say(int fd, const char *path, const char *line, size_t n, struct json_object **list)
{
	struct json_object *o, *why;
	const char *error;
	int status;

	if (send(fd, line, n, MSG_NOSIGNAL) != (ssize_t)n) {
		fprintf(stderr, "repath: %s: not said: %s\n", path, strerror(errno));
		return EXIT_FAILED;
	}
	o = read_object(fd);
	if (!o) {
		fprintf(stderr, "repath: %s: %.*s: said, and %s%s\n", path, (int)n - 1, line,
			no_object("it has closed the connection, or said something else"), is_question(line) ? "" :
			"; repath sm vm list shows where the VM is, and it may be said again");
		return is_question(line) ? EXIT_FAILED : EXIT_UNFINISHED;
	}
	error = json_object_object_get_ex(o, "error", &why) ? json_object_get_string(why) : NULL;
	if (error)
		fprintf(stderr, "repath: %.*s: %s\n", (int)n - 1, line, error);
	else if (list)
		*list = json_object_get(o);
	else
		out_one(o);
	status = !error ? 0 : !strcmp(op_text(o, "state"), "unfinished") ? EXIT_UNFINISHED : EXIT_REFUSED;
	json_object_put(o);
	return status;
}

/* Its last answer also says what the list does not have. */
static void tell_silent(struct json_object *o)
{
	struct json_object *silent;
	int n = json_object_object_get_ex(o, "silent", &silent) ? json_object_get_int(silent) : 0;

	if (n == 1)
		fprintf(stderr, "repath: 1 port has not answered which VM it has: that is not in the list\n");
	else if (n)
		fprintf(stderr, "repath: %d ports have not answered which VMs they have: those are not in the list\n",
			n);
}

/* The plugin tells some at a time. */
static int list_vms(int fd, const char *path, const char *line, size_t n)
{
	struct json_object *all = json_object_new_array(), *vms, *more;
	char next[64];
	int status;

	for (;;) {
		struct json_object *o = NULL;
		size_t count = 0;
		bool again;

		status = say(fd, path, line, n, &o);
		if (status)
			break;
		if (json_object_object_get_ex(o, "vms", &vms) && json_object_is_type(vms, json_type_array))
			count = json_object_array_length(vms);
		for (size_t i = 0; i < count; i++)
			json_object_array_add(all, json_object_get(json_object_array_get_idx(vms, i)));
		again = count && json_object_object_get_ex(o, "more", &more) && json_object_get_boolean(more);
		if (again)
			n = snprintf(next, sizeof(next), "list %.40s\n",
				     op_text(json_object_array_get_idx(vms, count - 1), "guid"));
		else
			tell_silent(o);
		line = next;
		json_object_put(o);
		if (!again)
			break;
	}
	if (status)
		json_object_put(all);
	else
		out_list(all);
	return status;
}

static int vm(struct args *a)
{
	const char *path = VM_SOCKET;
	char line[256];
	int fd, status;
	size_t n;

	n = take_vm(a, line, sizeof(line), &path);
	fd = connect_to(path);
	if (fd < 0)
		return no_plugin(path, " and its option vswitch");
	status = strncmp(line, "list", 4) ? say(fd, path, line, n, NULL) : list_vms(fd, path, line, n);
	close(fd);
	return status;
}

int cmd_sm(struct door *door, struct args *a)
{
	const char *path = SOCKET;
	struct json_object *o;
	int fd;

	(void)door;
	if (take(a, "vm"))
		return vm(a);
	take_show(a);
	while (a->argc) {
		if (take(a, "socket"))
			path = take_word(a, "PATH");
		else
			take_end(a);
	}
	fd = connect_to(path);
	if (fd < 0)
		return no_plugin(path, "");
	o = read_object(fd);
	if (!o)
		fprintf(stderr, "repath: %s: %s\n", path,
			no_object("this is not the status of libosmrepath.so"));
	close(fd);
	if (!o)
		return EXIT_FAILED;
	if (out_json)
		out_object(o);
	else
		print_status(o, 2);
	json_object_put(o);
	return 0;
}
