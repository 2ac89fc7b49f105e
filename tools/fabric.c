// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath fabric: the routing of a whole InfiniBand subnet, checked and drawn. See repath-fabric(8). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "fabric/check.h"
#include "fabric/draw.h"
#include "fabric/live.h"
#include "fabric/partition.h"
#include "fabric/read.h"
#include "fabric_print.h"
#include "out.h"

#define PATHS	64

struct words {
	const char *from[PATHS];
	size_t nfrom;
	struct live_wants live;
	const char *dot;
	const char *save;
	const char *html;
	const char *since;
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

static const char show_help[] =
	"usage: repath fabric show html FILE [since STATE] [from PATH]... [dev D] [port N] [sl N]\n"
	"           [partitions FILE] [save FILE]\n"
	"  draws a subnet as one page for a browser: switches in levels if it is a tree, load of links\n"
	"  by counters (of a live subnet) and by paths, lanes, partitions, what is wrong, and with\n"
	"  \"since\" what has changed since a state that \"save\" wrote; counters are counted from then\n"
	"  on. The other words are those of \"repath fabric check help\"\n"
	"\n"
	"  status: 0 the page is written, 2 wrong use, 3 a file can not be read or written\n";

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

static void take_words(struct words *w, struct args *a, bool show)
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
		else if (!show && take(a, "require"))
			take_requirement(&w->wants, a);
		else if (!show && take(a, "dot"))
			w->dot = take_word(a, "FILE");
		else if (take(a, "save"))
			w->save = take_word(a, "FILE");
		else if (show && take(a, "html"))
			w->html = take_word(a, "FILE");
		else if (show && take(a, "since"))
			w->since = take_word(a, "STATE");
		else
			take_end(a);
	}
	/* What is saved shall serve to count from. */
	w->live.load |= w->save != NULL;
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
	fprintf(stderr, "repath: %s: %s\n", path, strerror(errno));
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
	bool done;

	f->default_sl = w->sl;
	done = w->nfrom ? read_fabric(f, w->from, w->nfrom, message) :
			  live_read(f, &w->live, message);
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

	take_words(&w, a, false);
	f = read_as_told(&w);
	if (!f) {
		partitions_free(w.partitions);
		return EXIT_NO_DOOR;
	}
	check_run(&c, f, &w.wants);
	fabric_print(&c);
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

/* An earlier state, for comparison. */
static struct fabric *read_earlier(const char *path)
{
	struct fabric *f = fabric_new();
	char message[READ_MESSAGE];

	if (read_fabric(f, &path, 1, message))
		return f;
	fprintf(stderr, "repath: %s\n", message);
	fabric_free(f);
	return NULL;
}

static int write_page(const struct words *w, const struct page *page)
{
	FILE *to = fopen(w->html, "we");

	if (to) {
		draw_page(page, to);
		if (!ferror(to) && !fclose(to))
			return w->save ? write_file(w->save, page->now, save) : 0;
	}
	fprintf(stderr, "repath: %s: %s\n", w->html, strerror(errno));
	return EXIT_NO_DOOR;
}

static int show_with(const struct words *w, const struct fabric *f, const struct fabric *earlier)
{
	struct check now, before;
	struct change change;
	struct page page = { .now = &now, .partitions = w->partitions };
	int status;

	check_run(&now, f, &w->wants);
	if (earlier) {
		check_run(&before, earlier, &w->wants);
		change_find(&change, earlier, f);
		page.before = &before;
		page.change = &change;
	}
	status = write_page(w, &page);
	check_free(&now);
	if (earlier) {
		check_free(&before);
		change_free(&change);
	}
	return status;
}

static int show(struct args *a)
{
	struct words w = { .live = { .sls = true, .load = true } };
	struct fabric *f = NULL, *earlier = NULL;
	int status = EXIT_NO_DOOR;

	take_words(&w, a, true);
	if (!w.html)
		usage_error(a, "where shall the page be written? \"html FILE\" is missing");
	if (w.since)
		earlier = read_earlier(w.since);
	if (earlier || !w.since)
		f = read_as_told(&w);
	if (f)
		status = show_with(&w, f, earlier);
	fabric_free(f);
	fabric_free(earlier);
	partitions_free(w.partitions);
	return status;
}

static int help(const char *text)
{
	fputs(text, stdout);
	return 0;
}

static bool wants_help(const struct args *a)
{
	return has_help_option(a) || asks_help(a);
}

int cmd_fabric(struct door *door, struct args *a)
{
	(void)door;
	if (take(a, "check"))
		return wants_help(a) ? help(check_help) : check(a);
	if (take(a, "show"))
		return wants_help(a) ? help(show_help) : show(a);
	if (a->argc)
		take_end(a);
	usage_error(a, "check or show is missing");
}
