// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One subnet for each thing that can be wrong, small enough to be judged by hand. */
#include "written.h"

static struct check c;
static struct fabric *f;

static void judge(const char *text, const struct check_wants *wants)
{
	static const struct check_wants none;
	char message[READ_MESSAGE] = "";

	f = fabric_of(text, message);
	if (!f)
		fprintf(stderr, "%s\n", message);
	CHECK(f);
	check_run(&c, f, wants ? wants : &none);
}

static void done(void)
{
	check_free(&c);
	fabric_free(f);
}

static bool says(const char *kind, const char *what)
{
	const struct fault *fault = fault_of(&c, kind);

	if (fault && !strstr(fault->what, what))
		fprintf(stderr, "%s: %s\n", kind, fault->what);
	return fault && strstr(fault->what, what);
}

/*
 * A ring of three switches, a host at each: switch N has host N at port 3, port 1 goes on to
 * the next switch's port 2. LIDs: hosts 1 2 3, switches 11 12 13.
 */
#define RING_NODES \
	"repath fabric 1\n" \
	"switch a1 3 S1\nswitch a2 3 S2\nswitch a3 3 S3\nhost b1 1 H1\nhost b2 1 H2\nhost b3 1 H3\n" \
	"lid a1 0 11 0 a1\nlid a2 0 12 0 a2\nlid a3 0 13 0 a3\n" \
	"lid b1 1 1 0 c1\nlid b2 1 2 0 c2\nlid b3 1 3 0 c3\n" \
	"cable a1 1 a2 2 40\ncable a2 1 a3 2 40\ncable a3 1 a1 2 40\n" \
	"cable a1 3 b1 1\ncable a2 3 b2 1\ncable a3 3 b3 1\n"
#define OWN_LIDS \
	"table a1 11:0 12:1 13:2\ntable a2 11:2 12:0 13:1\ntable a3 11:1 12:2 13:0\n"
/* The shortest way for everybody. */
#define SHORT \
	"table a1 1:3 2:1 3:2\ntable a2 1:2 2:3 3:1\ntable a3 1:1 2:2 3:3\n"
/* Everybody in the same direction: a cycle. */
#define ROUND \
	"table a1 1:3 2:1 3:1\ntable a2 1:1 2:3 3:1\ntable a3 1:1 2:1 3:3\n"

static void test_right(void)
{
	judge(RING_NODES OWN_LIDS SHORT, NULL);
	CHECK(!check_failed(&c));
	CHECK_EQ(c.faults, 0);
	CHECK_EQ(c.pairs, 6);
	CHECK_EQ(c.hosts, 3);
	CHECK_EQ(c.cables, 6);
	CHECK_EQ(c.hops[2], 6);
	CHECK_EQ(c.least, 1);
	CHECK_EQ(c.most, 1);
	CHECK_EQ(c.used, 6);
	CHECK_EQ(c.lanes, 1);
	done();
}

static void test_credit_loop(void)
{
	judge(RING_NODES OWN_LIDS ROUND, NULL);
	CHECK(check_failed(&c));
	CHECK_EQ(c.ncycles, 1);
	CHECK_EQ(c.cycles[0].length, 3);
	CHECK_EQ(c.cycles[0].knot, 3);
	CHECK(says("credit-loop", "S1 port 1 VL 0 waits for S2 port 1 VL 0 (path from H1 LID 1 to H3 LID 3, "
		   "SL 0), which waits for S3"));
	CHECK_EQ(c.longer, 3);
	CHECK_EQ(c.most_longer, 1);
	CHECK(!fault_of(&c, "longer")->wrong);
	done();
}

