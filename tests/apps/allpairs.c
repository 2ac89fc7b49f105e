// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * allpairs: processes of a parallel program, each with a queue pair to every other one, as far as
 * they are on different hosts of an InfiniBand fabric. It sends nothing.
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

static const char usage[] =
"usage: allpairs [-b] PROCESSES DEVICE...\n"
"Process i is on DEVICE i modulo their number. Reads from standard input, a line for each ordered\n"
"pair of devices (by number, from 0),\n"
"    from to sl count other-sl\n"
"with the service level of that path, and how many queue pairs two processes on them get for it.\n"
"  -b  then each process in turn takes those queue pairs whose other-sl differs through SQD to that\n"
"      one, by verbs, prints how many they were and what it took of the processor, in ns, and ends\n"
"Prints \"ready\" when all are in RTS, and holds them until SIGTERM.\n";

#define MOST_DEVICES 64

struct path {
	unsigned int sl, count, other;
};

struct shared {
	pthread_barrier_t barrier;
	struct rc_address address[];	/* by process, process, number */
};

struct job {
	unsigned int n, n_devices, most, me;
	char **devices;
	struct path paths[MOST_DEVICES][MOST_DEVICES];
	struct shared *shared;
	struct endpoint ep;
	struct ibv_qp **qps;		/* by process, number */
	int measure;
};

static struct path *path_to(struct job *job, unsigned int peer)
{
	return &job->paths[job->me % job->n_devices][peer % job->n_devices];
}

static struct rc_address *address(struct job *job, unsigned int from, unsigned int to,
				  unsigned int number)
{
	return &job->shared->address[((size_t)from * job->n + to) * job->most + number];
}

static void read_paths(struct job *job)
{
	unsigned int from, to;
	struct path path;
	int got;

	while ((got = scanf("%u %u %u %u %u", &from, &to, &path.sl, &path.count,
			    &path.other)) == 5) {
		if (from >= job->n_devices || to >= job->n_devices || path.sl > 15 ||
		    path.other > 15)
			errx(2, "there is no path %u %u %u", from, to, path.sl);
		job->paths[from][to] = path;
		if (path.count > job->most)
			job->most = path.count;
	}
	if (got != EOF || !job->most)
		errx(2, "standard input has no paths");
	for (from = 0; from < job->n_devices; from++)
		for (to = 0; to < from; to++)
			if (job->paths[from][to].count != job->paths[to][from].count)
				errx(2, "paths of %u and %u differ in number", from, to);
}

static void share(struct job *job)
{
	size_t size = sizeof(*job->shared) +
		      (size_t)job->n * job->n * job->most * sizeof(struct rc_address);
	pthread_barrierattr_t attr;

	job->shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job->shared == MAP_FAILED)
		err(2, "%zu bytes", size);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&job->shared->barrier, &attr, job->n + 1);
}

static void create(struct job *job)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_pd *pd;

	endpoint_open(&job->ep, job->devices[job->me % job->n_devices], -1);
	pd = ibv_alloc_pd(job->ep.ctx);
	init.send_cq = pd ? ibv_create_cq(job->ep.ctx, 1, NULL, NULL, 0) : NULL;
	init.recv_cq = init.send_cq;
	job->qps = calloc((size_t)job->n * job->most, sizeof(struct ibv_qp *));
	if (!init.send_cq || !job->qps)
		err(2, "set up");
	for (unsigned int peer = 0; peer < job->n; peer++) {
		if (peer % job->n_devices == job->me % job->n_devices)
			continue;
		for (unsigned int i = 0; i < path_to(job, peer)->count; i++) {
			struct ibv_qp *qp = ibv_create_qp(pd, &init);

			if (!qp)
				err(2, "create a queue pair");
			errno = rc_init(qp, &job->ep);
			if (errno)
				err(2, "INIT");
			job->qps[peer * job->most + i] = qp;
			*address(job, job->me, peer, i) = endpoint_address(&job->ep, qp, 0);
		}
	}
}

static void connect_one(struct job *job, struct ibv_qp *qp, const struct rc_address *to,
			unsigned int sl)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = to->qpn,
		.rq_psn = to->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .dlid = to->lid, .sl = sl, .port_num = job->ep.port },
	};

	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			      IBV_QP_MIN_RNR_TIMER);
	if (errno)
		err(2, "RTR");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		err(2, "RTS");
}

static void connect_all(struct job *job)
{
	for (unsigned int peer = 0; peer < job->n; peer++)
		for (unsigned int i = 0; i < job->most; i++)
			if (job->qps[peer * job->most + i])
				connect_one(job, job->qps[peer * job->most + i],
					    address(job, peer, job->me, i), path_to(job, peer)->sl);
}

/* The verbs that a move by SQD takes: drain, wait for the event, another address, on again. */
static void move_one(struct job *job, struct ibv_qp *qp, unsigned int lid, unsigned int sl)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event event;

	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	if (errno)
		err(2, "SQD");
	do {
		if (ibv_get_async_event(job->ep.ctx, &event))
			err(2, "an event");
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_SQ_DRAINED);
	attr.ah_attr = (struct ibv_ah_attr) { .dlid = lid, .sl = sl, .port_num = job->ep.port };
	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV);
	if (errno)
		err(2, "another address");
	attr.qp_state = IBV_QPS_RTS;
	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	if (errno)
		err(2, "RTS again");
}

static long long spent_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void move_changed(struct job *job)
{
	long long start = spent_ns();
	unsigned int moved = 0;

	for (unsigned int peer = 0; peer < job->n; peer++) {
		struct path *path = path_to(job, peer);

		for (unsigned int i = 0; i < job->most && path->sl != path->other; i++) {
			struct ibv_qp *qp = job->qps[peer * job->most + i];

			if (!qp)
				continue;
			move_one(job, qp, address(job, peer, job->me, i)->lid, path->other);
			moved++;
		}
	}
	printf("%u %lld\n", moved, spent_ns() - start);
	fflush(stdout);
}

static void process(struct job *job)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	create(job);
	pthread_barrier_wait(&job->shared->barrier);
	connect_all(job);
	pthread_barrier_wait(&job->shared->barrier);
	for (unsigned int i = 0; job->measure && i < job->n; i++) {
		if (i == job->me)
			move_changed(job);
		pthread_barrier_wait(&job->shared->barrier);
	}
	if (!job->measure)
		pause();
	exit(0);
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	int o, status, bad = 0;

	while ((o = getopt(argc, argv, "bh")) >= 0) {
		if (o != 'b') {
			fputs(usage, o == 'h' ? stdout : stderr);
			return o == 'h' ? 0 : 2;
		}
		job.measure = 1;
	}
	if (argc - optind >= 3 && argc - optind <= MOST_DEVICES + 1)
		job.n = strtoul(argv[optind], NULL, 0);
	if (job.n < 2) {
		fputs(usage, stderr);
		return 2;
	}
	job.devices = argv + optind + 1;
	job.n_devices = argc - optind - 1;
	read_paths(&job);
	share(&job);
	for (job.me = 0; job.me < job.n; job.me++) {
		pid_t pid = fork();

		if (pid < 0)
			err(2, "fork");
		if (!pid)
			process(&job);
	}
	pthread_barrier_wait(&job.shared->barrier);
	pthread_barrier_wait(&job.shared->barrier);
	puts("ready");
	fflush(stdout);
	for (unsigned int i = 0; job.measure && i < job.n; i++)
		pthread_barrier_wait(&job.shared->barrier);
	while (wait(&status) > 0)
		bad |= status;
	return bad ? 1 : 0;
}
