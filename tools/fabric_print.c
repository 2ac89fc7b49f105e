// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the check of a subnet has found, as text or JSON. */
#include <stdio.h>
#include "fabric_print.h"
#include "out.h"

static void print_text(const struct check *c)
{
	static const char *const title[] = { "note", "WRONG" };

	printf("%u switches, %u host ports, %u cables; %lu paths", c->f->switches, c->hosts,
	       c->cables, c->pairs);
	printf("%s%s\n", c->f->has_sl ? "" : ", SLs not told of",
	       c->f->has_sl2vl ? "" : ", no SLtoVL tables: VL is SL");
	printf("paths by switches passed:");
	for (unsigned int h = 0; h < CHECK_HOPS; h++)
		if (c->hops[h])
			printf(" %u: %lu", h, c->hops[h]);
	printf("\npaths by link between switches: least in use %lu, mean %.1f, most %lu; %u in use, %u not\n",
	       c->least, c->mean, c->most, c->used, c->unused);
	printf("lanes in use:");
	for (unsigned int vl = 0; vl < FABRIC_LANES; vl++)
		if (c->lanes >> vl & 1)
			printf(" %u", vl);
	printf("; credit loops: %u\n", c->ncycles);
	if (c->users)
		printf("partitions share %u links, %u lanes of them\n", c->shared_links,
		       c->shared_lanes);
	for (unsigned int i = 0; i < c->faults; i++)
		printf("%s %s: %s.\n    %s.\n", title[c->fault[i].wrong], c->fault[i].kind,
		       c->fault[i].what, c->fault[i].then);
	printf("%s\n", check_failed(c) ? "something is wrong" : "nothing is wrong");
}

static struct json_object *channel_object(const struct channel *ch)
{
	struct json_object *o = json_object_new_object();

	out_text(o, "switch", ch->out->node->name);
	out_number(o, "port", ch->out->num);
	out_number(o, "vl", ch->vl);
	return o;
}

static struct json_object *cycles_array(const struct check *c)
{
	struct json_object *all = json_object_new_array();

	for (unsigned int i = 0; i < c->ncycles; i++) {
		struct json_object *one = json_object_new_array();

		for (unsigned int j = 0; j < c->cycles[i].length; j++)
			json_object_array_add(one, channel_object(&c->cycles[i].channel[j]));
		json_object_array_add(all, one);
	}
	return all;
}

static struct json_object *faults_array(const struct check *c)
{
	struct json_object *all = json_object_new_array();

	for (unsigned int i = 0; i < c->faults; i++) {
		struct json_object *o = json_object_new_object();

		out_text(o, "kind", c->fault[i].kind);
		out_flag(o, "wrong", c->fault[i].wrong);
		out_number(o, "count", c->fault[i].count);
		out_text(o, "what", c->fault[i].what);
		out_text(o, "then", c->fault[i].then);
		json_object_array_add(all, o);
	}
	return all;
}

static struct json_object *balance_object(const struct check *c)
{
	struct json_object *o = json_object_new_object(), *bins = json_object_new_array();
	char mean[32];

	snprintf(mean, sizeof(mean), "%.2f", c->mean);
	out_number(o, "used", c->used);
	out_number(o, "unused", c->unused);
	out_number(o, "least", c->least);
	json_object_object_add(o, "mean", json_object_new_double_s(c->mean, mean));
	out_number(o, "most", c->most);
	for (unsigned int i = 0; i < CHECK_BINS; i++)
		json_object_array_add(bins, json_object_new_int64(c->bins[i]));
	json_object_object_add(o, "bins", bins);
	return o;
}

static void print_json(const struct check *c)
{
	struct json_object *o = json_object_new_object(), *hops = json_object_new_object();
	struct json_object *lanes = json_object_new_array();

	out_flag(o, "ok", !check_failed(c));
	out_number(o, "switches", c->f->switches);
	out_number(o, "hosts", c->hosts);
	out_number(o, "cables", c->cables);
	out_number(o, "paths", c->pairs);
	out_number(o, "unreachable", c->unreached);
	out_number(o, "unanswered", c->f->unanswered);
	out_number(o, "management", c->management);
	out_number(o, "loops", c->looping);
	out_number(o, "longer", c->longer);
	out_number(o, "longer_by", c->most_longer);
	for (unsigned int h = 0; h < CHECK_HOPS; h++) {
		char key[8];

		snprintf(key, sizeof(key), "%u", h);
		if (c->hops[h])
			json_object_object_add(hops, key, json_object_new_uint64(c->hops[h]));
	}
	json_object_object_add(o, "hops", hops);
	json_object_object_add(o, "balance", balance_object(c));
	for (unsigned int vl = 0; vl < FABRIC_LANES; vl++)
		if (c->lanes >> vl & 1)
			json_object_array_add(lanes, json_object_new_int(vl));
	json_object_object_add(o, "lanes", lanes);
	out_number(o, "discarded", c->flow.lost);
	out_number(o, "asymmetric", c->asymmetric);
	out_number(o, "shared_links", c->shared_links);
	out_number(o, "shared_lanes", c->shared_lanes);
	json_object_object_add(o, "credit_loops", cycles_array(c));
	json_object_object_add(o, "faults", faults_array(c));
	out_object(o);
	json_object_put(o);
}

void fabric_print(const struct check *c)
{
	if (out_json)
		print_json(c);
	else
		print_text(c);
}
