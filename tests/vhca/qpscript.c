// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs by script, for states that programs seldom reach: path migration, drained queues.
 * Each line of standard input is a command; the first that fails ends it, with status 1. Q is a
 * queue pair's name.
 *
 *	open Q DEVICE PORT [uc|ud] [srq] [pkey=INDEX]	a queue pair, and all it needs
 *	connect Q R [sl=N] [timeout=N] [retry=N] [alt=PORT] [altsl=N] [rnr=N] [bits=N] [rbits=N]
 *		    [from=N] [to=N] [gid]	both to RTS; alt: the alternate path, port of both; bits, rbits:
 *					path bits of Q's and R's own LID; from, to: others that only Q uses;
 *					gid: with a GRH, which RoCE always has
 *	recv Q COUNT			post receives
 *	send Q COUNT BYTES [badkey]	post sends; badkey: with another Q_Key
 *	read|write Q COUNT BYTES [badkey]	post them, to where the peer's memory is
 *	done Q send|recv COUNT STATUS [MS]	wait for completions, the last with that status
 *					(as libibverbs words it, with _ for a space)
 *	some Q MIN MAX MS		so many receives are complete when none has come for so long, all with
 *					success and as long as what the peer has posted last
 *	left Q MIN			so many sends at least are not complete
 *	quiet Q MS			no completion comes
 *	event Q NAME [MS]		the next asynchronous event of the device
 *	among Q NAME [MS]		... or one that comes after others
 *	noevent Q MS
 *	alt Q PORT SL [BITS]		load an alternate path over that port (of both) and rearm; BITS: path
 *					bits of both ends' LIDs
 *	mig Q rearm|migrated
 *	sqd Q [notify]			drain the send queue
 *	drained Q MS			nothing is under way: what the peer has received, and no more, is
 *					complete, and stays so
 *	rts Q				go on
 *	reset Q				take it to RESET; connect takes it on
 *	sl Q N				in SQD: another service level
 *	came Q SL [BITS]		the last message has come by that service level, from that LID of the
 *					peer's port
 *	is Q mig|state|port|sl|draining VALUE [MS]	wait until ibv_query_qp says so
 *	fails COMMAND...		the command that follows must fail
 *	!COMMAND			a shell command
 *
 * On a kernel that is N times as slow, -w N makes all that waits for something wait N times as long.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "qpscript.h"

#define PATIENCE 60000

static struct queue queues[QPS];
static int count;
static int slowness = 1;

static const struct {
	const char *name;
	int value;
} events[] = {
	{ "path_mig", IBV_EVENT_PATH_MIG }, { "path_mig_err", IBV_EVENT_PATH_MIG_ERR },
	{ "sq_drained", IBV_EVENT_SQ_DRAINED }, { "comm_est", IBV_EVENT_COMM_EST },
	{ "port_err", IBV_EVENT_PORT_ERR }, { "port_active", IBV_EVENT_PORT_ACTIVE },
	{ "device_fatal", IBV_EVENT_DEVICE_FATAL }, { "qp_fatal", IBV_EVENT_QP_FATAL },
	{ "qp_access_err", IBV_EVENT_QP_ACCESS_ERR }, { "lid_change", IBV_EVENT_LID_CHANGE },
};

static const char *const mig_names[] = { "migrated", "rearm", "armed" };
static const char *const state_names[] = { "reset", "init", "rtr", "rts", "sqd", "sqe", "err" };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static struct queue *find(const char *name)
{
	for (int i = 0; i < count; i++)
		if (name && !strcmp(queues[i].name, name))
			return &queues[i];
	errx(2, "no queue pair called %s", name);
}

int number(const char *text, int otherwise)
{
	return text ? atoi(text) : otherwise;
}

/* When waiting that is told how long, or not, is over. */
static double end_of_wait(const char *ms)
{
	return now() + (double)number(ms, PATIENCE) * slowness;
}

/* Sorts what has come; returns how many. */
static int look(struct queue *q)
{
	struct ibv_wc wc;
	int n = 0;

	while (ibv_poll_cq(q->cq, 1, &wc) == 1) {
		int receive = !wc.wr_id;

		q->status[receive][q->seen[receive]++ % ROOM_STATUS] = wc.status;
		if (receive) {
			q->others += !wc.status && wc.byte_len != q->peer->bytes;
			q->sl = wc.sl;
			q->slid = wc.slid;
		}
		n++;
	}
	return n;
}

