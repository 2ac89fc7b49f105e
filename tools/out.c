// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Objects rendered as text or JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "out.h"

bool out_json;
bool out_pretty;

/* Length of the UTF-8 sequence at @s, 0 if it is none or nothing to be shown to a terminal. */
static size_t printable(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 :
		   s[0] < 0xf5 ? 4 : 0;

	if (n == 1)
		return s[0] >= ' ' && s[0] != 0x7f;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xc2 && s[1] < 0xa0) ||	/* C1 controls */
	    (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||	/* overlong */
	    (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f))	/* no characters */
		return 0;
	return n;
}

void out_text(struct json_object *o, const char *key, const char *value)
{
	char *clean = strdup(value), *to = clean;

	if (!clean)
		abort();
	/* A process names itself: its name must not write escape sequences to a terminal. */
	while (*value) {
		size_t n = printable((const unsigned char *)value);

		if (n)
			memcpy(to, value, n);
		else
			*to = '?';
		to += n ? n : 1;
		value += n ? n : 1;
	}
	*to = 0;
	json_object_object_add(o, key, json_object_new_string(clean));
	free(clean);
}

void out_number(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

void out_millis(struct json_object *o, const char *key, uint64_t ns)
{
	char digits[32];

	/* Written out: a double would come back with binary noise behind the microseconds. */
	snprintf(digits, sizeof(digits), "%.3f", ns / 1e6);
	json_object_object_add(o, key, json_object_new_double_s(ns / 1e6, digits));
}

void out_flag(struct json_object *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

void out_line(struct json_object *o)
{
	const char *space = "";

	json_object_object_foreach(o, key, value) {
		switch (json_object_get_type(value)) {
		case json_type_object:
		case json_type_array:
			continue;
		case json_type_null:	/* a part that is not switched on */
			printf("%s%s off", space, key);
			break;
		case json_type_boolean:
			if (!json_object_get_boolean(value))
				continue;
			printf("%s%s", space, key);
			break;
		default:
			printf("%s%s %s", space, key, json_object_get_string(value));
		}
		space = " ";
	}
	printf("\n");
	fflush(stdout);
}

void out_object(struct json_object *o)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	flags |= out_pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED :
			      JSON_C_TO_STRING_PLAIN;
	printf("%s\n", json_object_to_json_string_ext(o, flags));
	fflush(stdout);
}

void out_one(struct json_object *o)
{
	if (out_json)
		out_object(o);
	else
		out_line(o);
}

void out_list(struct json_object *array)
{
	if (out_json) {
		out_object(array);
	} else {
		for (size_t i = 0; i < json_object_array_length(array); i++)
			out_line(json_object_array_get_idx(array, i));
	}
	json_object_put(array);
}
