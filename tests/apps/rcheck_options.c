// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcheck.h"

static const char usage[] =
"usage: rcheck [options]            wait for a client\n"
"       rcheck [options] HOST       be the client; what is marked * is told to the server\n"
"  -d, --device NAME      RDMA device (the first one)\n"
"  -g, --gid-index N      (the one with an IPv4 address, else 0)\n"
"  -p, --port N           TCP port of the out-of-band connection (18600)\n"
"  -T, --time SEC         run so long (until SIGTERM or SIGINT, at either end)\n"
" Traffic\n"
"  -q, --qps N         *  queue pairs (1)\n"
"  -n, --depth N       *  requests under way on each (16)\n"
"  -s, --size BYTES    *  of a message, 64 at least (1024)\n"
"      --vary          *  lengths from 64 to SIZE\n"
"  -m, --mix LIST      *  of send,send_imm,write,write_imm,read,fetch_add,cmp_swp, or all (all)\n"
"  -b, --bidir         *  the server sends as well\n"
"  -k, --signal N      *  signal every Nth request (1)\n"
"  -l, --list N        *  requests in one post (1, at most 16)\n"
"  -I, --inline BYTES  *  inline up to so many (0)\n"
"      --sges N        *  scatter/gather elements, 1 or 2 (1)\n"
"  -r, --rate N        *  messages a second at most, each end (0: no limit)\n"
" How this end does it\n"
"  -e, --events           block in ibv_get_cq_event (default)\n"
"      --epoll --poll --select   wait in that call\n"
"      --nonblock         O_NONBLOCK channel, read until EAGAIN\n"
"      --busy             poll the completion queue without events\n"
"      --new-post         ibv_wr_* instead of ibv_post_send\n"
"      --ex-cq            ibv_start_poll instead of ibv_poll_cq\n"
"      --split-cq         sends and receives complete on different queues\n"
"      --cqs N            completion queues (1)\n"
"      --sig-all          sq_sig_all queue pairs\n"
"      --rnr-timer N      how long who finds no receive waits, as verbs number it (12)\n"
"      --sl N             service level of the queue pairs (0)\n"
"      --timeout N --retry N   of the queue pairs (16, 7; soft RoCE never ends 7 retries)\n"
"      --ballast MB       register so much memory more; the other end READs samples of it\n"
"                         at the end (0)\n"
"      --regions N        register the first page of that so often, before everything else (0)\n"
" Disturbing\n"
"      --no-recv-ms N     SIGUSR1: post no receives for N ms (2000), or until the next\n"
"      --pause-ms N       SIGUSR2: do nothing at all for N ms (2000)\n"
"      --tail             never signal the last request: some are always under way, unasked for\n"
"      --overrun          send what the other end has no receives for, too; it waits for them\n"
"      --alone            the other process may vanish: completions tell the end, not its socket\n"
"      --fork             have two children meanwhile: one does nothing, the other execs\n"
	"      --fork-init        ibv_fork_init() before anything\n"
	"      --plant WHAT       make a fault: loss, write-loss, dup, order, damage, read, atomic, ballast,\n"
"                         missing-cqe, double-cqe, wrong-imm, wrong-wrid, wrong-qpn, still\n"
" Reporting\n"
"  -i, --interval SEC     a line of JSON so often\n"
"  -N, --numbers          QPNs, keys, GID at the start and at the end\n"
"      --stall SEC        without progress, of all or of one queue pair, is a failure (90)\n"
"      --probe SEC        ask after so long without progress if the other end is there; when a\n"
"                         request fails, tell what became of all others, on each queue pair\n"
"Exit status: 0 all was right, 1 something was not, 2 could not run.\n";

static const char *const plant_names[PLANTS] = {
	"none", "loss", "write-loss", "dup", "order", "damage", "read", "atomic", "missing-cqe",
	"double-cqe", "wrong-imm", "wrong-wrid", "wrong-qpn", "still", "ballast",
};

enum {
	OPT_VARY = 256, OPT_SGES, OPT_EPOLL, OPT_POLL, OPT_SELECT, OPT_NONBLOCK, OPT_BUSY,
	OPT_NEW_POST, OPT_EX_CQ, OPT_SPLIT_CQ, OPT_CQS, OPT_SIG_ALL, OPT_TIMEOUT, OPT_RETRY,
	OPT_FORK, OPT_FORK_INIT, OPT_NO_RECV, OPT_PAUSE, OPT_PLANT, OPT_STALL, OPT_BALLAST, OPT_REGIONS, OPT_ALONE, OPT_OVERRUN,
	OPT_TAIL, OPT_PROBE, OPT_SL, OPT_RNR_TIMER,
};

