/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands by line: ibsim's words and those for traffic, time and faults. */
#ifndef VF_CONSOLE_H
#define VF_CONSOLE_H

#include "fabric.h"

/* Runs one line. Return: 0; -1 if it could not, with the reason (after '#') in out; 1 for Quit. */
int console_line(struct fabric *f, const char *line, FILE *out);
void console_help(FILE *out);
/* How the console lets the server work while it waits for an answer. */
extern int (*console_wait)(struct fabric *f);

/* console_traffic.c */
int console_traffic(struct fabric *f, const char *word, const char *rest, FILE *out);
void console_traffic_help(FILE *out);
/* Reads "node"[port] or "node" (port 0 then); moves *at behind it. Return: 0, or -1. */
int console_port(struct fabric *f, const char **at, uint32_t *node, unsigned int *num, FILE *out);

#endif
