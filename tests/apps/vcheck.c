// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <err.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oob.h"
#include "vcheck.h"

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

void wrong(const struct vcheck *v, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "vcheck: round %lu: ", (long)v->round);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void report(const struct vcheck *v, const char *end)
{
	const char *lacks[] = {
		v->cqx ? NULL : "\"extended CQ\"", v->mw[0] ? NULL : "\"memory windows\"",
		v->group ? NULL : "\"multicast group\"",
		v->no_resize ? "\"resize_cq\"" : NULL,
	};
	const char *comma = "";
	size_t i;

	printf("{\"rounds\":%lu,\"messages\":%lu,\"limits\":%lu,\"resized\":%lu,"
	       "\"uc\":%lu,\"ud\":%lu,\"mc\":%lu,"
	       "\"sent\":{\"uc\":%lu,\"ud\":%lu,\"mc\":%lu},\"lacks\":[", (long)v->round,
	       (long)v->messages, (long)v->limits, (long)v->resized, (long)v->uc.got, (long)v->ud.got,
	       (long)v->mc.got, (long)v->uc.sent, (long)v->ud.sent, (long)v->mc.sent);
	for (i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
		if (!lacks[i])
			continue;
		printf("%s%s", comma, lacks[i]);
		comma = ",";
	}
	printf("]%s}\n", end);
	fflush(stdout);
}

static void usage(void)
{
	fputs("usage: vcheck [-d DEVICE] [-p PORT] [SERVER]\n"
	      "Uses one of each kind of verbs object until the client gets SIGTERM; exits with\n"
	      "0 if nothing was wrong. A line of JSON after each ten rounds, and at the end.\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	struct vcheck v = { 0 };
	int port = 18700, opt;
	char go;

	while ((opt = getopt(argc, argv, "d:p:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'p')
			port = atoi(optarg);
		else
			usage();
	}
	if (argc - optind > 1)
		usage();
	signal(SIGTERM, on_term);
	v.client = optind < argc;
	v.oob = v.client ? oob_connect(argv[optind], port, 60) : oob_listen(port);
	objects_make(&v, device);
	if (!oob_write(v.oob, &v.own, sizeof(v.own)) || !oob_read(v.oob, &v.peer, sizeof(v.peer)))
		errx(2, "the other end has gone");
	objects_connect(&v);
	traffic_fill(&v);
	/* Neither sends before the other is there. The client says how long it goes on. */
	do {
		go = !stop;
		if (!oob_write(v.oob, &go, 1) || !oob_read(v.oob, &go, 1))
			wrong(&v, "the other end has gone");
		go &= !stop || !v.client;
		if (v.client && !oob_write(v.oob, &go, 1))
			wrong(&v, "the other end has gone");
		if (!v.client && !oob_read(v.oob, &go, 1))
			wrong(&v, "the other end has gone");
		if (!go)
			break;
		traffic_round(&v);
		if (v.round % 10 == 0)
			report(&v, "");
	} while (1);
	report(&v, ",\"ok\":true");
	objects_release(&v);
	return 0;
}
