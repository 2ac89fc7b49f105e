// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "options.h"

static const char *const methods[] = {
	[RSM_WILDCARD] = "wildcard", [RSM_REPATH_ONLY] = "repath-only", [RSM_HYBRID] = "hybrid",
	[RSM_AFFECTED] = "affected", [RSM_AUTO] = "auto",		NULL,
};

/* From the second on: enum rsm_distribution. */
static const char *const ways[] = { "off", "dynamic", "static", "ports", "turns", NULL };

static const char *const voqsw_engines[] = { "updown", "vftree", "pftree", NULL };

static const char *const switched[] = { "off", "on", NULL };

static const char *const vswitches[] = { "off", "prepopulated", "dynamic", NULL };

enum kind { NUMBER, CHOICE, TEXT };

/* Where a choice has -1 it is called "auto". */
static const struct option {
	const char *name;
	enum kind kind;
	size_t offset;
	long fallback, least, most;
	const char *const *choices;
	const char *text;
} options[] = {
#define AT(member) offsetof(struct rsm_options, member)
	{ "method", CHOICE, AT(method), RSM_AUTO, 0, 0, methods, NULL },
	{ "unpath", CHOICE, AT(unpath), -1, -1, 0, switched, NULL },
	{ "dry_run", CHOICE, AT(dry_run), 0, 0, 0, switched, NULL },
	{ "report_timeout", NUMBER, AT(report_timeout), 200, 1, 60000, NULL, NULL },
	{ "report_limit", NUMBER, AT(report_limit), 8, 1, 1000, NULL, NULL },
	{ "window", NUMBER, AT(window), 64, 1, 512, NULL, NULL },
	{ "host_rate", NUMBER, AT(host_rate), 1000, 0, 1000000, NULL, NULL },
	{ "both_ends", CHOICE, AT(both_ends), 1, 0, 0, switched, NULL },
	{ "coalesce", CHOICE, AT(coalesce), -1, -1, 0, switched, NULL },
	{ "unpath_wait", NUMBER, AT(unpath_wait), 20, 0, 10000, NULL, NULL },
	{ "link_wait", NUMBER, AT(link_wait), 1000, 0, 10000, NULL, NULL },
	{ "steady", CHOICE, AT(steady), 1, 0, 0, switched, NULL },
	{ "auto_records", NUMBER, AT(auto_records), 32, 0, 1024, NULL, NULL },
	{ "sm_sl", CHOICE, AT(sm_sl), 0, 0, 0, switched, NULL },
	{ "slow_sl", NUMBER, AT(slow_sl), 0, 0, 15, NULL, NULL },
	{ "hotspot_wait", NUMBER, AT(hotspot_wait), 100000, 1, INT_MAX, NULL, NULL },
	{ "hotspot_used", NUMBER, AT(hotspot_used), 50, 1, 100, NULL, NULL },
	{ "hotspot_onset", NUMBER, AT(hotspot_onset), 1, 1, 1000, NULL, NULL },
	{ "hotspot_calm", NUMBER, AT(hotspot_calm), 2, 1, 1000, NULL, NULL },
	{ "hotspot_calm_percent", NUMBER, AT(hotspot_calm_percent), 50, 1, 100, NULL, NULL },
	{ "hotspot_mbit", NUMBER, AT(hotspot_mbit), 0, 0, INT_MAX, NULL, NULL },
	{ "moves_interval", NUMBER, AT(moves_interval), 100, 0, 3600000, NULL, NULL },
	{ "moves_keep", NUMBER, AT(moves_keep), 3600, 1, INT_MAX, NULL, NULL },
	{ "moves_limit", NUMBER, AT(moves_limit), 65536, 1, INT_MAX, NULL, NULL },
	{ "vftree_even", CHOICE, AT(vftree_even), 0, 0, 0, switched, NULL },
	{ "vftree_lanes", NUMBER, AT(vftree_lanes), 0, 0, 15, NULL, NULL },
	{ "pftree_isolation", NUMBER, AT(pftree_isolation), 100, 0, 100, NULL, NULL },
	{ "pftree_lanes", NUMBER, AT(pftree_lanes), 15, 1, 15, NULL, NULL },
	{ "pftree_learn", CHOICE, AT(pftree_learn), 0, 0, 0, switched, NULL },
	{ "pftree_policy", TEXT, AT(pftree_policy), 0, 0, 0, NULL, "" },
	{ "distribute", CHOICE, AT(distribute), 0, 0, 0, ways, NULL },
	{ "distribute_wait", NUMBER, AT(distribute_wait), 1100, 0, 60000, NULL, NULL },
	{ "updown_even", CHOICE, AT(updown_even), 1, 0, 0, switched, NULL },
	{ "vswitch", CHOICE, AT(vswitch), 0, 0, 0, vswitches, NULL },
	{ "vswitch_routed", CHOICE, AT(vswitch_routed), 1, 0, 0, switched, NULL },
	{ "vswitch_name", TEXT, AT(vswitch_name), 0, 0, 0, NULL, "vswitch" },
	{ "vswitch_socket", TEXT, AT(vswitch_socket), 0, 0, 0, NULL, "/run/osm-repath-vm.sock" },
	{ "voqsw_engine", CHOICE, AT(voqsw_engine), 0, 0, 0, voqsw_engines, NULL },
	{ "voqsw_even", CHOICE, AT(voqsw_even), 1, 0, 0, switched, NULL },
	{ "voqsw_hosts", CHOICE, AT(voqsw_hosts), 1, 0, 0, switched, NULL },
	{ "voqsw_over", CHOICE, AT(voqsw_over), 0, 0, 0, switched, NULL },
	{ "voqsw_sls", NUMBER, AT(voqsw_sls), 8, 1, 16, NULL, NULL },
	{ "voqsw_vls", NUMBER, AT(voqsw_vls), 0, 0, 15, NULL, NULL },
	{ "status_socket", TEXT, AT(status_socket), 0, 0, 0, NULL, "/run/osm-repath.sock" },
#undef AT
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))
#define TEXT_SIZE sizeof(((struct rsm_options *)NULL)->status_socket)

