// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The command line. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"

void usage_error(const struct args *a, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr, "repath: ");
	vfprintf(stderr, format, ap);
	fprintf(stderr, "; usage: %s\n", a->usage);
	va_end(ap);
	exit(EXIT_USAGE);
}

bool take(struct args *a, const char *word)
{
	const char *given = a->argc ? a->argv[0] : "";

	if (!strncmp(given, "--", 2))
		given += 2;
	if (!*given || strncmp(word, given, strlen(given)))
		return false;
	a->argc--;
	a->argv++;
	return true;
}

const char *take_word(struct args *a, const char *what)
{
	if (!a->argc)
		usage_error(a, "%s is missing", what);
	a->argc--;
	return *a->argv++;
}

void take_show(struct args *a)
{
	if (!take(a, "show"))
		take(a, "list");
}

void take_end(const struct args *a)
{
	if (a->argc)
		usage_error(a, "\"%s\" is not understood", a->argv[0]);
}

bool is_help_option(const char *word)
{
	return !strcmp(word, "-h") || !strcmp(word, "--help");
}

bool has_help_option(const struct args *a)
{
	for (int i = 0; i < a->argc; i++)
		if (is_help_option(a->argv[i]))
			return true;
	return false;
}

bool asks_help(const struct args *a)
{
	return a->argc && (!strcmp(a->argv[0], "help") || is_help_option(a->argv[0]));
}

uint32_t take_u32(struct args *a, const char *what, uint32_t min, uint32_t max)
{
	const char *word = take_word(a, what);
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(word, &end, 0);
	if (!isdigit((unsigned char)word[0]) || *end || errno || value < min || value > max)
		usage_error(a, "%s \"%s\" is not a number from %u to %u", what, word, min, max);
	return value;
}

uint32_t take_millis(struct args *a, const char *what)
{
	const char *word = take_word(a, what);
	double value;
	char *end;

	value = strtod(word, &end);
	if (!isdigit((unsigned char)word[0]) || *end || !(value >= 0.001 && value <= 86400))
		usage_error(a, "%s \"%s\" is not a number of seconds up to a day", what, word);
	return value * 1000 + 0.5;
}

bool dev_name_ok(const char *name)
{
	size_t n = strlen(name);

	if (!n || n >= DEV_NAME_LEN || name[0] == '-' || name[0] == '.')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_.:-", *name))
			return false;
	return true;
}

bool gid_of(const char *word, unsigned char gid[16])
{
	static const unsigned char ipv4[16] = { [10] = 0xff, [11] = 0xff };

	memcpy(gid, ipv4, sizeof(ipv4));
	return inet_pton(AF_INET6, word, gid) == 1 || inet_pton(AF_INET, word, gid + 12) == 1;
}

const char *take_dev(struct args *a)
{
	const char *name = take_word(a, "a device name");

	if (!dev_name_ok(name))
		usage_error(a, "\"%s\" is not the name of an RDMA device", name);
	return name;
}

uint32_t take_dev_port(struct args *a, char dev[DEV_NAME_LEN])
{
	const char *word = take_word(a, "DEV/PORT");
	size_t n = strcspn(word, "/");
	unsigned int port;
	char tail;

	if (n >= DEV_NAME_LEN || sscanf(word + n, "/%u%c", &port, &tail) != 1 ||
	    !port || port > 254)
		usage_error(a, "\"%s\" is not DEV/PORT", word);
	memcpy(dev, word, n);
	dev[n] = 0;
	if (!dev_name_ok(dev))
		usage_error(a, "\"%s\" is not the name of an RDMA device", dev);
	return port;
}
