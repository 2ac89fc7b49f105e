// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath monitor: what changes, as it changes. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include "command.h"
#include "names.h"
#include "op.h"
#include "out.h"
#include "show.h"

static const struct watched {
	const char *name;
	uint8_t event;
	uint8_t get;
	enum repath_attr attr;
	struct json_object *(*object)(struct nlattr *nest);
} watched[] = {
	{ "qp", REPATH_CMD_EV_QP, REPATH_CMD_QP_GET, REPATH_A_QP, qp_object },
	{ "process", REPATH_CMD_EV_PROCESS, REPATH_CMD_PROCESS_GET, REPATH_A_PROCESS,
	  process_object },
	{ "device", REPATH_CMD_EV_DEVICE, REPATH_CMD_DEVICE_GET, REPATH_A_DEVICE, device_object },
	{ "path", REPATH_CMD_EV_PATH, REPATH_CMD_PATH_GET, REPATH_A_PATH, path_object },
	{ "op", REPATH_CMD_EV_OP, REPATH_CMD_OP_GET, REPATH_A_OP, op_object },
};

#define WATCHED	(sizeof(watched) / sizeof(watched[0]))

static unsigned int chosen;	/* bit i: watched[i] */

static void print_event(const char *what, const char *action, struct json_object *object)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out_json) {
		struct json_object *o = json_object_new_object();
		char seconds[32];

		snprintf(seconds, sizeof(seconds), "%lld.%06ld", (long long)now.tv_sec,
			 now.tv_nsec / 1000);
		json_object_object_add(o, "time", json_object_new_double_s(now.tv_sec, seconds));
		out_text(o, "event", what);
		out_text(o, "action", action);
		if (object)
			json_object_object_add(o, what, object);
		out_object(o);
		json_object_put(o);
	} else {
		printf("%s %s ", what, action);
		if (object)
			out_line(object);
		else
			printf("\n");
		json_object_put(object);
	}
	fflush(stdout);
}

static void take_event(uint8_t cmd, struct nlattr **tb, void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < WATCHED; i++) {
		const struct watched *w = &watched[i];

		if (w->event != cmd || !tb[w->attr] || !(chosen & 1u << i))
			continue;
		print_event(w->name, tb[REPATH_A_EV_ACTION] ?
			    name_of(NAMES_ACTION, nla_get_u8(tb[REPATH_A_EV_ACTION])) : "change",
			    w->object(tb[w->attr]));
	}
}

static void take_dumped(uint8_t cmd, struct nlattr **tb, void *arg)
{
	const struct watched *w = arg;

	(void)cmd;
	if (tb[w->attr])
		print_event(w->name, "now", w->object(tb[w->attr]));
}

static int dump(struct door *door)
{
	for (unsigned int i = 0; i < WATCHED; i++) {
		int err;

		if (!(chosen & 1u << i))
			continue;
		err = door_dump(door, door_request(watched[i].get), take_dumped,
			      (void *)&watched[i]);
		/* Whatever it is that went wrong, that the module goes explains it. */
		if (err && door_events(door, take_event, NULL) == -ENODEV)
			return -ENODEV;
		if (err)
			return err;
	}
	return 0;
}

/* Nobody else tells what the next module will find. */
static int wait_for_module(struct door *door)
{
	int err;

	print_event("module", "del", NULL);
	err = door_wait(door);
	if (!err)
		err = door_listen_all(door);
	if (err)
		return err == -EPROTONOSUPPORT ? -ENODEV : err;
	print_event("module", "new", NULL);
	return dump(door);
}

static bool take_watched(struct args *a)
{
	for (unsigned int i = 0; i < WATCHED; i++) {
		if (take(a, watched[i].name)) {
			chosen |= 1u << i;
			return true;
		}
	}
	return false;
}

int cmd_monitor(struct door *door, struct args *a)
{
	int err;

	chosen = 0;
	if (a->argc && take(a, "all"))
		chosen = (1u << WATCHED) - 1;
	while (a->argc && take_watched(a))
		;
	take_end(a);
	if (!chosen)
		chosen = (1u << WATCHED) - 1;

	for (err = door_listen_all(door); !err;) {
		struct pollfd fd = { .fd = door_event_fd(door), .events = POLLIN };

		if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			break;
		err = door_events(door, take_event, NULL);
		if (err == -ENOBUFS) {
			print_event("lost", "events were lost, everything follows as it is now",
				    NULL);
			err = dump(door);
		}
		while (err == -ENODEV)
			err = wait_for_module(door);
		if (ferror(stdout))
			return EXIT_FAILED;
	}
	fprintf(stderr, "repath: monitor: %s\n", door_error(door));
	return door_exit_status(err);
}