/* The same tables, and a path that goes all the way in a lane of its own. */
static void test_lanes_break_it(void)
{
	judge(RING_NODES OWN_LIDS ROUND "sl 3 1-1:1\n", NULL);
	CHECK_EQ(c.ncycles, 0);
	CHECK_EQ(c.lanes, 3);
	CHECK(fault_of(&c, "asymmetric") && !fault_of(&c, "asymmetric")->wrong);
	CHECK_EQ(c.asymmetric, 1);
	done();
	/* Its lane is the others' behind S2, by S2's SLtoVL table: a cycle again? Not with H1's
	 * first link in lane 1, which nothing waits for.
	 */
	judge(RING_NODES OWN_LIDS ROUND "sl 3 1-1:1\nlanes a2 * 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
	      NULL);
	CHECK_EQ(c.ncycles, 0);
	done();
	/* All switches put both SLs into one lane: the cycle is back. */
	judge(RING_NODES OWN_LIDS ROUND "sl 3 1-1:1\n"
	      "lanes a1 * 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	      "lanes a2 * 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	      "lanes a3 * 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", NULL);
	CHECK_EQ(c.ncycles, 1);
	done();
}

/* A lane that changes on the way: SL 0 from the host is VL 0, from another switch VL 1. */
static void test_lane_by_input(void)
{
	judge(RING_NODES OWN_LIDS ROUND
	      "lanes a1 2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
	      "lanes a2 2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
	      "lanes a3 2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", NULL);
	CHECK_EQ(c.ncycles, 0);
	CHECK_EQ(c.lanes, 3);
	done();
}

static void test_discards(void)
{
	judge(RING_NODES OWN_LIDS SHORT "sl 2 1-1:4\n"
	      "lanes a1 3 1 0 1 2 3 15 5 6 7 8 9 10 11 12 13 14 15\n", NULL);
	CHECK(check_failed(&c));
	CHECK(says("discard", "switch S1 drops what comes by port 3 and leaves by port 1 with SL 4"));
	CHECK_EQ(fault_of(&c, "discard")->count, 1);
	done();
	/* A host that drops it, and a switch that drops another. */
	judge(RING_NODES OWN_LIDS SHORT "sl 2 1-1:4 3-3:4\n"
	      "lanes a1 3 1 0 1 2 3 15 5 6 7 8 9 10 11 12 13 14 15\n"
	      "lanes b3 0 1 0 1 2 3 15 5 6 7 8 9 10 11 12 13 14 15\n", NULL);
	CHECK(says("discard", "hosts drop 1 paths that they would send: as H3 with SL 4"));
	CHECK_EQ(fault_of(&c, "discard")->count, 1);
	CHECK_EQ(c.flow.lost, 2);
	done();
	/* A lane that the link does not have. */
	judge("repath fabric 1\nswitch a1 2 S1\nhost b1 1 H1\nhost b2 1 H2\nlid b1 1 1 0\nlid b2 1 2 0\n"
	      "cable a1 1 b1 1 40 8\ncable a1 2 b2 1 40 2\ntable a1 1:1 2:2\nsl 2 1-1:2\n", NULL);
	CHECK(says("discard", "SL 2"));
	done();
}

static void test_unreachable(void)
{
	/* S2 does not know LID 1; hosts 2 and 3 (through S2) are cut off from it. */
	judge(RING_NODES OWN_LIDS "table a1 1:3 2:1 3:2\ntable a2 2:3 3:1\ntable a3 1:2 2:2 3:3\n",
	      NULL);
	CHECK_EQ(c.unreached, 2);
	CHECK(says("unreachable", "2 paths end at switch S2, whose table has no entry"));
	done();
	judge(RING_NODES OWN_LIDS "table a1 1:3 2:1 3:3\ntable a2 1:2 2:3 3:1\ntable a3 1:1 2:2 3:3\n",
	      NULL);
	CHECK(says("unreachable", "1 path ends at switch S1, whose table gives them to somebody else:"
		   " as from H1 (LID 1) to H3 (LID 3)"));
	done();
	/* Only the switches' own LIDs are not known. */
	judge(RING_NODES SHORT, NULL);
	CHECK_EQ(c.unreached, 0);
	CHECK(says("management", "6 do not arrive"));
	CHECK_EQ(c.management, 6);
	done();
}

