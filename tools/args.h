/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The command line: words that are taken one by one, and what is wrong with them. */
#ifndef REPATH_TOOL_ARGS_H
#define REPATH_TOOL_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define EXIT_FAILED	1	/* rolled back: everything is as before; or not there, or no answer */
#define EXIT_USAGE	2
#define EXIT_NO_DOOR	3	/* no module, or no permission */
#define EXIT_REFUSED	4	/* and nothing was touched */
#define EXIT_PARKED	5	/* the processes wait for another resume */
#define EXIT_GOES_ON	6	/* interrupted, and the operation goes on */
#define EXIT_UNFINISHED	7	/* it was begun, and nobody knows how far it has come */

#define DEV_NAME_LEN	64	/* with the final NUL */

/**
 * struct args - words that are left
 * @argc: how many
 * @argv: the next
 * @usage: one line, the right use of the subcommand
 */
struct args {
	int argc;
	char **argv;
	const char *usage;
};

/* Says what is wrong and the right use on stderr, and exits with EXIT_USAGE. */
void usage_error(const struct args *a, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* Takes the next word if it is @word or a beginning of it, as ip(8) does, with "--" or without. */
bool take(struct args *a, const char *word);
/* The next word, whatever it is; @what names it when there is none. */
const char *take_word(struct args *a, const char *what);
/* "show", which may be left out. */
void take_show(struct args *a);
/* Exits with the usage if words are left. */
void take_end(const struct args *a);
bool asks_help(const struct args *a);
/* -h or --help */
bool is_help_option(const char *word);
bool has_help_option(const struct args *a);

uint32_t take_u32(struct args *a, const char *what, uint32_t min, uint32_t max);
/* Seconds with a fraction, as milliseconds. */
uint32_t take_millis(struct args *a, const char *what);
const char *take_dev(struct args *a);
/* "vhca1/2": the name, and returns the port. */
uint32_t take_dev_port(struct args *a, char dev[DEV_NAME_LEN]);

/* A GID as it is written, or an IPv4 address, which is what one of RoCE often is. */
bool gid_of(const char *word, unsigned char gid[16]);

/* A device name of the kernel's: no path, no option, no shell's special characters. */
bool dev_name_ok(const char *name);

#endif /* REPATH_TOOL_ARGS_H */
