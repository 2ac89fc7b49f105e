// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * "name=0x8001, ipoib, sl=1, defmember=full : 0x1234=full, 0x5678=limited ;": definitions end with a
 * semicolon, on whatever line; "#" begins a comment. As opensm(8) describes them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "partition.h"

#define PKEY_BASE	0x7fff

static char *trimmed(char *s)
{
	char *end = s + strlen(s);

	while (isspace((unsigned char)*s))
		s++;
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = 0;
	return s;
}

/* By its P_Key; where that is 0, OpenSM chooses one, but for a name that there was before. */
static struct partition *partition_of(struct partitions *all, const char *name, uint16_t pkey)
{
	struct partition *p;

	for (unsigned int i = 0; i < all->n; i++) {
		p = &all->partition[i];
		if (pkey ? p->pkey == pkey : *name && !strcmp(p->name, name))
			return p;
	}
	if (all->n == all->room) {
		all->room = all->room ? 2 * all->room : 8;
		p = fabric_alloc(all->room, sizeof(*p));
		if (all->n)
			memcpy(p, all->partition, all->n * sizeof(*p));
		free(all->partition);
		all->partition = p;
	}
	p = &all->partition[all->n++];
	p->name = strdup(*name ? name : "unnamed");
	if (!p->name)
		abort();
	for (char *c = p->name; *c; c++)
		if (!isprint((unsigned char)*c) || strchr("\"\\<>&", *c))
			*c = '?';
	p->pkey = pkey;
	return p;
}

static void add_member(struct partition *p, uint64_t guid, bool full)
{
	for (unsigned int i = 0; i < p->members; i++) {
		if (p->guid[i] == guid) {
			p->full[i] |= full;
			return;
		}
	}
	if (p->members == p->room) {
		unsigned int room = p->room ? 2 * p->room : 16;
		uint64_t *guid_more = fabric_alloc(room, sizeof(*guid_more));
		bool *full_more = fabric_alloc(room, sizeof(*full_more));

		if (p->members) {
			memcpy(guid_more, p->guid, p->members * sizeof(*guid_more));
			memcpy(full_more, p->full, p->members * sizeof(*full_more));
		}
		free(p->guid);
		free(p->full);
		p->guid = guid_more;
		p->full = full_more;
		p->room = room;
	}
	p->guid[p->members] = guid;
	p->full[p->members++] = full;
}

/* OpenSM takes any beginning of such a word. */
static bool is_full(const char *word)
{
	return *word && (!strncasecmp("full", word, strlen(word)) ||
			 !strncasecmp("both", word, strlen(word)));
}

/* "ALL", "SELF", "0x1234=full", or what tells of multicast groups, which is passed over. */
static bool member(struct partition *p, char *word, bool full_unless_said, struct lines *l)
{
	char *how = strchr(word, '=');
	bool full = full_unless_said;
	const char *s;
	uint64_t guid;

	if (how) {
		*how = 0;
		how = trimmed(how + 1);
		full = is_full(how);
	}
	word = trimmed(word);
	if (!*word || !strncasecmp(word, "SELF", 4) || !strcasecmp(word, "NONE"))
		return true;
	if (!strncasecmp(word, "ALL", 3)) {
		p->everybody |= !strcasecmp(word, "ALL") || !strcasecmp(word, "ALL_CAS");
		return true;
	}
	if (!isdigit((unsigned char)*word)) {
		if (how)
			return true;
		return lines_bad(l, "\"%.40s\" is no port GUID", word);
	}
	s = word;
	if (!take_number(&s, 0, UINT64_MAX, &guid) || *s)
		return lines_bad(l, "\"%.40s\" is no port GUID", word);
	if (!guid)
		return true;
	add_member(p, guid, full);
	return true;
}

static bool definition(struct partitions *all, char *text, struct lines *l)
{
	char *members = strchr(text, ':'), *word, *value, *rest;
	struct partition *p;
	bool full = false;
	uint64_t pkey;
	const char *s;

	if (!members)
		return lines_bad(l, "a partition without \":\" and members");
	*members++ = 0;
	word = trimmed(strsep(&text, ","));
	value = strchr(word, '=');
	if (value)
		*value++ = 0;
	else if (isdigit((unsigned char)*word))
		value = word;
	pkey = !strcasecmp(word, "Default") ? PKEY_BASE : 0;
	s = value;
	if (value && (!take_number(&s, 0, UINT16_MAX, &pkey) || !(pkey & PKEY_BASE)))
		return lines_bad(l, "\"%.40s\" is no P_Key", value);
	p = partition_of(all, trimmed(word), pkey & PKEY_BASE);
	while ((rest = strsep(&text, ","))) {
		rest = trimmed(rest);
		if (!strncasecmp(rest, "defmember", 9) && strchr(rest, '='))
			full = is_full(trimmed(strchr(rest, '=') + 1));
	}
	while ((word = strsep(&members, ",\n")))
		if (!member(p, word, full, l))
			return false;
	return true;
}

static bool is_taken(const struct partitions *all, uint16_t pkey)
{
	for (unsigned int i = 0; i < all->n; i++)
		if (all->partition[i].pkey == pkey)
			return true;
	return false;
}

/* P_Keys that the file leaves to OpenSM: none that it gives to others. */
static void choose_pkeys(struct partitions *all)
{
	uint16_t next = PKEY_BASE - 1;

	for (unsigned int i = 0; i < all->n; i++) {
		if (all->partition[i].pkey)
			continue;
		while (is_taken(all, next))
			next--;
		all->partition[i].pkey = next;
	}
}

static bool read_definitions(struct partitions *all, struct lines *l)
{
	char *text = NULL;
	size_t n = 0, room = 0;
	FILE *to = open_memstream(&text, &room);
	bool done = true;

	if (!to)
		abort();
	while (done && lines_next(l)) {
		char *s = l->line, *end;

		s[strcspn(s, "#")] = 0;
		while (done && (end = strchr(s, ';'))) {
			*end = 0;
			fputs(s, to);
			fputc(0, to);
			fflush(to);
			done = definition(all, text, l);
			rewind(to);
			n = 0;
			s = end + 1;
		}
		n += strlen(trimmed(s));
		fputs(s, to);
		fputc('\n', to);
	}
	choose_pkeys(all);
	if (done && n)
		done = lines_bad(l, "the last partition has no \";\" at its end");
	fclose(to);
	free(text);
	return done;
}

struct partitions *partitions_read(const char *path, char message[READ_MESSAGE])
{
	struct partitions *all;
	struct lines l;

	if (!lines_open(&l, path, message))
		return NULL;
	all = fabric_alloc(1, sizeof(*all));
	if (lines_close(&l, read_definitions(all, &l)))
		return all;
	partitions_free(all);
	return NULL;
}

void partitions_free(struct partitions *p)
{
	for (unsigned int i = 0; p && i < p->n; i++) {
		free(p->partition[i].name);
		free(p->partition[i].guid);
		free(p->partition[i].full);
	}
	if (p)
		free(p->partition);
	free(p);
}