static void test_loop(void)
{
	judge(RING_NODES OWN_LIDS "table a1 1:3 2:2 3:2\ntable a2 1:2 2:3 3:1\ntable a3 1:1 2:1 3:3\n",
	      NULL);
	CHECK_EQ(c.looping, 1);
	CHECK_EQ(c.unreached, 2);
	CHECK(says("loop", "packets for LID 2 (H2) go round: S1 port 2 -> S3 port 1 -> S1"));
	CHECK(says("unreachable", "come into a loop"));
	done();
}

static void test_requirements(void)
{
	const struct check_wants strict = { .minimal = true, .symmetric = true };

	judge(RING_NODES OWN_LIDS ROUND "sl 3 1-1:1\n", &strict);
	CHECK(fault_of(&c, "longer")->wrong);
	CHECK(fault_of(&c, "asymmetric")->wrong);
	CHECK(says("longer", "3 of 6 paths are longer than the shortest way, by 1 cables"));
	done();
}

/* LMC 1: two LIDs of H2, one each way round. */
static void test_lmc(void)
{
	judge("repath fabric 1\nswitch a1 3 S1\nswitch a2 3 S2\nhost b1 1 H1\nhost b2 1 H2\n"
	      "lid b1 1 2 1 c1\nlid b2 1 4 1 c2\ncable a1 1 a2 1\ncable a1 2 a2 2\ncable a1 3 b1 1\n"
	      "cable a2 3 b2 1\ntable a1 2:3 3:3 4:1 5:2\ntable a2 2:1 3:2 4:3 5:3\n", NULL);
	CHECK_EQ(c.pairs, 4);
	CHECK_EQ(c.unreached, 0);
	CHECK_EQ(c.used, 4);
	CHECK_EQ(c.most, 1);
	done();
}

/* Four hosts at two switches with two cables between them: two partitions. */
#define PAIR \
	"repath fabric 1\nswitch a1 4 S1\nswitch a2 4 S2\nhost b1 1 H1\nhost b2 1 H2\nhost b3 1 H3\n" \
	"host b4 1 H4\nlid b1 1 1 0 c1\nlid b2 1 2 0 c2\nlid b3 1 3 0 c3\nlid b4 1 4 0 c4\n" \
	"cable a1 1 a2 1\ncable a1 2 a2 2\ncable a1 3 b1 1\ncable a1 4 b2 1\ncable a2 3 b3 1\n" \
	"cable a2 4 b4 1\n"

static struct partitions *partitions_of(const char *text)
{
	char path[] = "/tmp/fabric-XXXXXX", message[READ_MESSAGE] = "";
	struct partitions *p;

	written(path, text, strlen(text));
	p = partitions_read(path, message);
	unlink(path);
	return p;
}

