/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The event loop that serves clients, consoles and cables. */
#ifndef VF_SERVER_H
#define VF_SERVER_H

#include "fabric.h"

struct server_config {
	const char *name;	/* of libumad2sim's sockets */
	const char *control;	/* path of the control socket, or NULL */
	const char *external;	/* where real HCAs attach, or NULL */
	int console;		/* on standard input */
	int real_time;
};

/* Serves until Quit, or until standard input ends with a console. Return: the exit status. */
int server_run(struct fabric *f, const struct server_config *config);

#endif
