// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath: the administrator's view of ib_repath.ko. See repath(8). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "out.h"
#include "version.h"

static const struct command {
	const char *name;
	int (*run)(struct door *door, struct args *a);
	const char *usage;
	const char *about;
} commands[] = {
	{ "qp", cmd_qp,
	  "repath qp [show] [dev D] [port N] [pid P] [qpn Q] [dlid L] [dgid G] [type T] [state S]",
	  "queue pairs: whose they are, where they go" },
	{ "process", cmd_process, "repath process [show] [dev D] [pid P]",
	  "processes that use RDMA devices, with the shim or without" },
	{ "device", cmd_device, "repath device [show] [[dev] D]",
	  "devices and what holds them" },
	{ "connection", cmd_connection, "repath connection [show] [dev D] [pid P] [state S] | moved DEV dgid G [to G] [lid L] | dlid L lid L",
	  "connections, what is known of their other end, and where it is when both have moved" },
	{ "path", cmd_path,
	  "repath path [show] [dev D] [port N] [dlid L] | sm [dev D] | ask DEV [port N] [dlid L]"
	  " | listen DEV on | off | set | prepare DEV/PORT dlid L [slid L] [to L] [sl N] [mtu N]"
	  " [gbps R] [pkey K] | set DEV/PORT dgid G [sl N] [tclass N] [mtu N] [gbps R]"
	  " | hold DEV/PORT dlid L | reroute DEV on | off",
	  "paths as the subnet manager has told them, and as queue pairs shall have them" },
	{ "stats", cmd_stats, "repath stats [show] [dev D] [all]",
	  "counters of the module and of each device" },
	{ "adopt", cmd_adopt, "repath adopt [[dev] D]",
	  "have the module take up what was there before it" },
	{ "monitor", cmd_monitor, "repath monitor [all | qp | process | device | path | op]...",
	  "changes as they come" },
	{ "suspend", cmd_suspend,
	  "repath suspend DEV [timeout SEC] [force] [dry-run] [nowait]",
	  "take all processes off a device, connections kept" },
	{ "resume", cmd_resume,
	  "repath resume OP|DEV [on NEWDEV] [timeout SEC] [nowait]",
	  "put the processes of a suspended device on a device" },
	{ "abort", cmd_abort, "repath abort OP [nowait]",
	  "take an operation back" },
	{ "status", cmd_status, "repath status [show] [OP]",
	  "operations, under way and over" },
	{ "version", cmd_version, "repath version",
	  "versions of this command and of the module" },
	{ "run", cmd_run, "repath run [-q] [--] COMMAND... | repath run -p",
	  "start a command so that its connections can be moved" },
	{ "agent", cmd_agent, "repath agent [port PATH] [hook DIR]",
	  "serve the host of this virtual machine; see repath-agent(8)" },
	{ "sm", cmd_sm,
	  "repath sm [[show] | vm plan | begin | move VM PLACE [limited] [closed]"
	  " | vm end | cancel | stop VM | vm start GUID PLACE | vm list] [socket PATH]",
	  "what OpenSM's plugin says of itself, and VMs that move; see libosmrepath(8)" },
	{ "fabric", cmd_fabric,
	  "repath fabric check [from PATH]... [dev D] [port N] [sl N] [partitions FILE]"
	  " [require minimal | symmetric | lanes | links]... [dot FILE] [save FILE]"
	  " | show html FILE [since STATE]",
	  "the routing of a whole subnet, checked or drawn; fabric check help tells more" },
	{ "relay", cmd_relay, "repath relay DEV/PORT to SOCKET GUESTDEV/PORT [to ...]",
	  "tell guests that share a port what the subnet manager says to it" },
};

#define COMMANDS	(sizeof(commands) / sizeof(commands[0]))
#define OPTIONS		"[-j[son]] [-p[retty]] [-V[ersion]] [-h[elp]]"

static void help(FILE *to)
{
	fprintf(to, "usage: repath " OPTIONS " COMMAND ...\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].about);
	fprintf(to, "'repath COMMAND help' tells a command's words; see repath(8).\n");
}

/* As ip(8) has them: one or two dashes, any beginning of the word. */
static bool option(const char *word, const char *name)
{
	word += strspn(word, "-");
	return *word && !strncmp(name, word, strlen(word));
}

/* Its status is of what was done, not of what was told. */
static bool does(const struct command *c)
{
	return c->run == cmd_suspend || c->run == cmd_resume || c->run == cmd_abort || c->run == cmd_sm;
}

/* Also in the middle of its words: those of run are another command's, and fabric has texts of its own. */
static bool wants_usage(const struct command *c, const struct args *a)
{
	return asks_help(a) || (c->run != cmd_run && c->run != cmd_fabric && has_help_option(a));
}

static int run(const struct command *c, struct args *a)
{
	struct door *door;
	int status;

	if (wants_usage(c, a)) {
		printf("usage: %s\n  %s\n", c->usage, c->about);
		return 0;
	}
	door = door_new();
	status = c->run(door, a);
	door_close(door);
	/* What was done is done, whoever hears of it; but a report that is cut off is none. */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "repath: standard output: %s; the end of what was to be told is lost\n",
			strerror(errno));
		if (!status && !does(c))
			status = EXIT_FAILED;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct args a = { argc - 1, argv + 1, "repath " OPTIONS " COMMAND ..." };

	for (; a.argc && a.argv[0][0] == '-'; a.argc--, a.argv++) {
		if (option(a.argv[0], "json")) {
			out_json = true;
		} else if (option(a.argv[0], "pretty")) {
			out_pretty = true;
		} else if (option(a.argv[0], "Version")) {
			printf("repath %s\n", REPATH_TOOL_VERSION);
			return 0;
		} else if (option(a.argv[0], "help")) {
			help(stdout);
			return 0;
		} else {
			usage_error(&a, "option \"%s\" is not known", a.argv[0]);
		}
	}
	if (asks_help(&a)) {
		help(stdout);
		return 0;
	}
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!take(&a, commands[i].name))
			continue;
		a.usage = commands[i].usage;
		return run(&commands[i], &a);
	}
	if (a.argc)
		usage_error(&a, "command \"%s\" is not known", a.argv[0]);
	help(stderr);
	return EXIT_USAGE;
}