static void test_isolation(void)
{
	char message[READ_MESSAGE];
	static const char both[] = "Default=0x7fff, ipoib : ALL=limited, SELF=full ;\n"
		"red=0x1 : 0xc1=full, 0xc3=full ;\n# blue\nblue=0x8002, sl=1 :\n 0xc2=full,\n 0xc4 ;\n";
	static const char one_lane[] = PAIR "table a1 1:3 2:4 3:1 4:1\ntable a2 1:1 2:1 3:3 4:4\n";
	static const char lanes[] = PAIR "table a1 1:3 2:4 3:1 4:1\ntable a2 1:1 2:1 3:3 4:4\n"
		"sl 2 4-4:1\nsl 4 2-2:1\n";
	static const char links[] = PAIR "table a1 1:3 2:4 3:1 4:2\ntable a2 1:1 2:2 3:3 4:4\n";
	struct partitions *p = partitions_of(both);
	struct check_wants wants = { .partitions = p };

	CHECK(p);
	CHECK_EQ(p->n, 3);
	judge(one_lane, &wants);
	CHECK(!check_failed(&c));
	CHECK_EQ(c.shared_links, 2);
	CHECK_EQ(c.shared_lanes, 2);
	CHECK(says("shared", "S1 port 1 to S2 port 1 is shared: lane 0, partitions red, blue"));
	done();
	wants.isolation = ISOLATION_LANES;
	judge(one_lane, &wants);
	CHECK(check_failed(&c));
	done();
	judge(lanes, &wants);
	CHECK(!check_failed(&c));
	CHECK_EQ(c.shared_links, 2);
	CHECK_EQ(c.shared_lanes, 0);
	done();
	wants.isolation = ISOLATION_LINKS;
	judge(lanes, &wants);
	CHECK(check_failed(&c));
	done();
	judge(links, &wants);
	CHECK(!check_failed(&c));
	CHECK_EQ(c.shared_links, 0);
	done();
	partitions_free(p);
	/* Two limited members do not speak with each other. */
	p = partitions_of("red : 0xc1=full, 0xc3 ;\nblue : 0xc2, 0xc4=limited ;");
	wants.partitions = p;
	judge(one_lane, &wants);
	CHECK_EQ(c.shared_links, 0);
	done();
	partitions_free(p);
	/* As OpenSM takes it: a number is a P_Key, a name that was there before that partition, "both" full. */
	p = partitions_of("red, defmember=both : 0xc1, 0xc3, NONE ;\nblue, defmember=ful : 0xc2, 0xc4=b ;\n"
			  "red : 0xc2=limited ;\n0x7ffe : 0xc1=full ;\n0xfffe : 0xc3=full ;\n");
	CHECK(p);
	CHECK_EQ(p->n, 3);
	wants.partitions = p;
	judge(one_lane, &wants);
	CHECK_EQ(c.shared_links, 2);
	done();
	for (unsigned int i = 0; i < p->n; i++) {
		CHECK_EQ(p->partition[i].members, i ? 2 : 3);
		CHECK_EQ(p->partition[i].pkey, i == 2 ? 0x7ffe : 0x7ffd - i);
	}
	partitions_free(p);
	CHECK(!partitions_of("red : 0xc1=full, nonsense ;"));
	CHECK(!partitions_of("red : 0xc1=full"));
	CHECK(!partitions_of("red=0x8000 : 0xc1 ;"));
	CHECK(!partitions_of("red ;"));
	CHECK(!partitions_read("/tmp", message) && strstr(message, "/tmp: Is a directory"));
}

/* A ring of three that packets turn in, by the paths that there are only. */
static void test_no_path(void)
{
	static const char ring[] =
		"repath fabric 1\nswitch a1 3 S1\nswitch a2 3 S2\nswitch a3 3 S3\n"
		"host b1 1 H1\nhost b2 1 H2\nhost b3 1 H3\n"
		"lid b1 1 1 0 c1\nlid b2 1 2 0 c2\nlid b3 1 3 0 c3\n"
		"cable a1 1 b1 1\ncable a2 1 b2 1\ncable a3 1 b3 1\n"
		"cable a1 2 a2 3\ncable a2 2 a3 3\ncable a3 2 a1 3\n"
		"table a1 1:1 2:2 3:2\ntable a2 1:2 2:1 3:2\ntable a3 1:2 2:2 3:1\n";
	char some[1024];

	judge(ring, NULL);
	CHECK_EQ(c.ncycles, 1);
	done();
	snprintf(some, sizeof(some), "%ssl 1 2-3:none\nsl 2 1-1:0 3-3:none\nsl 3 1-1:0 2-2:none\n", ring);
	judge(some, NULL);
	CHECK_EQ(c.ncycles, 0);
	CHECK(!check_failed(&c));
	CHECK_EQ(c.flow.lost, 0);
	done();
	/* What was not answered when it was saved is told still. */
	snprintf(some, sizeof(some), "%ssl 1 2-3:none\nsl 2 1-1:0 3-3:none\nsl 3 1-1:0 2-2:none\nunanswered 7\n", ring);
	judge(some, NULL);
	CHECK(check_failed(&c));
	CHECK(says("unanswered", "7 questions"));
	done();
}

