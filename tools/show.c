// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* From attributes to objects, and a whole list of them onto the terminal. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "out.h"
#include "show.h"

void show_number(struct json_object *o, const char *key, const struct nlattr *a)
{
	if (!a)
		return;
	switch (nla_len(a)) {
	case 1:
		out_number(o, key, nla_get_u8(a));
		break;
	case 4:
		out_number(o, key, nla_get_u32(a));
		break;
	case 8:
		out_number(o, key, nla_get_u64((struct nlattr *)a));
		break;
	}
}

void show_age(struct json_object *o, const char *key, struct nlattr *since)
{
	struct timespec now;
	uint64_t ns;

	if (!since)
		return;
	clock_gettime(CLOCK_BOOTTIME, &now);
	ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	if (ns >= nla_get_u64(since))
		out_number(o, key, (ns - nla_get_u64(since)) / 1000000000);
}

void show_text(struct json_object *o, const char *key, struct nlattr *a)
{
	char *text;

	if (!a)
		return;
	/* Not every writer ends a string with a NUL. */
	text = nla_strdup(a);
	if (!text)
		abort();
	out_text(o, key, text);
	free(text);
}

void show_gid(struct json_object *o, const char *key, const struct nlattr *a)
{
	char text[INET6_ADDRSTRLEN];

	if (a && inet_ntop(AF_INET6, nla_data(a), text, sizeof(text)))
		out_text(o, key, text);
}

void put_gid(struct nl_msg *msg, enum repath_attr attr, struct args *a)
{
	const char *word = take_word(a, "a GID");
	unsigned char gid[16];

	if (!gid_of(word, gid))
		usage_error(a, "\"%s\" is not a GID", word);
	nla_put(msg, attr, sizeof(gid), gid);
}

static void take_one(uint8_t cmd, struct nlattr **tb, void *arg)
{
	struct showing *s = arg;

	(void)cmd;
	if (tb[s->attr])
		json_object_array_add(s->array, s->object(tb[s->attr]));
}

int show_all(struct door *door, struct nl_msg *msg, bool one, enum repath_attr attr,
	     struct json_object *(*object)(struct nlattr *nest), const char *what)
{
	struct showing s = { json_object_new_array(), attr, object };
	int err;

	err = one ? door_do(door, msg, take_one, &s) : door_dump(door, msg, take_one, &s);
	if (err) {
		fprintf(stderr, "repath: %s: %s\n", what, door_error(door));
		json_object_put(s.array);
		return door_exit_status(err);
	}
	out_list(s.array);
	return 0;
}
