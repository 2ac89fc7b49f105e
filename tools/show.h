/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Objects of the module as the command shows them: nests into objects that out.h renders. */
#ifndef REPATH_TOOL_SHOW_H
#define REPATH_TOOL_SHOW_H

#include <json-c/json.h>
#include "args.h"
#include "door.h"

struct json_object *qp_object(struct nlattr *nest);
struct json_object *process_object(struct nlattr *nest);
struct json_object *device_object(struct nlattr *nest);
struct json_object *connection_object(struct nlattr *nest);
struct json_object *path_object(struct nlattr *nest);

/* Sends CONN_MOVED and adds how many connections it was about; 0 or -errno. */
int connections_moved(struct door *door, struct nl_msg *msg, struct json_object *o);

/* Adds a member where the attribute is there. */
void show_number(struct json_object *o, const char *key, const struct nlattr *a);
void show_text(struct json_object *o, const char *key, struct nlattr *a);
/* Whole seconds from a CLOCK_BOOTTIME in ns until now. */
void show_age(struct json_object *o, const char *key, struct nlattr *since);
void show_gid(struct json_object *o, const char *key, const struct nlattr *a);
/* Takes the next word, a GID or an IPv4 address, into a request. */
void put_gid(struct nl_msg *msg, enum repath_attr attr, struct args *a);

/**
 * struct showing - a dump on its way into a list
 * @array: the objects
 * @attr: which attribute of a message is the nest
 * @object: makes an object of it
 */
struct showing {
	struct json_object *array;
	enum repath_attr attr;
	struct json_object *(*object)(struct nlattr *nest);
};

/* Sends @msg as a dump, or as a plain get when @one, and prints the answers. Exit status. */
int show_all(struct door *door, struct nl_msg *msg, bool one, enum repath_attr attr,
	     struct json_object *(*object)(struct nlattr *nest), const char *what);

#endif /* REPATH_TOOL_SHOW_H */