/* What is written is what was read. */
static void test_state(void)
{
	static const char text[] = RING_NODES OWN_LIDS ROUND "sl 3 1-1:1\nload a1 1 500 70\nunanswered 3\n"
		"lanes a1 2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n";
	char message[READ_MESSAGE], *first, *second;
	struct fabric *again;
	size_t n;
	FILE *to;

	judge(text, NULL);
	to = open_memstream(&first, &n);
	write_state(f, to);
	fclose(to);
	again = fabric_of(first, message);
	CHECK(again);
	to = open_memstream(&second, &n);
	write_state(again, to);
	fclose(to);
	CHECK(!strcmp(first, second));
	CHECK(strstr(first, "cable a1 1 a2 2 40 0\n"));
	CHECK(strstr(first, "lanes a1 2 1 1 1 1 1"));
	CHECK(strstr(first, "sl 3 1-1:1 2-13:0\n"));
	CHECK(strstr(first, "load a1 1 500 70\n") && strstr(first, "unanswered 3\n"));
	CHECK(strstr(first, "\nlid a1 0 ") && strstr(first, "\ntable a1 "));
	free(first);
	free(second);
	fabric_free(again);
	done();
}

static void compare(const char *before, const char *now, struct change *change)
{
	char message[READ_MESSAGE];
	struct fabric *a = fabric_of(before, message), *b = fabric_of(now, message);

	CHECK(a && b);
	change_find(change, a, b);
	fabric_free(a);
	fabric_free(b);
}

/* What is other is counted, under whatever number a node or an entry stands. */
static void test_change(void)
{
	struct change change;

	compare(RING_NODES OWN_LIDS SHORT, RING_NODES OWN_LIDS SHORT, &change);
	CHECK_EQ(change.entries + change.moved + change.cables_gone + change.cables_new, 0);
	CHECK_EQ(change.paths, 6);
	change_free(&change);
	/* Each host has one other that it now reaches the long way. */
	compare(RING_NODES OWN_LIDS SHORT, RING_NODES OWN_LIDS ROUND, &change);
	CHECK_EQ(change.entries, 3);
	CHECK_EQ(change.by_switch[0], 1);
	CHECK_EQ(change.moved, 3);
	change_free(&change);
	/* An entry far away moves those who come that way, too: H3 goes by S1, as before. */
	compare(RING_NODES OWN_LIDS "table a1 1:3 2:1 3:2\ntable a2 1:2 2:3 3:1\ntable a3 1:1 2:1 3:3\n",
		RING_NODES OWN_LIDS "table a1 1:3 2:2 3:2\ntable a2 1:2 2:3 3:1\ntable a3 1:1 2:2 3:3\n",
		&change);
	CHECK_EQ(change.entries, 2);
	CHECK_EQ(change.moved, 2);
	change_free(&change);
	/* A switch with its host has gone: two cables between switches, and the host's. */
	compare(RING_NODES OWN_LIDS SHORT,
		"repath fabric 1\nswitch a2 3 S2\nswitch a1 3 S1\nhost b2 1 H2\nhost b1 1 H1\n"
		"lid a1 0 11 0 a1\nlid a2 0 12 0 a2\nlid b1 1 1 0 c1\nlid b2 1 2 0 c2\n"
		"cable a1 1 a2 2 40\ncable a1 3 b1 1\ncable a2 3 b2 1\n"
		"table a1 1:3 2:1 11:0 12:1\ntable a2 1:2 2:3 11:2 12:0\n", &change);
	CHECK_EQ(change.nodes_gone, 2);
	CHECK_EQ(change.nodes_new, 0);
	CHECK_EQ(change.cables_gone, 3);
	CHECK_EQ(change.cables_new, 0);
	CHECK_EQ(change.paths, 2);
	CHECK_EQ(change.moved, 0);
	change_free(&change);
}

int main(void)
{
	test_right();
	test_credit_loop();
	test_lanes_break_it();
	test_lane_by_input();
	test_discards();
	test_unreachable();
	test_loop();
	test_requirements();
	test_lmc();
	test_isolation();
	test_no_path();
	test_state();
	test_change();
	return 0;
}