static int done(char **w)
{
	struct queue *q = find(w[0]);
	int receive = !strcmp(w[1], "recv");
	unsigned int want = number(w[2], 0);
	double end = end_of_wait(w[4]);
	char status[64];

	while (q->seen[receive] - q->taken[receive] < want) {
		look(q);
		if (now() > end) {
			fprintf(stderr, "%u of %u completions\n",
				q->seen[receive] - q->taken[receive], want);
			return -1;
		}
		usleep(1000);
	}
	if (!want)
		return 0;
	q->taken[receive] += want;
	snprintf(status, sizeof(status), "%s",
		 ibv_wc_status_str(q->status[receive][(q->taken[receive] - 1) % ROOM_STATUS]));
	for (char *c = status; *c; c++)
		*c = *c == ' ' ? '_' : *c;
	if (strcasecmp(status, w[3])) {
		fprintf(stderr, "the last completion says: %s\n", status);
		return -1;
	}
	return 0;
}

static int quiet(char **w)
{
	struct queue *q = find(w[0]);
	double end = now() + number(w[1], 300);

	look(q);
	while (now() < end) {
		if (look(q))
			return -1;
		usleep(1000);
	}
	return 0;
}

static int some(char **w)
{
	struct queue *q = find(w[0]);
	unsigned int least = number(w[1], 1), most = number(w[2], 0), n, failed = 0;

	while (quiet((char *[]){ w[0], w[3] }))
		;
	n = q->seen[1] - q->taken[1];
	for (; q->taken[1] < q->seen[1]; q->taken[1]++)
		failed += q->status[1][q->taken[1] % ROOM_STATUS] != IBV_WC_SUCCESS;
	printf("%u receives\n", n);
	if (n >= least && n <= most && !failed && !q->others)
		return 0;
	fprintf(stderr, "%u failed, %u of another length\n", failed, q->others);
	return -1;
}

static int left(char **w)
{
	struct queue *q = find(w[0]);

	look(q);
	printf("%u are left\n", q->posted - q->seen[0]);
	return q->posted - q->seen[0] >= (unsigned int)number(w[1], 1) ? 0 : -1;
}

static int drained(char **w)
{
	struct queue *q = find(w[0]);

	look(q);
	look(q->peer);
	if (q->seen[0] != q->peer->seen[1]) {
		fprintf(stderr, "%u are complete, and %u received\n", q->seen[0], q->peer->seen[1]);
		return -1;
	}
	return quiet(w) || quiet((char *[]){ q->peer->name, w[1] });
}

static int next_event(struct queue *q, int ms)
{
	struct pollfd p = { .fd = q->context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&p, 1, ms) != 1 || ibv_get_async_event(q->context, &event))
		return -1;
	ibv_ack_async_event(&event);
	return event.event_type;
}

static int wait_event(char **w, int among)
{
	struct queue *q = find(w[0]);
	double end = end_of_wait(w[2]);

	while (now() < end) {
		int type = next_event(q, end - now() + 1);

		/* The first packet may be told before RTU comes: that is no news here. */
		if (type == IBV_EVENT_COMM_EST && strcmp(w[1], "comm_est"))
			continue;
		for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
			if (events[i].value == type && !strcmp(events[i].name, w[1]))
				return 0;
		if (among && type >= 0)
			continue;
		fprintf(stderr, "got %s\n", type < 0 ? "no event" : ibv_event_type_str(type));
		return -1;
	}
	return -1;
}

static int no_event(char **w)
{
	int type = next_event(find(w[0]), number(w[1], 300));

	if (type >= 0)
		fprintf(stderr, "got %s\n", ibv_event_type_str(type));
	return type >= 0;
}

static int modify(struct queue *q, struct ibv_qp_attr *a, int mask)
{
	int rc = ibv_modify_qp(q->qp, a, mask);

	if (rc)
		fprintf(stderr, "%s\n", strerror(rc));
	return rc;
}

static int load_alternate(char **w)
{
	struct queue *q = find(w[0]);
	int port = number(w[1], 1);
	struct ibv_qp_attr a = { .alt_port_num = port, .alt_timeout = 16,
		.path_mig_state = IBV_MIG_REARM };

	if (w[2] && w[3])
		q->from = q->to = number(w[3], 0);
	set_path(&a.alt_ah_attr, q, port, number(w[2], 0));
	return modify(q, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
}

static int set_mig(char **w)
{
	struct ibv_qp_attr a = { .path_mig_state = !strcmp(w[1], "rearm") ? IBV_MIG_REARM :
		IBV_MIG_MIGRATED };

	return modify(find(w[0]), &a, IBV_QP_PATH_MIG_STATE);
}

static int set_state(const char *command, char **w)
{
	int sqd = !strcmp(command, "sqd");
	struct ibv_qp_attr a = { .qp_state = sqd ? IBV_QPS_SQD : IBV_QPS_RTS,
		.en_sqd_async_notify = sqd && w[1] };

	return modify(find(w[0]), &a, IBV_QP_STATE | (sqd && w[1] ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0));
}

static int reset(struct queue *q)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	q->posted = q->seen[0];
	return modify(q, &a, IBV_QP_STATE);
}

