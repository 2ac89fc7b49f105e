// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fuzzer of ib_repath's netlink interface. What each command takes it asks the kernel itself; values
 * it takes from what the module tells. Each answer is read to its last byte, each request must
 * be answered, and without CAP_NET_ADMIN nothing may be administered.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "nlfuzz.h"

#define SOCKETS 6
#define NOBODY 65534

static const char usage[] =
"usage: nlfuzz [-n MESSAGES] [-s SEED] [-f] [-u] [-q QPS] [-d DEVICE]\n"
"  -n N     datagrams to send (100000)\n"
"  -s SEED  of all that is random (the time)\n"
"  -f       also suspends that kill whoever can not be moved, be it nlfuzz\n"
"  -u       as nobody, without capabilities\n"
"  -q N     have N pairs of queue pairs (0)\n"
"  -d NAME  RDMA device for them (rxe0)\n";

struct family family;
struct tally tally;
bool unprivileged, force;

static uint64_t seed, state;
static unsigned long sent;

uint32_t below(uint32_t n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return n ? (uint32_t)((state * 0x2545f4914f6cdd1dULL) >> 32) % n : 0;
}

void wrong(const char *fmt, ...)
{
	va_list ap;

	printf("nlfuzz: seed %llu, datagram %lu: ", (unsigned long long)seed, sent);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

static int new_socket(void)
{
	int fd = open_socket();
	int on = 1;

	if (!below(4))
		setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &family.group,
			   sizeof(family.group));
	if (!below(4))
		setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	if (!below(8))
		setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	return fd;
}

static void fuzz(unsigned long count)
{
	static struct datagram dg;
	int fds[SOCKETS];
	uint32_t seq = 0;

	for (int i = 0; i < SOCKETS; i++)
		fds[i] = new_socket();
	for (sent = 1; sent <= count; sent++) {
		unsigned int which = below(SOCKETS);

		if (!below(500)) {
			/* Also in the middle of a dump, and what is registered leaves. */
			close(fds[which]);
			fds[which] = new_socket();
		}
		make_datagram(&dg, &seq);
		if (send(fds[which], dg.data, dg.len, 0) < 0 && errno != ENOBUFS && errno != EAGAIN)
			wrong("send: %s", strerror(errno));
		if (!below(100))
			continue;       /* answers lie there until the next time */
		read_answers(fds[which], &dg);
	}
	for (int i = 0; i < SOCKETS; i++)
		close(fds[i]);
}

static void report(double seconds)
{
	printf("nlfuzz: seed %llu, %lu datagrams in %.0f s%s, %lu events, %lu overruns\n",
	       (unsigned long long)seed, sent - 1, seconds, unprivileged ? " as nobody" : "",
	       tally.events, tally.lost);
	for (unsigned int op = 0; op < family.nops; op++)
		printf("  command %u: %lu done, %lu refused\n", family.ops[op],
		       tally.done[family.ops[op]], tally.refused[family.ops[op]]);
	printf("  errors:");
	for (int i = 0; i < 4096; i++)
		if (tally.errors[i])
			printf(" %s %lu", strerrorname_np(i), tally.errors[i]);
	putchar('\n');
}

int main(int argc, char *argv[])
{
	const char *device = "rxe0";
	unsigned long count = 100000;
	struct timespec start, end;
	unsigned int qps = 0;
	int option;

	seed = time(NULL);
	while ((option = getopt(argc, argv, "n:s:fuq:d:h")) != -1)
		switch (option) {
		case 'n':
			count = strtoul(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			force = true;
			break;
		case 'u':
			unprivileged = true;
			break;
		case 'q':
			qps = strtoul(optarg, NULL, 0);
			break;
		case 'd':
			device = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	if (optind < argc) {
		fputs(usage, stderr);
		return 2;
	}
	state = seed * 0x9e3779b97f4a7c15ULL | 1;
	for (int i = 0; i < 10; i++)
		below(1);

	if (qps)
		have_queue_pairs(device, qps);
	if (unprivileged && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
		err(1, "becoming nobody");
	read_family();
	clock_gettime(CLOCK_MONOTONIC, &start);
	fuzz(count);
	clock_gettime(CLOCK_MONOTONIC, &end);
	report(end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9);
	return 0;
}
