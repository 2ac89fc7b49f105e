// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What was measured, as tables: CSV for one table, JSON for all of them. */
#include <string.h>

#include "traffic.h"

static double seconds(const struct fabric *f)
{
	return (f->clock.now - f->traffic->since) * 1e-12;
}

static double gbps(const struct fabric *f, uint64_t bytes)
{
	double s = seconds(f);

	return s > 0 ? bytes * 8e-9 / s : 0;
}

static const char *host_id(const struct fabric *f, uint32_t port)
{
	return port < f->nports ? f->nodes[f->ports[port].node].net->id : "*";
}

static void flow_target(const struct fabric *f, const struct flow *flow, const char **to)
{
	int many = flow->spec.pattern == FLOW_UNIFORM || flow->spec.pattern == FLOW_MIXED;

	*to = many ? "*" : host_id(f, flow->spec.to);
}

static void csv_flows(struct fabric *f, FILE *file)
{
	struct traffic *t = f->traffic;

	fprintf(file, "flow,from,to,sl,sent,received,lost,resent,gbps,p50_ns,p99_ns,max_ns\n");
	for (uint32_t i = 0; i < t->nflows; i++) {
		struct flow *flow = &t->flows[i];
		const struct latency *l = flow->latency ? flow->latency : &t->latency;
		const char *to;

		flow_target(f, flow, &to);
		fprintf(file, "%u,%s,%s,%u,%llu,%llu,%llu,%llu,%.4f,%llu,%llu,%llu\n", i,
			host_id(f, flow->spec.from), to, flow->spec.sl,
			(unsigned long long)flow->sent, (unsigned long long)flow->received,
			(unsigned long long)flow->lost, (unsigned long long)flow->resent,
			gbps(f, flow->bytes),
			(unsigned long long)latency_percentile(l, 50) / 1000,
			(unsigned long long)latency_percentile(l, 99) / 1000,
			(unsigned long long)l->max / 1000);
	}
}

static void csv_series(struct fabric *f, FILE *file)
{
	struct traffic *t = f->traffic;
	uint32_t flows = t->nflows < MAX_SERIES ? t->nflows : MAX_SERIES;

	fprintf(file, "time_us,total_gbps");
	for (uint32_t i = 0; i < flows; i++) {
		const char *to;

		flow_target(f, &t->flows[i], &to);
		fprintf(file, ",%s-%s", host_id(f, t->flows[i].spec.from), to);
	}
	fputc('\n', file);
	for (uint32_t n = 0; n < t->nsamples; n++) {
		fprintf(file, "%.3f,%.4f", t->sample_time[n] * 1e-6,
			t->sample_bytes[n] * 8000.0 / t->interval);
		for (uint32_t i = 0; i < flows; i++)
			fprintf(file, ",%.4f", t->series[n * MAX_SERIES + i]);
		fputc('\n', file);
	}
}

static void csv_vls(struct fabric *f, FILE *file)
{
	struct traffic *t = f->traffic;

	fprintf(file, "time_us");
	for (unsigned int vl = 0; vl < f->config.vls; vl++)
		fprintf(file, ",vl%u_blocks", vl);
	fputc('\n', file);
	for (uint32_t n = 0; n < t->nsamples; n++) {
		fprintf(file, "%.3f", t->sample_time[n] * 1e-6);
		for (unsigned int vl = 0; vl < f->config.vls; vl++)
			fprintf(file, ",%u", t->occupancy[n * f->config.vls + vl]);
		fputc('\n', file);
	}
}

static void csv_drops(struct fabric *f, FILE *file)
{
	fprintf(file, "cause,packets\n");
	for (int i = 0; i < NDROPS; i++)
		fprintf(file, "%s,%llu\n", drop_name[i], (unsigned long long)f->drops[i]);
}

/* Of the cables that have been told to do wrong, by the end that sends. */
static void csv_faults(struct fabric *f, FILE *file)
{
	fprintf(file, "port,lost,corrupted,doubled,not_doubled,delayed,late,overtook,most\n");
	for (uint32_t i = 0; i < f->nports; i++) {
		const struct link_fault *fault = f->ports[i].fault;

		if (!fault)
			continue;
		fprintf(file, "%s[%u]", host_id(f, i), f->ports[i].num);
		fprintf(file, ",%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu\n",
			(unsigned long long)fault->lost, (unsigned long long)fault->corrupted,
			(unsigned long long)fault->doubled, (unsigned long long)fault->not_doubled,
			(unsigned long long)fault->delayed, (unsigned long long)fault->late,
			(unsigned long long)fault->overtook, (unsigned long long)fault->most);
	}
}

