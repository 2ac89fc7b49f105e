// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * holdqp: a process that has queue pairs and memory regions, and does nothing with them; or that
 * makes and destroys some, so that whoever comes later gets other numbers.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

static const char usage[] =
"usage: holdqp [-d DEVICE] [-q QPS] [-m MRS] [-s BYTES] [-t rc|uc|ud] [-c] [-e] [-w GID] [-b | -r]\n"
"  -d NAME   RDMA device (the first one)\n"
"  -q N      queue pairs (1)\n"
"  -m N      memory regions (1)\n"
"  -s BYTES  of each region (4096)\n"
"  -t TYPE   of the queue pairs (rc)\n"
"  -c        connect each RC queue pair to itself, up to RTS\n"
"  -e        with -c: a write with a wrong key on each, which takes it to ERR\n"
"  -w GID    instead: try to connect all RC queue pairs to that GID at once, a thread for each\n"
"  -b        burn: destroy everything at once and exit; else hold until SIGTERM\n"
"  -r        repeat: for each number N on standard input, make and destroy N more queue pairs one\n"
"            after the other, and print the median of what both together took, in ns\n"
"Prints one line of JSON with the numbers that it got.\n";

struct options {
	const char *device;
	unsigned int qps, mrs;
	size_t bytes;
	enum ibv_qp_type type;
	const char *elsewhere;
	int connect, break_them, burn, repeat;
};

struct objects {
	struct endpoint ep;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp **qps;
	struct ibv_mr **mrs;
	char *memory;
};

static enum ibv_qp_type parse_type(const char *name)
{
	if (!strcmp(name, "rc"))
		return IBV_QPT_RC;
	if (!strcmp(name, "uc"))
		return IBV_QPT_UC;
	if (!strcmp(name, "ud"))
		return IBV_QPT_UD;
	errx(2, "%s: rc, uc or ud is wanted", name);
}

static void parse(struct options *opt, int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "d:q:m:s:t:w:cebrh")) >= 0) {
		switch (o) {
		case 'd': opt->device = optarg; break;
		case 'q': opt->qps = strtoul(optarg, NULL, 0); break;
		case 'm': opt->mrs = strtoul(optarg, NULL, 0); break;
		case 's': opt->bytes = strtoul(optarg, NULL, 0); break;
		case 't': opt->type = parse_type(optarg); break;
		case 'w': opt->elsewhere = optarg; break;
		case 'c': opt->connect = 1; break;
		case 'e': opt->break_them = 1; break;
		case 'b': opt->burn = 1; break;
		case 'r': opt->repeat = 1; break;
		default:
			fputs(usage, o == 'h' ? stdout : stderr);
			exit(o == 'h' ? 0 : 2);
		}
	}
	if (optind != argc || !opt->bytes || (opt->elsewhere && opt->connect) || (opt->break_them && !(opt->connect && opt->mrs))) {
		fputs(usage, stderr);
		exit(2);
	}
}

static void create_qp(struct objects *o, const struct options *opt, unsigned int i)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = opt->type,
	};
	struct rc_address self;

	o->qps[i] = ibv_create_qp(o->pd, &attr);
	if (!o->qps[i])
		err(2, "create queue pair %u", i);
	if (!opt->connect || opt->type != IBV_QPT_RC)
		return;
	self = endpoint_address(&o->ep, o->qps[i], 1);
	errno = rc_init(o->qps[i], &o->ep);
	if (!errno)
		errno = rc_connect(o->qps[i], &o->ep, &self, &self, NULL);
	if (errno)
		err(2, "connect queue pair %u", i);
}

/* Nobody modifies a queue pair here: the device finds out by itself. */
static void break_qp(struct objects *o, unsigned int i)
{
	struct ibv_sge sge = { .addr = (uintptr_t)o->memory, .length = 1, .lkey = o->mrs[0]->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = sge.addr, .rkey = o->mrs[0]->rkey ^ 0xff00 },
	};
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	errno = ibv_post_send(o->qps[i], &wr, &bad);
	if (errno)
		err(2, "post on queue pair %u", i);
	while (!ibv_poll_cq(o->cq, 1, &wc))
		;
	if (wc.status == IBV_WC_SUCCESS)
		errx(2, "a write with a wrong key has succeeded");
}

struct attempt {
	pthread_t thread;
	const struct endpoint *ep;
	const struct rc_address *to;
	struct ibv_qp *qp;
};

/* Whether it is there or not: on RoCE the kernel looks for it first, as long as ARP lets it. */
static void *attempt(void *arg)
{
	const struct attempt *a = arg;
	struct rc_address self = endpoint_address(a->ep, a->qp, 1);

	errno = rc_init(a->qp, a->ep);
	if (errno)
		err(2, "queue pair %#x", a->qp->qp_num);
	rc_connect(a->qp, a->ep, &self, a->to, NULL);
	return NULL;
}

