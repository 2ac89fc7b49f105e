/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Readers of what other programs write of a subnet. Each file is told by its beginning. The first
 * line that is not understood ends the reading, with a message that names file and line.
 */
#ifndef REPATH_FABRIC_READ_H
#define REPATH_FABRIC_READ_H

#include <stdio.h>
#include "fabric.h"

#define READ_MESSAGE	512

/**
 * struct lines - a file, line by line
 * @file: open
 * @path: its name, for messages
 * @line: the line at hand, without its end
 * @room: of @line
 * @number: its number, from 1
 * @message: what is wrong, when something is
 */
struct lines {
	FILE *file;
	const char *path;
	char *line;
	size_t room;
	unsigned int number;
	char *message;
};

/* False, with @message set. */
bool lines_open(struct lines *l, const char *path, char message[READ_MESSAGE]);
/* @done: what was read is understood. False, with the message set, too if it is not all that the file has. */
bool lines_close(struct lines *l, bool done);
/* False at the end. */
bool lines_next(struct lines *l);
/* Always false, with @l's message set. */
bool lines_bad(struct lines *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A number at *@s, which is left behind it; with base 16 with "0x" or without. */
bool take_number(const char **s, int base, uint64_t max, uint64_t *value);
/* Steps over @word, and blanks before it. */
bool take_text(const char **s, const char *word);

/* Kinds of files, in the order in which they are read: cables first, SLs of paths last. */
enum read_kind {
	READ_STATE,		/* what "save" writes; see repath-fabric(8) */
	READ_SUBNET,		/* opensm-subnet.lst */
	READ_NET,		/* ibnetdiscover */
	READ_TABLES,		/* opensm-lfts.dump, dump_fts, ibroute */
	READ_ROUTES,		/* opensm.fdbs */
	READ_SL2VL,		/* opensm-sl2vl.dump */
	READ_PATHS,		/* lines "slid dlid sl" */
	READ_UNKNOWN,
};

bool read_state(struct fabric *f, struct lines *l);
bool read_subnet(struct fabric *f, struct lines *l);
bool read_net(struct fabric *f, struct lines *l);
bool read_tables(struct fabric *f, struct lines *l);
bool read_routes(struct fabric *f, struct lines *l);
bool read_sl2vl(struct fabric *f, struct lines *l);
bool read_paths(struct fabric *f, struct lines *l);

/**
 * read_fabric() - all files of one subnet
 * @f: what is filled
 * @paths: files, and directories in which OpenSM has dumped
 * @n: how many
 * @message: what is wrong, when something is
 *
 * Return: whether all was understood and there is a subnet.
 */
bool read_fabric(struct fabric *f, const char *const *paths, size_t n,
		 char message[READ_MESSAGE]);

/* What read_state() reads. */
void write_state(const struct fabric *f, FILE *to);

#endif /* REPATH_FABRIC_READ_H */
