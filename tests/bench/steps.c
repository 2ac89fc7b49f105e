// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * steps [-t] DEVICE: instructions that a process executes in user space for one post and one poll, on
 * two queue pairs of DEVICE that are connected to each other. The processor counts: a parent has it
 * stop after each instruction between two marks. With the shim loaded the shim's are among them, and
 * what its other threads do is not. A system call counts as one instruction.
 *
 * With -t ticks of the time stamp counter are counted instead, which in a guest with QEMU's -icount
 * are instructions: those of the kernel too.
 *
 * Says {"steps": {...}}, medians of TIMES calls, and the same again for each line of standard input.
 */
#include <err.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include "../apps/endpoint.h"

#define TIMES 15
#define BATCH 16	/* completions that wait for a poll of many */

enum way {
	NOTHING, POST_SEND, WR_SEND, POST_RECV, POLL_SEND, POLL_RECV, POLL_BATCH, POLL_EMPTY, WAYS
};

static const char *const way_names[WAYS] = {
	"nothing", "post_send", "wr_send", "post_recv", "poll_send", "poll_recv", "poll_batch",
	"poll_empty",
};

static bool by_clock;
static volatile unsigned long *stepped;		/* between the last two marks; the parent's */
static unsigned long found[WAYS][TIMES];
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *qp, *other;
static struct ibv_qp_ex *qpx;
static struct ibv_sge sge;
static struct ibv_wc wc[BATCH];

static void check(int bad, const char *what)
{
	if (bad)
		errx(1, "%s", what);
}

static int post_send(void)
{
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

static int wr_send(void)
{
	ibv_wr_start(qpx);
	qpx->wr_id = 1;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, sge.lkey, sge.addr, sge.length);
	return ibv_wr_complete(qpx);
}

static int post_recv(void)
{
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(other, &wr, &bad);
}

/* How many completions were there. */
static int call(enum way way)
{
	switch (way) {
	case POST_SEND:
		check(post_send(), "post_send");
		return 0;
	case WR_SEND:
		check(wr_send(), "wr_complete");
		return 0;
	case POST_RECV:
		check(post_recv(), "post_recv");
		return 0;
	case POLL_SEND:
	case POLL_EMPTY:
		return ibv_poll_cq(send_cq, 1, wc);
	case POLL_RECV:
		return ibv_poll_cq(recv_cq, 1, wc);
	case POLL_BATCH:
		return ibv_poll_cq(recv_cq, BATCH, wc);
	default:
		return 0;
	}
}

static int counted(enum way way, unsigned long *steps)
{
	unsigned long start;
	int n;

	if (by_clock) {
		start = __rdtsc();
		n = call(way);
		*steps = __rdtsc() - start;
		return n;
	}
	__asm__ volatile("int3" ::: "memory");
	n = call(way);
	__asm__ volatile("int3" ::: "memory");
	*steps = *stepped;
	return n;
}

/* Count a poll that finds @want of @way's; those that come too soon do not count. */
static void counted_poll(enum way way, int want, unsigned long *steps)
{
	int i, n;

	/* Long enough for all that is under way; a poll of many must find all at once. */
	usleep(5000);
	for (i = 0; i < 1000; i++) {
		n = counted(way, steps);
		if (n == want)
			break;
		check(n, "fewer completions than are to come");
		usleep(5000);
	}
	check(i == 1000, "no completion");
	for (i = 0; i < want; i++)
		check(wc[i].status, ibv_wc_status_str(wc[i].status));
}