static int set_sl(char **w)
{
	struct queue *q = find(w[0]);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD };

	set_path(&a.ah_attr, q, q->peer->port, number(w[1], 0));
	a.ah_attr.port_num = q->port;
	return modify(q, &a, IBV_QP_STATE | IBV_QP_AV);
}

static const char *value_of(struct queue *q, const char *what)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	static char text[16];
	int n;

	if (ibv_query_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MIG_STATE, &init))
		return "?";
	if (!strcmp(what, "mig"))
		return mig_names[a.path_mig_state];
	if (!strcmp(what, "state"))
		return state_names[a.qp_state];
	n = !strcmp(what, "port") ? a.ah_attr.port_num :
	    !strcmp(what, "sl") ? service_level(&a.ah_attr) : a.sq_draining;
	snprintf(text, sizeof(text), "%d", n);
	return text;
}

static int is(char **w)
{
	struct queue *q = find(w[0]);
	double end = end_of_wait(w[3]);

	while (strcmp(value_of(q, w[1]), w[2])) {
		if (now() > end) {
			fprintf(stderr, "it is %s\n", value_of(q, w[1]));
			return -1;
		}
		usleep(1000);
	}
	return 0;
}

static int came(char **w)
{
	struct queue *q = find(w[0]);
	int lid = w[2] ? port_of(q->peer, q->peer->port).lid + number(w[2], 0) : q->slid;

	if (q->sl == number(w[1], 0) && q->slid == lid)
		return 0;
	fprintf(stderr, "it came by %d from %d, not %d\n", q->sl, q->slid, lid);
	return -1;
}

static int run(char **w)
{
	const char *c = w[0];

	if (!strcmp(c, "fails"))
		return !run(w + 1);
	w++;
	if (!strcmp(c, "open"))
		return count < QPS && w[0] && w[1] ? open_queue(&queues[count++], w) : -1;
	if (!strcmp(c, "connect"))
		return connect_queues(find(w[0]), find(w[1]), w);
	if (!strcmp(c, "recv"))
		return post_recv(find(w[0]), number(w[1], 1));
	if (!strcmp(c, "send"))
		return post_send(find(w[0]), w, IBV_WR_SEND);
	if (!strcmp(c, "read"))
		return post_send(find(w[0]), w, IBV_WR_RDMA_READ);
	if (!strcmp(c, "write"))
		return post_send(find(w[0]), w, IBV_WR_RDMA_WRITE);
	if (!strcmp(c, "done"))
		return done(w);
	if (!strcmp(c, "quiet"))
		return quiet(w);
	if (!strcmp(c, "some"))
		return some(w);
	if (!strcmp(c, "left"))
		return left(w);
	if (!strcmp(c, "drained"))
		return drained(w);
	if (!strcmp(c, "event"))
		return wait_event(w, 0);
	if (!strcmp(c, "among"))
		return wait_event(w, 1);
	if (!strcmp(c, "noevent"))
		return no_event(w);
	if (!strcmp(c, "alt"))
		return load_alternate(w);
	if (!strcmp(c, "mig"))
		return set_mig(w);
	if (!strcmp(c, "sqd") || !strcmp(c, "rts"))
		return set_state(c, w);
	if (!strcmp(c, "reset"))
		return reset(find(w[0]));
	if (!strcmp(c, "sl"))
		return set_sl(w);
	if (!strcmp(c, "came"))
		return came(w);
	if (!strcmp(c, "is"))
		return is(w);
	errx(2, "no command %s", c);
}

int main(int argc, char **argv)
{
	char line[512], copy[512], *words[16], *save;
	double start = now();
	int n, rc;

	if (getopt(argc, argv, "w:") == 'w')
		slowness = number(optarg, 1);
	if (slowness < 1 || optind < argc)
		errx(2, "usage: qpscript [-w N] <SCRIPT");
	setlinebuf(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "#\n")] = '\0';
		strcpy(copy, line);
		n = 0;
		for (char *word = strtok_r(copy, " \t", &save); word && n < 15;
		     word = strtok_r(NULL, " \t", &save))
			words[n++] = word;
		words[n] = NULL;
		if (!n)
			continue;
		rc = line[strspn(line, " \t")] == '!' ? system(strchr(line, '!') + 1) : run(words);
		printf("%7.0f ms %s: %s\n", now() - start, rc ? "FAIL" : "ok", line);
		if (rc)
			return 1;
	}
	return 0;
}
