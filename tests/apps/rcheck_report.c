// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "rcheck.h"

double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Keeps the first failure: what follows is mostly its consequence. */
void fail(struct check *c, const struct link *l, const char *format, ...)
{
	char what[200];
	va_list args;

	if (c->failure[0])
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (l)
		snprintf(c->failure, sizeof(c->failure), "QP %u (0x%x): %s", l->index, l->qpn, what);
	else
		snprintf(c->failure, sizeof(c->failure), "%s", what);
	fprintf(stderr, "rcheck: FAIL: %s\n", c->failure);
}

static uint64_t sum(const uint64_t *counts)
{
	uint64_t n = 0;
	int op;

	for (op = 0; op < MSG_CREDIT; op++)
		n += counts[op];
	return n;
}

void report_numbers(struct check *c, const char *when)
{
	union ibv_gid gid;
	uint32_t i;

	if (!c->opt.numbers)
		return;
	if (ibv_query_gid(c->ep.ctx, c->ep.port, c->ep.gid_index, &gid))
		fail(c, NULL, "query GID %d", c->ep.gid_index);
	printf("{\"numbers\":\"%s\",\"device\":\"%s\",\"gid\":\"%s\",\"qps\":[", when,
	       ibv_get_device_name(c->ep.ctx->device), gid_text(&gid));
	for (i = 0; i < c->traffic.qps; i++)
		printf("%s{\"qpn\":%u,\"lkey\":%u,\"rkey\":%u,\"dest_qpn\":%u,\"dest_rkey\":%u}",
		       i ? "," : "", c->links[i].qp->qp_num, c->links[i].mr->lkey,
		       c->links[i].mr->rkey, c->links[i].remote.rc.qpn, c->links[i].remote.rkey);
	printf("]}\n");
	fflush(stdout);
}

void report_interval(struct check *c)
{
	static double last;
	static uint64_t before;
	uint64_t msgs = sum(c->sent) + sum(c->received), waiting = 0, recvs = 0;
	uint32_t i;

	if (!last)
		last = c->started;
	if (!c->opt.interval || c->now - last < c->opt.interval)
		return;
	for (i = 0; i < c->traffic.qps; i++) {
		waiting += c->links[i].posted - c->links[i].retired;
		recvs += c->links[i].recvs_posted - c->links[i].recvs_done;
	}
	printf("{\"t\":%.3f,\"msgs\":%llu,\"rate\":%.0f,\"gap_ms\":%.1f,\"waiting\":%llu,"
	       "\"recvs\":%llu,\"rounds\":%llu}\n", c->now - c->started, (unsigned long long)msgs,
	       (msgs - before) / (c->now - last), c->interval_gap * 1e3,
	       (unsigned long long)waiting, (unsigned long long)recvs,
	       (unsigned long long)c->rounds);
	fflush(stdout);
	last = c->now;
	before = msgs;
	c->interval_gap = 0;
}

static void print_counts(const char *name, const uint64_t *counts)
{
	const char *sep = "";
	int op;

	printf(",\"%s\":{", name);
	for (op = 0; op <= MSG_CREDIT; op++) {
		if (!counts[op])
			continue;
		printf("%s\"%s\":%llu", sep, msg_op_names[op], (unsigned long long)counts[op]);
		sep = ",";
	}
	printf("}");
}

static void print_quoted(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text >= ' ' ? *text : ' ');
	}
	putchar('"');
}

void report_end(struct check *c)
{
	printf("{\"ok\":%s,\"role\":\"%s\",\"qps\":%u,\"seconds\":%.3f,\"msgs\":%llu,"
	       "\"max_gap_ms\":%.1f,\"cqes\":%llu,\"events\":%llu,\"async_events\":%llu",
	       c->failure[0] ? "false" : "true", c->from ? "server" : "client", c->traffic.qps,
	       c->now - c->started, (unsigned long long)(sum(c->sent) + sum(c->received)),
	       c->max_gap * 1e3, (unsigned long long)c->cqes, (unsigned long long)c->events,
	       (unsigned long long)c->async_events);
	print_counts("sent", c->sent);
	print_counts("received", c->received);
	if (c->sampled)
		printf(",\"samples\":%u", c->sampled);
	if (c->opt.probe)
		report_dead(c);
	if (c->failure[0]) {
		printf(",\"error\":");
		print_quoted(c->failure);
	}
	if (c->aftermath[0]) {
		printf(",\"aftermath\":");
		print_quoted(c->aftermath);
	}
	printf("}\n");
	fflush(stdout);
}
