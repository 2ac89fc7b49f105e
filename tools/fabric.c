// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath fabric: the routing of a whole InfiniBand subnet, checked and drawn. See repath-fabric(8). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "fabric/check.h"
#include "fabric/draw.h"
#include "fabric/live.h"
#include "fabric/partition.h"
#include "fabric/read.h"
#include "out.h"

#define PATHS	64

struct words {
	const char *from[PATHS];
	size_t nfrom;
	struct live_wants live;
	const char *dot;
	const char *save;
	uint8_t sl;
	struct check_wants wants;
	struct partitions *partitions;
};

static const char check_help[] =
	"usage: repath [-j] fabric check [from PATH]... [dev D] [port N] [sl N] [partitions FILE]\n"
	"           [require minimal | symmetric | lanes | links]... [dot FILE] [save FILE]\n"
	"  checks the routing of a subnet: that every host reaches every other, loops of the tables,\n"
	"  credit loops by lane, lanes that drop, longer ways than needed, balance, partitions that\n"
	"  share links or lanes\n"
	"\n"
	"  from PATH   a directory in which OpenSM has dumped (opensm -D 0x43, OSM_TMP_DIR=DIR or\n"
	"              dump_files_dir DIR): opensm-subnet.lst, opensm-lfts.dump or opensm.fdbs,\n"
	"              opensm-sl2vl.dump if there is one, paths.sl if there is one; or one of these\n"
	"              files, or what ibnetdiscover, dump_fts and ibroute print. Files are told by\n"
	"              what is in them, and may be named in any order\n"
	"  dev, port   without \"from\" the subnet is asked, from this port, or the first that is up:\n"
	"              its tables, and its subnet manager for the SL of each path\n"
	"  sl N        the SL of all paths that no file tells of (else 0); the subnet manager is not\n"
	"              asked. A file with lines \"slid dlid sl\" (0x.. or decimal) tells SLs\n"
	"  partitions  OpenSM's partitions.conf: which links and lanes partitions share\n"
	"  require     makes a fault of what else is a note: a path longer than the shortest, another\n"
	"              SL for the way back, partitions that share a lane, or a link\n"
	"  dot FILE    draws the switches for Graphviz; a credit loop is red\n"
	"  save FILE   writes all that was read as one file, which \"from\" understands\n"
	"\n"
	"  status: 0 nothing is wrong, 1 something is, 2 wrong use, 3 the files can not be read;\n"
	"  -j: one object with \"ok\", \"faults\" [{kind, wrong, count, what, then}], and figures\n";

static void take_from(struct words *w, struct args *a)
{
	if (w->nfrom == PATHS)
		usage_error(a, "these are too many files");
	w->from[w->nfrom++] = take_word(a, "PATH");
}

static void take_requirement(struct check_wants *wants, struct args *a)
{
	if (take(a, "minimal"))
		wants->minimal = true;
	else if (take(a, "symmetric"))
		wants->symmetric = true;
	else if (take(a, "lanes"))
		wants->isolation = ISOLATION_LANES;
	else if (take(a, "links"))
		wants->isolation = ISOLATION_LINKS;
	else
		usage_error(a, "\"%s\" can not be required", take_word(a, "what is required"));
}

/* Where it is said, the subnet manager need not be asked. */
static uint8_t take_sl(struct words *w, struct args *a)
{
	w->live.sls = false;
	return take_u32(a, "an SL", 0, FABRIC_LANES - 1);
}

static void take_words(struct words *w, struct args *a)
{
	const char *partitions = NULL;
	char message[READ_MESSAGE];

	while (a->argc) {
		if (take(a, "from"))
			take_from(w, a);
		else if (take(a, "dev"))
			w->live.device = take_dev(a);
		else if (take(a, "port"))
			w->live.port = take_u32(a, "a port", 1, FABRIC_PORTS);
		else if (take(a, "sl"))
			w->sl = take_sl(w, a);
		else if (take(a, "partitions"))
			partitions = take_word(a, "FILE");
		else if (take(a, "require"))
			take_requirement(&w->wants, a);
		else if (take(a, "dot"))
			w->dot = take_word(a, "FILE");
		else if (take(a, "save"))
			w->save = take_word(a, "FILE");
		else if (take(a, "json"))
			out_json = true;
		else
			take_end(a);
	}
	if (!partitions) {
		if (w->wants.isolation != ISOLATION_NONE)
			usage_error(a, "who is in which partition? name OpenSM's \"partitions FILE\"");
		return;
	}
	w->partitions = partitions_read(partitions, message);
	if (!w->partitions) {
		fprintf(stderr, "repath: %s\n", message);
		exit(EXIT_NO_DOOR);
	}
	w->wants.partitions = w->partitions;
}

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
	printf("\npaths by link between switches: least %lu, mean %.1f, most %lu; %u in use, %u not\n",
	       c->least, c->mean, c->most, c->used, c->unused);
	printf("lanes in use:");
	for (unsigned int vl = 0; vl < FABRIC_LANES; vl++)
		if (c->lanes >> vl & 1)
			printf(" %u", vl);
	printf("; credit loops: %u\n", c->ncycles);
	if (c->shared_links || c->shared_lanes)
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

/* A file that the user asked for; what can not be written is told. */
static int write_file(const char *path, const struct check *c,
		      void (*write)(const struct check *c, FILE *to))
{
	FILE *to = fopen(path, "we");

	if (to) {
		write(c, to);
		if (!ferror(to) && !fclose(to))
			return 0;
	}
	perror(path);
	return EXIT_NO_DOOR;
}

static void save(const struct check *c, FILE *to)
{
	write_state(c->f, to);
}

/* From files, or from the subnet itself. NULL when the reason has been told. */
static struct fabric *read_as_told(const struct words *w)
{
	struct fabric *f = fabric_new();
	char message[READ_MESSAGE];
	unsigned int unanswered = 0;
	bool done;

	f->default_sl = w->sl;
	done = w->nfrom ? read_fabric(f, w->from, w->nfrom, message) :
			  live_read(f, &w->live, &unanswered, message);
	if (done && unanswered)
		fprintf(stderr, "repath: %u questions were not answered: what is told of those nodes"
			" and paths is not the whole\n", unanswered);
	if (done)
		return f;
	fprintf(stderr, "repath: %s\n", message);
	fabric_free(f);
	return NULL;
}

static int check(struct args *a)
{
	struct words w = { .live.sls = true };
	struct fabric *f;
	struct check c;
	int status = 0;

	take_words(&w, a);
	f = read_as_told(&w);
	if (!f) {
		partitions_free(w.partitions);
		return EXIT_NO_DOOR;
	}
	check_run(&c, f, &w.wants);
	if (out_json)
		print_json(&c);
	else
		print_text(&c);
	if (w.dot)
		status = write_file(w.dot, &c, draw_dot);
	if (w.save && !status)
		status = write_file(w.save, &c, save);
	if (!status && check_failed(&c))
		status = EXIT_FAILED;
	check_free(&c);
	fabric_free(f);
	partitions_free(w.partitions);
	return status;
}

int cmd_fabric(struct door *door, struct args *a)
{
	(void)door;
	if (!take(a, "check"))
		usage_error(a, a->argc ? "\"%s\" is not understood" : "%s", a->argc ? a->argv[0] :
			    "check is missing");
	if (asks_help(a)) {
		fputs(check_help, stdout);
		return 0;
	}
	return check(a);
}