static const struct option longs[] = {
	{ "device", required_argument, NULL, 'd' },
	{ "gid-index", required_argument, NULL, 'g' },
	{ "port", required_argument, NULL, 'p' },
	{ "time", required_argument, NULL, 'T' },
	{ "qps", required_argument, NULL, 'q' },
	{ "depth", required_argument, NULL, 'n' },
	{ "size", required_argument, NULL, 's' },
	{ "vary", no_argument, NULL, OPT_VARY },
	{ "mix", required_argument, NULL, 'm' },
	{ "bidir", no_argument, NULL, 'b' },
	{ "signal", required_argument, NULL, 'k' },
	{ "list", required_argument, NULL, 'l' },
	{ "inline", required_argument, NULL, 'I' },
	{ "sges", required_argument, NULL, OPT_SGES },
	{ "rate", required_argument, NULL, 'r' },
	{ "events", no_argument, NULL, 'e' },
	{ "epoll", no_argument, NULL, OPT_EPOLL },
	{ "poll", no_argument, NULL, OPT_POLL },
	{ "select", no_argument, NULL, OPT_SELECT },
	{ "nonblock", no_argument, NULL, OPT_NONBLOCK },
	{ "busy", no_argument, NULL, OPT_BUSY },
	{ "new-post", no_argument, NULL, OPT_NEW_POST },
	{ "ex-cq", no_argument, NULL, OPT_EX_CQ },
	{ "split-cq", no_argument, NULL, OPT_SPLIT_CQ },
	{ "cqs", required_argument, NULL, OPT_CQS },
	{ "sig-all", no_argument, NULL, OPT_SIG_ALL },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "retry", required_argument, NULL, OPT_RETRY },
	{ "sl", required_argument, NULL, OPT_SL },
	{ "rnr-timer", required_argument, NULL, OPT_RNR_TIMER },
	{ "ballast", required_argument, NULL, OPT_BALLAST },
	{ "regions", required_argument, NULL, OPT_REGIONS },
	{ "no-recv-ms", required_argument, NULL, OPT_NO_RECV },
	{ "pause-ms", required_argument, NULL, OPT_PAUSE },
	{ "fork", no_argument, NULL, OPT_FORK },
	{ "fork-init", no_argument, NULL, OPT_FORK_INIT },
	{ "plant", required_argument, NULL, OPT_PLANT },
	{ "interval", required_argument, NULL, 'i' },
	{ "numbers", no_argument, NULL, 'N' },
	{ "stall", required_argument, NULL, OPT_STALL },
	{ "probe", required_argument, NULL, OPT_PROBE },
	{ "alone", no_argument, NULL, OPT_ALONE },
	{ "tail", no_argument, NULL, OPT_TAIL },
	{ "overrun", no_argument, NULL, OPT_OVERRUN },
	{ "help", no_argument, NULL, 'h' },
	{ 0 }
};

static uint32_t number(const char *text, uint32_t min, uint32_t max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (!*text || *end || n < min || n > max)
		errx(2, "%s: a number from %u to %u is wanted", text, min, max);
	return n;
}

static double duration(const char *text)
{
	char *end;
	double n = strtod(text, &end);

	if (!*text || *end || !(n > 0))
		errx(2, "%s: a number of seconds is wanted", text);
	return n;
}

static void parse_mix(struct traffic *t, char *list)
{
	char *save, *word;
	int op;

	t->mixed = 0;
	for (word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		bool known = false;

		for (op = MSG_SEND; op <= MSG_CMP_SWP; op++) {
			if (strcmp(word, "all") && strcmp(word, msg_op_names[op]))
				continue;
			if (t->mixed == MAX_MIX)
				errx(2, "more than %d operations in the mix", MAX_MIX);
			t->mix[t->mixed++] = op;
			known = true;
		}
		if (!known)
			errx(2, "%s: no such operation", word);
	}
	if (!t->mixed)
		errx(2, "an empty mix");
}

static enum plant parse_plant(const char *name)
{
	int i;

	for (i = 1; i < PLANTS; i++)
		if (!strcmp(name, plant_names[i]))
			return i;
	errx(2, "%s: no such fault", name);
}

