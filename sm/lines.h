/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Files that an administrator writes, line by line. */
#ifndef RSM_LINES_H
#define RSM_LINES_H

/**
 * typedef rsm_line_fn - takes a line
 * @line: with its end; may be written into
 * @arg: as given
 *
 * Return: 0 or a negative error number.
 */
typedef int rsm_line_fn(char *line, void *arg);

int rsm_lines(const char *path, rsm_line_fn *fn, void *arg, unsigned int *number);

#endif /* RSM_LINES_H */
