/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the command prints. Every object is built once, as JSON, and rendered as asked: one line
 * of "key value" words each, or -j, or -j -p.
 */
#ifndef REPATH_TOOL_OUT_H
#define REPATH_TOOL_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>

/* How objects are rendered; set once by the command's options. */
extern bool out_json;
extern bool out_pretty;

/* Adds a member. A key is a constant. Text from elsewhere is made printable UTF-8 first. */
void out_text(struct json_object *o, const char *key, const char *value);
void out_number(struct json_object *o, const char *key, uint64_t value);
void out_millis(struct json_object *o, const char *key, uint64_t ns);
void out_flag(struct json_object *o, const char *key, bool value);

/* One line "key value key value"; flags are their key alone, false ones and nests are left out. */
void out_line(struct json_object *o);

/* A list as asked: with -j the array, else each by out_line. Frees it. */
void out_list(struct json_object *array);

/* One object as asked: with -j by out_object, else by out_line. */
void out_one(struct json_object *o);

/* One object as JSON on a line of its own (-p: several lines), flushed. */
void out_object(struct json_object *o);

#endif /* REPATH_TOOL_OUT_H */