static void one_time(unsigned int time)
{
	unsigned long unused;
	int i;

	counted(NOTHING, &found[NOTHING][time]);
	counted(POST_RECV, &found[POST_RECV][time]);
	counted(POST_SEND, &found[POST_SEND][time]);
	counted_poll(POLL_SEND, 1, &found[POLL_SEND][time]);
	counted_poll(POLL_RECV, 1, &found[POLL_RECV][time]);
	counted(POLL_EMPTY, &found[POLL_EMPTY][time]);
	check(post_recv(), "post_recv");
	counted(WR_SEND, &found[WR_SEND][time]);
	counted_poll(POLL_SEND, 1, &unused);
	counted_poll(POLL_RECV, 1, &unused);
	for (i = 0; i < BATCH; i++)
		check(post_recv() || post_send(), "posts");
	for (i = 0; i < BATCH; i++)
		counted_poll(POLL_SEND, 1, &unused);
	counted_poll(POLL_BATCH, BATCH, &found[POLL_BATCH][time]);
}

static int by_value(const void *a, const void *b)
{
	const unsigned long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void all_times(void)
{
	unsigned int time, way;

	for (time = 0; time < TIMES; time++)
		one_time(time);
	printf("{\"steps\":{");
	for (way = 0; way < WAYS; way++) {
		qsort(found[way], TIMES, sizeof(found[way][0]), by_value);
		printf("%s\"%s\":%lu", way ? "," : "", way_names[way],
		       found[way][TIMES / 2] - found[NOTHING][TIMES / 2]);
	}
	printf("}}\n");
	fflush(stdout);
}

static struct ibv_qp *create(struct endpoint *ep, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = send_cq, .recv_cq = recv_cq, .pd = pd,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *made = ibv_create_qp_ex(ep->ctx, &attr);

	check(!made, "create_qp_ex");
	check(rc_init(made, ep), "to INIT");
	return made;
}

static void set_up(const char *device)
{
	struct rc_address a, b;
	static char buffer[4096];
	struct endpoint ep;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	endpoint_open(&ep, device, -1);
	pd = ibv_alloc_pd(ep.ctx);
	send_cq = ibv_create_cq(ep.ctx, 64, NULL, NULL, 0);
	recv_cq = ibv_create_cq(ep.ctx, 64, NULL, NULL, 0);
	check(!pd || !send_cq || !recv_cq, "objects");
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	check(!mr, "reg_mr");
	sge = (struct ibv_sge){ (uintptr_t)buffer, 64, mr->lkey };
	qp = create(&ep, pd);
	qpx = ibv_qp_to_qp_ex(qp);
	other = create(&ep, pd);
	a = endpoint_address(&ep, qp, 1);
	b = endpoint_address(&ep, other, 1);
	check(rc_connect(qp, &ep, &a, &b, NULL) || rc_connect(other, &ep, &b, &a, NULL), "connect");
}

static int be_counted(const char *device)
{
	set_up(device);
	if (!by_clock)
		check(ptrace(PTRACE_TRACEME, 0, NULL, NULL), "PTRACE_TRACEME");
	do
		all_times();
	while (getchar() != EOF);
	return 0;
}

/*
 * The first mark of two sets a count to nothing and begins to step; the second ends that. One that repeats
 * itself (REP MOVS) stops where it is each time.
 */
static int count(pid_t child)
{
	unsigned long steps = 0, at, before = 0;
	bool stepping = false;
	siginfo_t info;
	int status;

	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		int give = WSTOPSIG(status);

		check(ptrace(PTRACE_GETSIGINFO, child, NULL, &info), "PTRACE_GETSIGINFO");
		if (give == SIGTRAP && info.si_code == SI_KERNEL) {
			stepping = !stepping;
			if (!stepping)
				*stepped = steps;
			steps = 0;
			give = 0;
		} else if (give == SIGTRAP) {
			at = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), NULL);
			steps += at != before;
			before = at;
			give = 0;
		}
		check(ptrace(stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, give),
		      "ptrace");
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	const char *device = argv[argc - 1];
	pid_t child;

	by_clock = argc == 3 && !strcmp(argv[1], "-t");
	if (argc != 2 + by_clock)
		errx(2, "usage: steps [-t] DEVICE");
	if (by_clock)
		return be_counted(device);
	stepped = mmap(NULL, sizeof(*stepped), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	check(stepped == MAP_FAILED, "memory");
	child = fork();
	check(child < 0, "fork");
	return child ? count(child) : be_counted(device);
}
