// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath stats: the module's counters, its own and those of each device. */
#include <stdio.h>
#include "command.h"
#include "names.h"
#include "op.h"
#include "out.h"
#include "show.h"

static struct json_object *stats_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object(), *counts = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1], *a;
	int left;

	door_nest(nest, tb);
	if (tb[REPATH_A_DEV_NAME]) {
		show_text(o, "dev", tb[REPATH_A_DEV_NAME]);
		show_number(o, "index", tb[REPATH_A_DEV_INDEX]);
	} else {
		out_flag(o, "module", true);
	}
	if (tb[REPATH_A_COUNTS])
		nla_for_each_nested(a, tb[REPATH_A_COUNTS], left)
			if (nla_len(a) == 8)
				out_number(counts, name_of(NAMES_STAT, nla_type(a)),
					   nla_get_u64(a));
	json_object_object_add(o, "counts", counts);
	return o;
}

/* Too many for a line; those that are 0 say nothing. */
static void print_stats(struct json_object *o, bool all)
{
	struct json_object *counts;
	const char *dev = op_text(o, "dev");

	printf("%s%s\n", *dev ? "dev " : "module", dev);
	if (!json_object_object_get_ex(o, "counts", &counts))
		return;
	json_object_object_foreach(counts, name, value) {
		if (all || json_object_get_uint64(value))
			printf("  %-18s %s\n", name, json_object_get_string(value));
	}
}

static void take_stats(uint8_t cmd, struct nlattr **tb, void *arg)
{
	(void)cmd;
	if (tb[REPATH_A_STATS])
		json_object_array_add(arg, stats_object(tb[REPATH_A_STATS]));
}

int cmd_stats(struct door *door, struct args *a)
{
	struct nl_msg *msg = door_request(REPATH_CMD_STATS_GET);
	struct json_object *list = json_object_new_array();
	bool all = false;
	int err;

	take_show(a);
	while (a->argc) {
		if (take(a, "dev"))
			nla_put_string(msg, REPATH_A_DEV_NAME, take_dev(a));
		else if (take(a, "all"))
			all = true;
		else
			take_end(a);
	}
	err = door_dump(door, msg, take_stats, list);
	if (err) {
		fprintf(stderr, "repath: counters: %s\n", door_error(door));
		json_object_put(list);
		return door_exit_status(err);
	}
	if (out_json) {
		out_object(list);
	} else {
		for (size_t i = 0; i < json_object_array_length(list); i++)
			print_stats(json_object_array_get_idx(list, i), all);
	}
	json_object_put(list);
	return 0;
}