static bool parse_traffic(struct traffic *t, int o, char *arg)
{
	switch (o) {
	case 'q': t->qps = number(arg, 1, 4096); break;
	case 'n': t->depth = number(arg, 1, 8192); break;
	case 's': t->size = number(arg, MSG_MIN, 1u << 26); break;
	case OPT_VARY: t->vary = 1; break;
	case 'm': parse_mix(t, arg); break;
	case 'b': t->bidir = 1; break;
	case 'k': t->signal_every = number(arg, 1, 8192); break;
	case 'l': t->list = number(arg, 1, MAX_LIST); break;
	case 'I': t->inline_max = number(arg, 0, 65536); break;
	case OPT_SGES: t->sges = number(arg, 1, 2); break;
	case 'r': t->rate = number(arg, 0, 100000000); break;
	default: return false;
	}
	return true;
}

static bool parse_local(struct options *opt, int o, const char *arg)
{
	switch (o) {
	case 'd': opt->device = arg; break;
	case 'g': opt->gid_index = number(arg, 0, 255); break;
	case 'p': opt->port = number(arg, 1, 65535); break;
	case 'T': opt->seconds = duration(arg); break;
	case 'e': opt->wait = WAIT_BLOCK; break;
	case OPT_EPOLL: opt->wait = WAIT_EPOLL; break;
	case OPT_POLL: opt->wait = WAIT_POLL; break;
	case OPT_SELECT: opt->wait = WAIT_SELECT; break;
	case OPT_NONBLOCK: opt->wait = WAIT_NONBLOCK; break;
	case OPT_BUSY: opt->wait = WAIT_BUSY; break;
	case OPT_NEW_POST: opt->new_post = true; break;
	case OPT_EX_CQ: opt->ex_cq = true; break;
	case OPT_SPLIT_CQ: opt->split_cq = true; break;
	case OPT_CQS: opt->cqs = number(arg, 1, MAX_CQS / 2); break;
	case OPT_SIG_ALL: opt->sig_all = true; break;
	case OPT_TIMEOUT: opt->limits.timeout = number(arg, 0, 31); break;
	case OPT_RNR_TIMER: opt->limits.min_rnr_timer = number(arg, 0, 31); break;
	case OPT_SL: opt->sl = number(arg, 0, 15); break;
	case OPT_RETRY: opt->limits.retry = number(arg, 0, 7); break;
	case OPT_BALLAST: opt->ballast = number(arg, 0, 65536); break;
	case OPT_REGIONS: opt->regions = number(arg, 0, 65536); break;
	case OPT_NO_RECV: opt->no_recv_ms = number(arg, 1, 600000); break;
	case OPT_PAUSE: opt->pause_ms = number(arg, 1, 600000); break;
	case OPT_FORK: opt->fork = true; break;
	case OPT_FORK_INIT: opt->fork_init = true; break;
	case OPT_PLANT: opt->plant = parse_plant(arg); break;
	case 'i': opt->interval = duration(arg); break;
	case 'N': opt->numbers = true; break;
	case OPT_STALL: opt->stall = duration(arg); break;
	case OPT_PROBE: opt->probe = duration(arg); break;
	case OPT_ALONE: opt->alone = true; break;
	case OPT_TAIL: opt->tail = true; break;
	case OPT_OVERRUN: opt->overrun = true; break;
	default: return false;
	}
	return true;
}

void options_parse(struct check *c, int argc, char **argv)
{
	char all[] = "all";
	int o;

	c->traffic = (struct traffic){
		.version = RCHECK_VERSION, .qps = 1, .depth = 16, .size = 1024,
		.signal_every = 1, .list = 1, .sges = 1,
	};
	parse_mix(&c->traffic, all);
	c->opt = (struct options){
		.gid_index = -1, .port = 18600, .cqs = 1, .stall = 90, .no_recv_ms = 2000,
		.pause_ms = 2000,
		.limits = { .rd_atomic = 4, .timeout = 16, .retry = 7, .min_rnr_timer = 12 },
	};
	while ((o = getopt_long(argc, argv, "d:g:p:T:q:n:s:m:bk:l:I:r:ei:Nh", longs, NULL)) >= 0) {
		if (o == 'h') {
			fputs(usage, stdout);
			exit(0);
		}
		if (!parse_traffic(&c->traffic, o, optarg) && !parse_local(&c->opt, o, optarg)) {
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (c->opt.regions && !c->opt.ballast)
		errx(2, "--regions are of the --ballast");
	if (argc - optind > 1)
		errx(2, "one host at most");
	c->opt.host = argv[optind];
	if (c->opt.plant == PLANT_MISSING_CQE && c->opt.sig_all)
		errx(2, "with --sig-all no completion can be left out");
	if (c->traffic.list > c->traffic.depth)
		c->traffic.list = c->traffic.depth;
}