static void connect_elsewhere(struct objects *o, const struct options *opt)
{
	struct attempt *all = calloc(opt->qps + 1, sizeof(*all));
	struct rc_address to = { .qpn = 77, .psn = 1, .mtu = IBV_MTU_1024 };
	unsigned int i;

	if (inet_pton(AF_INET6, opt->elsewhere, to.gid) != 1 || !all)
		errx(2, "%s is not a GID", opt->elsewhere);
	for (i = 0; i < opt->qps; i++) {
		all[i] = (struct attempt){ .ep = &o->ep, .to = &to, .qp = o->qps[i] };
		errno = pthread_create(&all[i].thread, NULL, attempt, &all[i]);
		if (errno)
			err(2, "thread %u", i);
	}
	for (i = 0; i < opt->qps; i++)
		pthread_join(all[i].thread, NULL);
	free(all);
}

static void create(struct objects *o, const struct options *opt)
{
	unsigned int i;

	endpoint_open(&o->ep, opt->device, -1);
	o->pd = ibv_alloc_pd(o->ep.ctx);
	o->cq = o->pd ? ibv_create_cq(o->ep.ctx, 16, NULL, NULL, 0) : NULL;
	o->qps = calloc(opt->qps + 1, sizeof(struct ibv_qp *));
	o->mrs = calloc(opt->mrs + 1, sizeof(struct ibv_mr *));
	o->memory = calloc(1, opt->bytes);
	if (!o->cq || !o->qps || !o->mrs || !o->memory)
		err(2, "set up");
	for (i = 0; i < opt->qps; i++)
		create_qp(o, opt, i);
	if (opt->elsewhere)
		connect_elsewhere(o, opt);
	for (i = 0; i < opt->mrs; i++) {
		o->mrs[i] = ibv_reg_mr(o->pd, o->memory, opt->bytes,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		if (!o->mrs[i])
			err(2, "register region %u", i);
	}
	for (i = 0; opt->break_them && i < opt->qps; i++)
		break_qp(o, i);
}

static void print_numbers(const struct objects *o, const struct options *opt)
{
	unsigned int i;

	printf("{\"device\":\"%s\",\"gid\":\"%s\",\"pid\":%d,\"qpns\":[",
	       ibv_get_device_name(o->ep.ctx->device), gid_text(&o->ep.gid), getpid());
	for (i = 0; i < opt->qps; i++)
		printf("%s%u", i ? "," : "", o->qps[i]->qp_num);
	printf("],\"rkeys\":[");
	for (i = 0; i < opt->mrs; i++)
		printf("%s%u", i ? "," : "", o->mrs[i]->rkey);
	printf("]}\n");
	fflush(stdout);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void repeat(struct objects *o, const struct options *opt, unsigned int times)
{
	uint64_t *took = calloc(times + 1, sizeof(*took));
	unsigned int i;

	if (!took)
		err(2, "%u times", times);
	for (i = 0; i < times; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = o->cq, .recv_cq = o->cq, .qp_type = opt->type,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1 },
		};
		uint64_t begin = now_ns();
		struct ibv_qp *qp = ibv_create_qp(o->pd, &attr);

		if (!qp || ibv_destroy_qp(qp))
			err(2, "queue pair %u", i);
		took[i] = now_ns() - begin;
	}
	qsort(took, times, sizeof(*took), by_size);
	printf("%llu\n", (unsigned long long)took[times / 2]);
	fflush(stdout);
	free(took);
}

static int destroy(struct objects *o, const struct options *opt)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < opt->qps; i++)
		rc |= ibv_destroy_qp(o->qps[i]);
	for (i = 0; i < opt->mrs; i++)
		rc |= ibv_dereg_mr(o->mrs[i]);
	rc |= ibv_destroy_cq(o->cq);
	rc |= ibv_dealloc_pd(o->pd);
	rc |= ibv_close_device(o->ep.ctx);
	return rc;
}

int main(int argc, char **argv)
{
	struct options opt = { .qps = 1, .mrs = 1, .bytes = 4096, .type = IBV_QPT_RC };
	struct objects objects;
	unsigned int times;
	sigset_t set;
	int sig;

	parse(&opt, argc, argv);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	create(&objects, &opt);
	print_numbers(&objects, &opt);
	while (opt.repeat && scanf("%u", &times) == 1)
		repeat(&objects, &opt, times);
	if (!opt.burn && !opt.repeat)
		sigwait(&set, &sig);
	if (destroy(&objects, &opt))
		errx(1, "something could not be destroyed");
	return 0;
}
