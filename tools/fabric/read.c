// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which file is what, and their lines. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "read.h"

#define FILES	64
#define PROBED	64		/* lines that are looked at to tell what a file is */

bool lines_open(struct lines *l, const char *path, char message[READ_MESSAGE])
{
	*l = (struct lines){ .path = path, .message = message, .file = fopen(path, "re") };
	if (!l->file)
		snprintf(message, READ_MESSAGE, "%s: %s", path, strerror(errno));
	return l->file;
}

bool lines_close(struct lines *l, bool done)
{
	if (done && ferror(l->file)) {
		snprintf(l->message, READ_MESSAGE, "%s: %s", l->path, strerror(errno));
		done = false;
	}
	free(l->line);
	fclose(l->file);
	return done;
}

bool lines_next(struct lines *l)
{
	ssize_t n = getline(&l->line, &l->room, l->file);

	if (n < 0)
		return false;
	while (n && (l->line[n - 1] == '\n' || l->line[n - 1] == '\r' || l->line[n - 1] == ' '))
		l->line[--n] = 0;
	l->number++;
	return true;
}

bool lines_bad(struct lines *l, const char *format, ...)
{
	va_list ap;
	int n = snprintf(l->message, READ_MESSAGE, "%s:%u: ", l->path, l->number);

	if (n < READ_MESSAGE) {
		va_start(ap, format);
		vsnprintf(l->message + n, READ_MESSAGE - n, format, ap);
		va_end(ap);
	}
	return false;
}

bool take_number(const char **s, int base, uint64_t max, uint64_t *value)
{
	unsigned long long v;
	char *end;

	*s += strspn(*s, " \t");
	if (!strchr("0123456789abcdefABCDEF", **s) || !**s)
		return false;
	errno = 0;
	v = strtoull(*s, &end, base);
	if (errno || end == *s || v > max)
		return false;
	*s = end;
	*value = v;
	return true;
}

bool take_text(const char **s, const char *word)
{
	const char *at = *s + strspn(*s, " \t");

	if (strncmp(at, word, strlen(word)))
		return false;
	*s = at + strlen(word);
	return true;
}

static const struct {
	const char *begin;
	enum read_kind kind;
} beginnings[] = {
	{ "repath fabric", READ_STATE },
	{ "{ ", READ_SUBNET },
	{ "vendid=", READ_NET },
	{ "Switch\t", READ_NET },
	{ "Ca\t", READ_NET },
	{ "Unicast lids", READ_TABLES },
	{ "dump_ucast_routes:", READ_ROUTES },
	{ "Switch 0x", READ_SL2VL },
	{ "Channel Adapter 0x", READ_SL2VL },
};

static enum read_kind kind_of(struct lines *l)
{
	const char *s;
	uint64_t unused;

	while (l->number < PROBED && lines_next(l)) {
		if (!*l->line || *l->line == '#')
			continue;
		for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
			if (!strncmp(l->line, beginnings[i].begin, strlen(beginnings[i].begin)))
				return beginnings[i].kind;
		s = l->line;
		return take_number(&s, 0, FABRIC_LIDS - 1, &unused) &&
		       take_number(&s, 0, FABRIC_LIDS - 1, &unused) &&
		       take_number(&s, 0, FABRIC_LANES - 1, &unused) ? READ_PATHS : READ_UNKNOWN;
	}
	return READ_UNKNOWN;
}

typedef bool reader(struct fabric *f, struct lines *l);

static reader *const readers[READ_UNKNOWN] = {
	[READ_STATE] = read_state,	[READ_SUBNET] = read_subnet,	[READ_NET] = read_net,
	[READ_TABLES] = read_tables,	[READ_ROUTES] = read_routes,	[READ_SL2VL] = read_sl2vl,
	[READ_PATHS] = read_paths,
};

static bool read_file(struct fabric *f, const char *path, enum read_kind kind, char *message)
{
	struct lines l;

	return lines_open(&l, path, message) && lines_close(&l, readers[kind](f, &l));
}

struct found {
	char *path;
	enum read_kind kind;
};

static bool find_file(struct found *found, const char *path, char *message)
{
	struct lines l;

	if (!lines_open(&l, path, message))
		return false;
	found->kind = kind_of(&l);
	lines_close(&l, false);
	if (found->kind == READ_UNKNOWN) {
		snprintf(message, READ_MESSAGE,
			 "%s: neither a dump of OpenSM's nor any other file that is understood", path);
		return false;
	}
	found->path = strdup(path);
	return found->path;
}

/* What OpenSM leaves in its dump_files_dir. Of two that tell the same the richer is taken. */
static bool find_dumps(struct found *found, size_t *n, const char *dir, char *message)
{
	static const char *const names[] = { "opensm-subnet.lst", "opensm-lfts.dump",
		"opensm.fdbs", "opensm-sl2vl.dump", "paths.sl" };
	bool tables = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[4096];

		if (i == 2 && tables)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, names[i]) >= (int)sizeof(path))
			continue;
		if (access(path, F_OK))
			continue;
		if (*n == FILES || !find_file(&found[*n], path, message))
			return false;
		tables |= i == 1;
		++*n;
	}
	return true;
}

static bool find_all(struct found *found, size_t *n, const char *const *paths, size_t given,
		     char *message)
{
	for (size_t i = 0; i < given; i++) {
		struct stat st;
		bool there = !stat(paths[i], &st);

		if (there && S_ISDIR(st.st_mode)) {
			size_t before = *n;

			if (!find_dumps(found, n, paths[i], message))
				return false;
			if (*n > before)
				continue;
			snprintf(message, READ_MESSAGE, "%s: OpenSM has dumped nothing there;"
				 " start it with -D 0x43, or set log_flags", paths[i]);
			return false;
		}
		if (*n == FILES) {
			snprintf(message, READ_MESSAGE, "%s: too many files", paths[i]);
			return false;
		}
		/* The order is that of their kinds: each is looked into before any is read. */
		if (there && !S_ISREG(st.st_mode)) {
			snprintf(message, READ_MESSAGE, "%s: no file, and a pipe can not be read twice; write it to a file first",
				 paths[i]);
			return false;
		}
		if (!find_file(&found[*n], paths[i], message))
			return false;
		++*n;
	}
	return true;
}

bool read_fabric(struct fabric *f, const char *const *paths, size_t given,
		 char message[READ_MESSAGE])
{
	struct found found[FILES];
	size_t n = 0;
	bool done;

	snprintf(message, READ_MESSAGE, "no file is named");
	done = given && find_all(found, &n, paths, given, message);
	for (unsigned int kind = 0; done && kind < READ_UNKNOWN; kind++) {
		/* What all others are about comes first. */
		if (kind == READ_NET + 1 && !f->nodes) {
			snprintf(message, READ_MESSAGE, "%s: no cables are told of; name opensm-subnet.lst"
				 " or what ibnetdiscover prints as well", paths[0]);
			done = false;
		}
		for (size_t i = 0; done && i < n; i++)
			if (found[i].kind == kind)
				done = read_file(f, found[i].path, kind, message);
	}
	for (size_t i = 0; i < n; i++)
		free(found[i].path);
	return done;
}
