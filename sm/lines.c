// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lines.h"

/**
 * rsm_lines - give each line of a file to a function, until it refuses one
 * @path: of the file
 * @fn: the function
 * @arg: for @fn
 * @number: of the line that @fn has refused, from 1; 0: there is none, and the file can not be read
 *
 * Return: 0; what @fn has returned; or why not all of the file could be read, as a negative error number.
 */
int rsm_lines(const char *path, rsm_line_fn *fn, void *arg, unsigned int *number)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	*number = 0;
	if (!file)
		return -errno;
	errno = 0;
	while (!rc && getline(&line, &room, file) >= 0) {
		++*number;
		rc = fn(line, arg);
		errno = 0;
	}
	/* A directory, a disk that fails, no memory: what was read is not all. */
	if (!rc && !feof(file)) {
		*number = 0;
		rc = errno ? -errno : -EIO;
	}
	free(line);
	fclose(file);
	return rc;
}
