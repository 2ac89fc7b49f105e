// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath status: operations, under way and over. */
#include <stdio.h>
#include "command.h"
#include "op.h"
#include "out.h"

static void print_process(struct json_object *process)
{
	struct json_object *stages;

	printf("    PID %s (%s) %s", op_text(process, "pid"), op_text(process, "comm"),
	       op_text(process, "stage"));
	if (*op_text(process, "error") || *op_text(process, "reason"))
		printf(" %s %s", op_text(process, "error"), op_text(process, "reason"));
	if (json_object_object_get_ex(process, "reached-ms", &stages)) {
		json_object_object_foreach(stages, name, ms) {
			printf(" %s %.1f ms", name, json_object_get_double(ms));
		}
	}
	printf("\n");
}

static void print_op(struct json_object *op)
{
	struct json_object *procs;

	out_line(op);
	if (!json_object_object_get_ex(op, "processes", &procs))
		return;
	for (size_t i = 0; i < json_object_array_length(procs); i++)
		print_process(json_object_array_get_idx(procs, i));
}

int cmd_status(struct door *door, struct args *a)
{
	struct json_object *list;
	uint32_t id = 0;
	int err;

	take_show(a);
	if (a->argc)
		id = take_u32(a, "operation", 1, UINT32_MAX);
	take_end(a);
	list = id ? op_get(door, id, &err) : op_all(door, &err);
	if (!list) {
		if (id)
			fprintf(stderr, "repath: operation %u: %s\n", id, door_error(door));
		else
			fprintf(stderr, "repath: operations: %s\n", door_error(door));
		return door_exit_status(err);
	}
	if (out_json) {
		out_object(list);
	} else if (id) {
		print_op(list);
	} else {
		for (size_t i = 0; i < json_object_array_length(list); i++)
			print_op(json_object_array_get_idx(list, i));
	}
	json_object_put(list);
	return 0;
}