/** rsm_method_name - the word for it in the option file */
const char *rsm_method_name(int method)
{
	return methods[method];
}

static void set_number(struct rsm_options *opt, const struct option *o, long value)
{
	*(int *)((char *)opt + o->offset) = value;
}

static int set_choice(struct rsm_options *opt, const struct option *o, const char *value)
{
	if (o->least < 0 && !strcmp(value, "auto")) {
		set_number(opt, o, -1);
		return 0;
	}
	for (int i = 0; o->choices[i]; i++) {
		if (!strcmp(value, o->choices[i])) {
			set_number(opt, o, i);
			return 0;
		}
	}
	return -EINVAL;
}

static int set(struct rsm_options *opt, const struct option *o, const char *value)
{
	char *end;
	long number;

	switch (o->kind) {
	case CHOICE:
		return set_choice(opt, o, value);
	case TEXT:
		if (strlen(value) >= TEXT_SIZE)
			return -EINVAL;
		strcpy((char *)opt + o->offset, value);
		return 0;
	case NUMBER:
		errno = 0;
		number = strtol(value, &end, 10);
		if (errno || end == value || *end || number < o->least || number > o->most)
			return -EINVAL;
		set_number(opt, o, number);
		return 0;
	}
	return -EINVAL;
}

static void set_fallbacks(struct rsm_options *opt)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (options[i].kind == TEXT)
			strcpy((char *)opt + options[i].offset, options[i].text);
		else
			set_number(opt, &options[i], options[i].fallback);
	}
}

static void say_range(const struct option *o, char *why, size_t size)
{
	size_t at = strlen(why);

	if (o->kind == NUMBER) {
		snprintf(why + at, size - at, " (%ld to %ld)", o->least, o->most);
		return;
	}
	if (o->kind == TEXT) {
		snprintf(why + at, size - at, " (at most %zu characters)", TEXT_SIZE - 1);
		return;
	}
	at += snprintf(why + at, size - at, " (one of:%s", o->least < 0 ? " auto" : "");
	for (int i = 0; o->choices[i] && at < size; i++)
		at += snprintf(why + at, size - at, " %s", o->choices[i]);
	if (at < size)
		snprintf(why + at, size - at, ")");
}

struct reading {
	struct rsm_options *opt;
	char wrong[256];
};

static int parse_line(char *line, void *arg)
{
	struct reading *r = arg;
	char *save, *name, *value;

	line[strcspn(line, "#\n")] = '\0';
	name = strtok_r(line, " \t\r", &save);
	if (!name)
		return 0;
	value = strtok_r(NULL, " \t\r", &save);
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (strcmp(name, options[i].name))
			continue;
		if (!value && options[i].kind == TEXT)
			value = "";
		if (value && strtok_r(NULL, " \t\r", &save)) {
			snprintf(r->wrong, sizeof(r->wrong), "more than one value for %s", name);
			return -EINVAL;
		}
		if (!value || set(r->opt, &options[i], value)) {
			snprintf(r->wrong, sizeof(r->wrong), "no value for %s: %s", name, value ? value : "");
			say_range(&options[i], r->wrong, sizeof(r->wrong));
			return -EINVAL;
		}
		return 0;
	}
	snprintf(r->wrong, sizeof(r->wrong), "no such option: %s", name);
	return -EINVAL;
}

/**
 * rsm_options_read - defaults, and then what a file says
 * @opt: filled in
 * @path: of the file; NULL or empty: RSM_OPTIONS_FILE, which need not exist
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0 or a negative error number.
 */
int rsm_options_read(struct rsm_options *opt, const char *path, char *why, size_t size)
{
	struct reading r = { .opt = opt };
	bool named = path && *path;
	unsigned int number;
	int rc;

	set_fallbacks(opt);
	if (!named)
		path = RSM_OPTIONS_FILE;
	rc = rsm_lines(path, parse_line, &r, &number);
	if (number && rc)
		snprintf(why, size, "%s:%u: %s", path, number, r.wrong);
	else if (rc)
		snprintf(why, size, "%s: %s", path, strerror(-rc));
	return named || rc != -ENOENT ? rc : 0;
}