int results_csv(struct fabric *f, const char *what, FILE *file)
{
	static const struct {
		const char *name;
		void (*print)(struct fabric *f, FILE *file);
	} tables[] = {
		{ "flows", csv_flows }, { "series", csv_series }, { "vls", csv_vls },
		{ "drops", csv_drops }, { "faults", csv_faults },
	};

	/* These are counted always. */
	if (!f->traffic && strcmp(what, "drops") && strcmp(what, "faults"))
		return -1;
	for (unsigned int i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		if (!strcmp(tables[i].name, what)) {
			tables[i].print(f, file);
			return 0;
		}
	return -1;
}

static void json_latency(const struct latency *l, FILE *file)
{
	fprintf(file, "{\"n\": %llu, \"mean_ns\": %.1f, \"p50_ns\": %.1f, \"p90_ns\": %.1f, ",
		(unsigned long long)l->n, l->n ? l->sum * 1e-3 / l->n : 0,
		latency_percentile(l, 50) * 1e-3, latency_percentile(l, 90) * 1e-3);
	fprintf(file, "\"p99_ns\": %.1f, \"max_ns\": %.1f}", latency_percentile(l, 99) * 1e-3,
		l->max * 1e-3);
}

static void json_flows(struct fabric *f, FILE *file)
{
	struct traffic *t = f->traffic;
	uint32_t flows = t->nflows < MAX_SERIES ? t->nflows : MAX_SERIES;

	fprintf(file, " \"flows\": [");
	for (uint32_t i = 0; i < t->nflows; i++) {
		struct flow *flow = &t->flows[i];
		const char *to;

		flow_target(f, flow, &to);
		fprintf(file, "%s\n  {\"from\": \"%s\", \"to\": \"%s\", \"sl\": %u, ",
			i ? "," : "", host_id(f, flow->spec.from), to, flow->spec.sl);
		fprintf(file, "\"sent\": %llu, \"received\": %llu, \"lost\": %llu, ",
			(unsigned long long)flow->sent, (unsigned long long)flow->received,
			(unsigned long long)flow->lost);
		fprintf(file, "\"resent\": %llu, \"gbps\": %.4f",
			(unsigned long long)flow->resent, gbps(f, flow->bytes));
		if (flow->spec.dlid)
			fprintf(file, ", \"dlid\": %u, \"at\": \"%s\", \"places\": %u", flow->spec.dlid,
				host_id(f, flow->at), flow->places);
		if (flow->done)
			fprintf(file, ", \"took_us\": %.3f", (flow->done - flow->spec.start) * 1e-6);
		if (flow->latency) {
			fprintf(file, ", \"latency\": ");
			json_latency(flow->latency, file);
		}
		fputc('}', file);
	}
	fprintf(file, "],\n \"series\": [");
	for (uint32_t n = 0; n < t->nsamples; n++) {
		fprintf(file, "%s\n  {\"time_us\": %.3f, \"total_gbps\": %.4f, \"gbps\": [",
			n ? "," : "", t->sample_time[n] * 1e-6,
			t->sample_bytes[n] * 8000.0 / t->interval);
		for (uint32_t i = 0; i < flows; i++)
			fprintf(file, "%s%.4f", i ? ", " : "", t->series[n * MAX_SERIES + i]);
		fprintf(file, "], \"vl_blocks\": [");
		for (unsigned int vl = 0; vl < f->config.vls; vl++)
			fprintf(file, "%s%u", vl ? ", " : "",
				t->occupancy[n * f->config.vls + vl]);
		fprintf(file, "]}");
	}
	fprintf(file, "],\n");
}

void results_json(struct fabric *f, FILE *file)
{
	struct traffic *t = f->traffic;

	if (!t) {
		fprintf(file, "{}\n");
		return;
	}
	fprintf(file, "{\"seconds\": %.9f, \"hops\": %llu, \"events\": %llu, ", seconds(f),
		(unsigned long long)f->hops, (unsigned long long)f->clock.events);
	fprintf(file, "\"received\": %llu, \"gbps\": %.4f,\n \"latency\": ",
		(unsigned long long)t->received, gbps(f, t->bytes));
	json_latency(&t->latency, file);
	fprintf(file, ",\n");
	json_flows(f, file);
	fprintf(file, " \"drops\": {");
	for (int i = 0; i < NDROPS; i++)
		fprintf(file, "%s\"%s\": %llu", i ? ", " : "", drop_name[i],
			(unsigned long long)f->drops[i]);
	fprintf(file, "},\n \"deadlock_at_us\": ");
	if (!t->deadlock_at) {
		fprintf(file, "null, \"deadlock\": []}\n");
		return;
	}
	fprintf(file, "%.3f, \"deadlock\": [", (t->deadlock_at - t->since) * 1e-6);
	for (unsigned int i = 0; i < t->deadlock_length && i < 64; i++) {
		const struct queue *q = &f->queues[t->deadlock[i]];

		fprintf(file, "%s{\"node\": \"%s\", \"port\": %u, \"vl\": %u}", i ? ", " : "",
			host_id(f, q->port), f->ports[q->port].num, q->vl);
	}
	fprintf(file, "]}\n");
}
