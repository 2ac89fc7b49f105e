// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Is the other end there? A link that stands still is asked with a WRITE of nothing: the other end's HCA
 * answers it, whatever its program does. When a request has failed, every other one must fail too, and
 * each link must be found dead, or alive.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rcheck.h"

#define AFTERMATH_S 30	/* within which all that is under way on a dead link has to come back */
#define EXIT_US 3000000	/* that a program may need to destroy what it has */

static void wrong(struct check *c, const struct link *l, const char *what, uint64_t number)
{
	if (!c->aftermath[0])
		snprintf(c->aftermath, sizeof(c->aftermath), "QP %u (0x%x): %s %llu", l->index, l->qpn,
			 what, (unsigned long long)number);
}

static bool under_way(const struct link *l)
{
	return l->probe > l->retired;
}

static int probe(struct check *c, struct link *l)
{
	struct ibv_send_wr wr = {
		.wr_id = make_wr_id(l, l->posted), .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = l->remote.writes, .rkey = l->remote.rkey },
	}, *bad;
	int rc = ibv_post_send(l->qp, &wr, &bad);

	if (rc)
		return rc;
	l->ring[l->posted % c->nsend] = (struct request){
		.op = MSG_PROBE, .signaled = true, .wr_id = wr.wr_id, .seq = l->seq };
	l->since_signal = 0;
	l->probe = ++l->posted;
	l->probed = c->now;
	c->probes++;
	return 0;
}

void link_probe_if_still(struct check *c, struct link *l)
{
	double since = l->last_progress > c->started ? l->last_progress : c->started;
	int rc;

	if (since < l->probed)
		since = l->probed;
	if (!c->opt.probe || c->totals_sent || c->now - since < c->opt.probe || under_way(l))
		return;
	rc = probe(c, l);
	if (rc)
		fail(c, l, "post of a probe: %s", strerror(rc));
}

bool is_probe(const struct check *c, const struct link *l, const struct ibv_wc *wc)
{
	uint64_t number = wc->wr_id & POST_MASK;

	return !(wc->wr_id & RECV_BIT) && number < l->posted && l->ring[number % c->nsend].op == MSG_PROBE;
}

static uint64_t errors(const uint64_t *counts)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < WC_STATUSES; i++)
		n += counts[i];
	return n;
}

/* From the first error on each request has a completion, in order, whether it asked for one or not. */
static void after_send(struct check *c, struct link *l, const struct ibv_wc *wc)
{
	uint64_t number = wc->wr_id & POST_MASK;
	bool first = !errors(l->send_errors);

	if (number < l->retired || number >= l->posted || (!first && number != l->retired))
		wrong(c, l, "after an error a completion of request", number);
	l->retired = number + 1;
	if (wc->status == IBV_WC_SUCCESS) {
		if (!first)
			wrong(c, l, "after an error success of request", number);
		l->alive = l->retired == l->posted;	/* it was asked last of all */
		return;
	}
	if (first)
		l->first_error = wc->status;
	l->send_errors[wc->status % WC_STATUSES]++;
}

static void after_recv(struct check *c, struct link *l, const struct ibv_wc *wc)
{
	uint64_t number = wc->wr_id & POST_MASK;

	if (number != (l->recvs_done & POST_MASK) || number >= l->recvs_posted)
		wrong(c, l, "after an error a completion of receive", number);
	l->recvs_done = number + 1;
	if (wc->status != IBV_WC_SUCCESS)
		l->recv_errors[wc->status % WC_STATUSES]++;
	else if (errors(l->recv_errors))
		wrong(c, l, "after an error success of receive", number);
}

void completed_after_failure(struct check *c, const struct ibv_wc *wc)
{
	uint64_t index = (wc->wr_id & ~RECV_BIT) >> 48;
	struct link *l;

	if (index >= c->traffic.qps)
		return;
	l = &c->links[index];
	if (wc->wr_id & RECV_BIT)
		after_recv(c, l, wc);
	else
		after_send(c, l, wc);
}

static bool is_dead(const struct link *l)
{
	return errors(l->send_errors) || errors(l->recv_errors);
}

static bool settled(const struct link *l)
{
	if (is_dead(l))
		return errors(l->send_errors) && l->posted == l->retired && l->recvs_posted == l->recvs_done;
	return l->alive;
}

static bool all_settled(const struct check *c)
{
	uint32_t i;

	for (i = 0; i < c->traffic.qps; i++)
		if (!settled(&c->links[i]))
			return false;
	return true;
}

/* Until nothing is under way any more. */
static void wait_settled(struct check *c, double until)
{
	while (!all_settled(c) && seconds_now() < until) {
		poll_all(c);
		usleep(10000);
	}
}

static bool any_dead(const struct check *c)
{
	uint32_t i;

	for (i = 0; i < c->traffic.qps; i++)
		if (is_dead(&c->links[i]))
			return true;
	return false;
}

/* A dead one on which nothing was sent has to say why, too. */
static void probe_all(struct check *c)
{
	uint32_t i;

	for (i = 0; i < c->traffic.qps; i++) {
		struct link *l = &c->links[i];

		if (errors(l->send_errors))
			continue;
		l->alive = false;
		if (probe(c, l))
			wrong(c, l, "no probe could be posted behind request", l->posted);
	}
}

void prove_dead(struct check *c)
{
	double until = seconds_now() + AFTERMATH_S;
	uint32_t i;

	/* Something else was wrong: with the data. */
	if (!any_dead(c))
		return;
	probe_all(c);
	wait_settled(c, until);
	/* A program that ends destroys one queue pair after the other: who lived may have been next. */
	usleep(EXIT_US);
	probe_all(c);
	wait_settled(c, until);
	for (i = 0; i < c->traffic.qps; i++)
		if (!settled(&c->links[i]))
			wrong(c, &c->links[i], "not all has come back of requests up to", c->links[i].posted);
}

static void print_errors(const char *name, const uint64_t *counts)
{
	const char *sep = "";
	int i;

	printf(",\"%s\":{", name);
	for (i = 0; i < WC_STATUSES; i++) {
		if (!counts[i])
			continue;
		printf("%s\"%d\":%llu", sep, i, (unsigned long long)counts[i]);
		sep = ",";
	}
	printf("}");
}

/* By the numbers of enum ibv_wc_status. */
void report_dead(const struct check *c)
{
	const char *sep = "";
	uint32_t i;

	printf(",\"probes\":%llu,\"dead\":[", (unsigned long long)c->probes);
	for (i = 0; i < c->traffic.qps; i++) {
		const struct link *l = &c->links[i];

		if (!is_dead(l))
			continue;
		printf("%s{\"qp\":%u,\"first\":%d", sep, i, errors(l->send_errors) ? (int)l->first_error : 0);
		print_errors("sends", l->send_errors);
		print_errors("recvs", l->recv_errors);
		printf("}");
		sep = ",";
	}
	printf("]");
}
