// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * nlhear GROUP: joins a multicast group of the module by the command's own door, and for each message tells
 * whether there is a PID, a name or a reason anywhere in it.
 */
#include <poll.h>
#include <stdio.h>

#include "../../tools/door.h"

/* Of all attributes below @attr. */
static void tell(struct nlattr *attr)
{
	struct nlattr *in;
	int left;

	switch (nla_type(attr)) {
	case REPATH_A_PID:
		printf(" pid %u", nla_get_u32(attr));
		break;
	case REPATH_A_COMM:
		printf(" comm %s", nla_get_string(attr));
		break;
	case REPATH_A_REASON:
		printf(" reason %s", nla_get_string(attr));
		break;
	}
	if (nla_is_nested(attr))
		nla_for_each_nested(in, attr, left)
			tell(in);
}

static void take(uint8_t cmd, struct nlattr **tb, void *arg)
{
	unsigned int i, n = 0;

	(void)arg;
	printf("cmd %u", cmd);
	for (i = 0; i <= REPATH_A_MAX; i++)
		if (tb[i]) {
			tell(tb[i]);
			n++;
		}
	printf(" attrs %u\n", n);
}

int main(int argc, char **argv)
{
	struct door *door = door_new();
	int err = argc == 2 ? door_listen(door, argv[1]) : 0;

	if (argc != 2) {
		fputs("usage: nlhear GROUP\n", stderr);
		return 2;
	}
	setlinebuf(stdout);
	printf("%s\n", err ? door_error(door) : "listening");
	while (!err) {
		struct pollfd fd = { .fd = door_event_fd(door), .events = POLLIN };

		poll(&fd, 1, -1);
		err = door_events(door, take, NULL);
	}
	door_close(door);
	return 1;
}
