/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands by line: ibsim's words and those for traffic, time and faults. */
#ifndef VF_CONSOLE_H
#define VF_CONSOLE_H

#include "fabric.h"

struct flow_spec;

/* Runs one line. Return: 0; -1 if it could not, with the reason (after '#') in out; 1 for Quit. */
int console_line(struct fabric *f, const char *line, FILE *out);
void console_help(FILE *out);

/* console_file.c */
/* Runs the lines of a file, "-" is standard input, up to one that fails. Return: as console_line(). */
int console_file(struct fabric *f, const char *path, FILE *out);
/* Those that the topology's file has ("do LINE"). Return: 0, or -1. */
int console_todo(struct fabric *f, FILE *out);

/* How the console lets the server work while it waits for an answer. */
extern int (*console_wait)(struct fabric *f);

/* console_local.c */
int console_baselid(struct fabric *f, const char *rest, FILE *out);
int console_describe(struct fabric *f, const char *rest, FILE *out);
int console_enable(struct fabric *f, const char *rest, FILE *out);
int console_trap(struct fabric *f, const char *rest, FILE *out);
/* console_traffic.c */
int console_traffic(struct fabric *f, const char *word, const char *rest, FILE *out);
void console_traffic_help(FILE *out);
/* console_lanes.c */
int console_lanes(struct fabric *f, const struct flow_spec *spec, const uint32_t *hosts,
		  uint32_t n, uint32_t first, uint32_t last);
/* Reads "node"[port] or "node" (port 0 then); moves *at behind it. Return: 0, or -1. */
int console_port(struct fabric *f, const char **at, uint32_t *node, unsigned int *num, FILE *out);

#endif
