// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Console lines from files, and those that a topology brings along. */
#include <errno.h>
#include <string.h>

#include "console.h"

#define DEPTH 8

int console_file(struct fabric *f, const char *path, FILE *out)
{
	static int depth;
	FILE *file = strcmp(path, "-") ? fopen(path, "r") : stdin;
	char line[1024];
	int number = 0, rc = 0;

	if (!file || depth == DEPTH) {
		fprintf(out, "# %s: %s\n", path, file ? "files that run each other" : strerror(errno));
		rc = -1;
	}
	depth++;
	while (!rc && fgets(line, sizeof(line), file)) {
		number++;
		rc = console_line(f, line, out);
		if (rc < 0)
			fprintf(out, "# %s:%d: failed\n", path, number);
	}
	depth--;
	if (file && file != stdin)
		fclose(file);
	return rc;
}

int console_todo(struct fabric *f, FILE *out)
{
	for (unsigned int i = 0; i < f->net->ntodo; i++)
		if (console_line(f, f->net->todo[i], out) < 0) {
			fprintf(out, "# failed: do%s\n", f->net->todo[i]);
			return -1;
		}
	return 0;
}
