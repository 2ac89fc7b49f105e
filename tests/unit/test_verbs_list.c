// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Nothing is forgotten: verbs.def names every symbol that the installed libibverbs exports, at its
 * version, and libibrepath.so exports exactly what it says that it wraps, the C library's two functions by
 * which programs find libibverbs themselves (libshim/dl.c), and all direct verbs of those providers that do not
 * look whose object they are given (libshim/direct.c).
 */
#include <stdbool.h>

#include "check.h"

struct symbol {
	char name[80], node[40];
	bool listed;
};

static const struct symbol listed[] = {
#define RP_WRAP(name, node)	{ #name, #node, true },
#define RP_PASS(name, node)	{ #name, #node, false },
#define RP_PROVIDER(name, node)	{ #name, #node, false },
#include "../../libshim/verbs.def"
};
#define LISTED (sizeof(listed) / sizeof(listed[0]))

/* Defined symbols at their default version; libibverbs' compatibility ones have another. */
static int read_symbols(const char *path, struct symbol *s, int max)
{
	char cmd[512], line[512];
	int n = 0;
	FILE *f;

	snprintf(cmd, sizeof(cmd), "LD_PRELOAD= readelf --dyn-syms -W '%s'", path);
	f = popen(cmd, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		char type[16], ndx[16], name[128], *at;

		if (sscanf(line, " %*d: %*s %*s %15s %*s %*s %15s %127s", type, ndx, name) != 3)
			continue;
		at = strstr(name, "@@");
		if (!at || !strcmp(ndx, "UND") || !strcmp(ndx, "ABS"))
			continue;
		*at = 0;
		CHECK(n < max);
		snprintf(s[n].name, sizeof(s[n].name), "%.79s", name);
		snprintf(s[n++].node, sizeof(s[0].node), "%.39s", at + 2);
	}
	pclose(f);
	return n;
}

static const struct symbol *find(const struct symbol *s, int n, const char *name)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(s[i].name, name))
			return &s[i];
	return NULL;
}

/* Where an installed library of the toolchain's machine is. */
static void locate(const char *library, char *path)
{
	char cmd[128];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "LD_PRELOAD= cc -print-file-name=%s", library);
	f = popen(cmd, "r");
	CHECK(f && fscanf(f, "%511s", path) == 1);
	pclose(f);
}

/* How many direct verbs @library has; each must be among the @n that we @have. */
static int refused(const char *library, const char *prefix, const struct symbol *have, int n, int *bad)
{
	static struct symbol theirs[100];
	int count = 0, m, i;
	char path[512];

	locate(library, path);
	m = read_symbols(path, theirs, 100);
	for (i = 0; i < m; i++) {
		const struct symbol *h;

		if (strncmp(theirs[i].name, prefix, strlen(prefix)))
			continue;
		count++;
		h = find(have, n, theirs[i].name);
		if (h && !strcmp(h->node, theirs[i].node))
			continue;
		fprintf(stderr, "%s@@%s of %s is not in libshim/direct.c\n", theirs[i].name, theirs[i].node, path);
		(*bad)++;
	}
	CHECK(count, "%s has no %s*", path, prefix);
	return count;
}

int main(void)
{
	static const char *const loaders[2] = { "dlsym", "dlvsym" };
	static struct symbol have[1000];
	char real[512] = "", self[512], *slash;
	int n, i, wrapped = 0, direct, bad = 0;

	alarm(HANGS);
	locate("libibverbs.so.1", real);
	n = read_symbols(real, have, 1000);
	CHECK(n > 50, "%s: %d symbols", real, n);
	for (i = 0; i < n; i++) {
		const struct symbol *l = find(listed, LISTED, have[i].name);

		if (l && !strcmp(l->node, have[i].node))
			continue;
		fprintf(stderr, "%s@@%s of %s is not in libshim/verbs.def: decide whether it is wrapped\n",
			have[i].name, have[i].node, real);
		bad++;
	}

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	CHECK(n > 0);
	self[n] = 0;
	slash = strstr(self, "/tests/unit/");
	CHECK(slash);
	snprintf(real, sizeof(real), "%.*s/libibrepath.so", (int)(slash - self), self);
	n = read_symbols(real, have, 1000);
	for (i = 0; i < (int)LISTED; i++) {
		const struct symbol *h = find(have, n, listed[i].name);

		wrapped += listed[i].listed;
		if (listed[i].listed ? h && !strcmp(h->node, listed[i].node) : !h)
			continue;
		fprintf(stderr, "%s@@%s: %s by %s\n", listed[i].name, listed[i].node,
			listed[i].listed ? "not exported" : "must not be exported", real);
		bad++;
	}
	for (i = 0; i < 2; i++)
		CHECK(find(have, n, loaders[i]), "%s does not export %s", real, loaders[i]);
	direct = refused("libmlx4.so.1", "mlx4dv_", have, n, &bad) + refused("libmana.so.1", "manadv_", have, n, &bad);
	if (n != wrapped + 2 + direct) {
		fprintf(stderr, "%s exports %d symbols, verbs.def wraps %d, and %d direct ones are refused\n", real, n,
			wrapped, direct);
		bad++;
	}
	return !!bad;
}
