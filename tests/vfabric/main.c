// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* vfabric: an InfiniBand fabric of switches, cables and hosts, for programs on this machine. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabric.h"
#include "fault.h"
#include "console.h"
#include "server.h"
#include "sma.h"

static const char usage[] =
"usage: vfabric [options] TOPOLOGY\n"
"       vfabric -k PATH LINE      run a console line in the vfabric whose control socket that is\n"
"\n"
"TOPOLOGY  a file (ibsim's net format, or what ibnetdiscover printed), or by parameters:\n"
"          mesh:3x2,hosts=1  torus:4x4x4  xgft:18,36/1,18  tree:36,2\n"
"          random:16,degree=4,hosts=2,seed=1   each with speed=1|2|4 or ext=1|2|4|8,\n"
"          and length=METRES of its cables (2)\n"
"\n"
"  -n NAME    sockets of libumad2sim (its IBSIM_SOCKNAME; default sim)\n"
"  -c PATH    control socket: a line in, the answer out\n"
"  -x WHERE   take real HCAs there: unix:PATH or udp:127.0.0.1:PORT; net:ADDRESS:PORT takes\n"
"             them from a network, which must be nobody else's: whoever reaches it is trusted\n"
"  -f FILE    run the commands of a file, then quit: virtual time without clients\n"
"  -r         real time: the model's clock is the wall clock (else it moves by Advance)\n"
"  -v VLS     data VLs of every port, 1..15 (8)\n"
"  -b BYTES   input buffer of a port and VL (16384)\n"
"  -s SEED    of all that is random (1)\n"
"  -i         packets live for ever, whatever lifetimes the SM sets\n"
"  -q         no prompt and no console on standard input\n"
"  -w         write the topology in net format and quit\n"
"  -h         this text; Help on the console tells the commands\n";

/* A client of another one's control socket. Return: 0 if it said ok. */
static int tell(const char *path, const char *line)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[4096];
	FILE *file;

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path))
		return 2;
	strcpy(a.sun_path, path);
	file = connect(fd, (struct sockaddr *)&a, sizeof(a)) ? NULL : fdopen(fd, "r+");
	if (!file) {
		fprintf(stderr, "vfabric: %s: %s\n", path, strerror(errno));
		close(fd);
		return 2;
	}
	fprintf(file, "%s\n", line);
	fflush(file);
	while (fgets(answer, sizeof(answer), file)) {
		if (!strcmp(answer, "ok\n") || !strcmp(answer, "failed\n"))
			break;
		fputs(answer, stdout);
	}
	fclose(file);
	return strcmp(answer, "ok\n") != 0;
}

int main(int argc, char **argv)
{
	struct fabric_config config = { .seed = 1 };
	struct server_config server = { .name = "sim", .console = 1 };
	const char *commands = NULL, *peer = NULL;
	int opt, only_write = 0, rc;
	struct fabric fabric;
	struct net net;

	while ((opt = getopt(argc, argv, "n:c:x:f:k:rv:b:s:iqwh")) >= 0) {
		switch (opt) {
		case 'n': server.name = optarg; break;
		case 'c': server.control = optarg; break;
		case 'x': server.external = optarg; break;
		case 'f': commands = optarg; break;
		case 'k': peer = optarg; break;
		case 'r': server.real_time = 1; break;
		case 'v': config.vls = strtoul(optarg, NULL, 10); break;
		case 'b': config.buffer = strtoul(optarg, NULL, 10); break;
		case 's': config.seed = strtoull(optarg, NULL, 10); break;
		case 'i': config.endless = 1; break;
		case 'q': server.console = 0; break;
		case 'w': only_write = 1; break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (optind + 1 != argc) {
		fputs(usage, stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (peer)
		return tell(peer, argv[optind]);
	net_init(&net);
	rc = strchr(argv[optind], ':') && access(argv[optind], F_OK) ?
		net_make(&net, argv[optind]) : net_read(&net, argv[optind]);
	if (rc) {
		fprintf(stderr, "vfabric: %s\n", net.error);
		net_free(&net);
		return 1;
	}
	if (only_write) {
		net_write(&net, stdout);
		net_free(&net);
		return 0;
	}
	if (fabric_init(&fabric, &net, &config) || sma_init(&fabric)) {
		fprintf(stderr, "vfabric: out of memory\n");
		return 1;
	}
	if (console_todo(&fabric, stderr)) {
		rc = 1;
	} else if (commands) {
		rc = console_file(&fabric, commands, stdout) < 0;
		fflush(stdout);
	} else {
		rc = server_run(&fabric, &server);
	}
	fault_forget(&fabric);
	sma_free(&fabric);
	fabric_free(&fabric);
	net_free(&net);
	return rc;
}
