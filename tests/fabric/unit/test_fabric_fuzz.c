// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Files that are damaged: bytes changed, lines cut, doubled, exchanged and mixed with another kind's.
 * Each is either refused with a message or read, and then judged. A fixed count, from a fixed seed.
 */
#include "written.h"

#define ROUNDS	400		/* of each kind */

static uint64_t state = 1;

static unsigned int dice(unsigned int n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % n;
}

static const char subnet[] =
	"{ CA-SM Ports:01 SystemGUID:00000000000000b1 NodeGUID:00000000000000b1 PortGUID:00000000000000c1"
	" VenID:000000 DevID:0000 Rev:000000A0 {H1} LID:0001 PN:01 } { SW Ports:03"
	" SystemGUID:00000000000000a1 NodeGUID:00000000000000a1 PortGUID:00000000000000a1"
	" VenID:00000000 DevID:0000 Rev:000000A0 {S {1}} LID:000B PN:03 } PHY=4x LOG=ACT SPD=10\n"
	"{ SW Ports:03 SystemGUID:00000000000000a1 NodeGUID:00000000000000a1 PortGUID:00000000000000a1"
	" VenID:000000 DevID:0000 Rev:000000A0 {S {1}} LID:000B PN:01 } { SW Ports:03"
	" SystemGUID:00000000000000a2 NodeGUID:00000000000000a2 PortGUID:00000000000000a2"
	" VenID:00000000 DevID:0000 Rev:000000A0 {S2} LID:000C PN:02 } PHY=4x LOG=ACT SPD=2.5\n"
	"{ SW Ports:03 SystemGUID:00000000000000a2 NodeGUID:00000000000000a2 PortGUID:00000000000000a2"
	" VenID:000000 DevID:0000 Rev:000000A0 {S2} LID:000C PN:03 } { CA Ports:01"
	" SystemGUID:00000000000000b2 NodeGUID:00000000000000b2 PortGUID:00000000000000c2"
	" VenID:00000000 DevID:0000 Rev:000000A0 {H2} LID:0002 PN:01 } PHY=4x LOG=ACT SPD=10\n";

static const char net[] =
	"#\n# Topology file: generated\n#\n\nvendid=0x0\nswitchguid=0xa2(a2)\n"
	"Switch\t3 \"S-00000000000000a2\"\t\t# \"S2\" base port 0 lid 12 lmc 0\n"
	"[2]\t\"S-00000000000000a1\"[1]\t\t# \"S1\" lid 11 4xQDR\n"
	"[3]\t\"H-00000000000000b2\"[1](c2) \t\t# \"H2\" lid 2 4xQDR\n\n"
	"Switch\t3 \"S-00000000000000a1\"\t\t# \"S1\" base port 0 lid 11 lmc 0\n"
	"[1]\t\"S-00000000000000a2\"[2]\t\t# \"S2\" lid 12 4xQDR\n"
	"[3]\t\"H-00000000000000b1\"[1](c1) \t\t# \"H1\" lid 1 4xQDR\n\n"
	"Ca\t1 \"H-00000000000000b2\"\t\t# \"H2\"\n"
	"[1](c2) \t\"S-00000000000000a2\"[3]\t\t# lid 2 lmc 0 \"S2\" lid 12 4xQDR\n\n"
	"Ca\t1 \"H-00000000000000b1\"\t\t# \"H1\"\n"
	"[1](c1) \t\"S-00000000000000a1\"[3]\t\t# lid 1 lmc 0 \"S1\" lid 11 4xQDR\n";

static const char tables[] =
	"Unicast lids [0-12] of switch Lid 11 guid 0x00000000000000a1 ('S1'):\n"
	"0x0001 003 # Channel Adapter portguid 0x00000000000000c1: 'H1'\n"
	"0x0002 001 # Channel Adapter portguid 0x00000000000000c2: 'H2'\n"
	"0x000b 000 # Switch portguid 0x00000000000000a1: 'S1'\n"
	"0x000c 001 # Switch portguid 0x00000000000000a2: 'S2'\n4 lids dumped\n"
	"Unicast lids [0x0-0xc] of switch DR path slid 0; dlid 0; 0,1 guid 0x00000000000000a2 (S2):\n"
	"  Lid  Out   Destination\n       Port     Info\n"
	"0x0001 002 : (Channel Adapter portguid 0x00000000000000c1: 'H1')\n"
	"0x0002 003 : (path #2 out of 2: portguid 0x00000000000000c2)\n"
	"0x000b 002 : (Switch portguid 0x00000000000000a1: 'S1')\n"
	"0x000c 000 : (Switch portguid 0x00000000000000a2: 'S2')\n4 valid lids dumped\n";

static const char routes[] =
	"dump_ucast_routes: Switch 0x00000000000000a1\nLID    : Port : Hops : Optimal\n"
	"0x0001 : 003  : 01   : yes\n0x0002 : 001  : 02   : yes\n0x000B : 000  : 00   : yes\n"
	"0x000C : UNREACHABLE\n"
	"dump_ucast_routes: Switch 0x00000000000000a2\nLID    : Port : Hops : Optimal\n"
	"0x0001 : 002  : 02   : yes\n0x0002 : 003  : 01   : yes\n0x000C : 000  : 00   : yes\n";

static const char lanes[] =
	"Switch 0x00000000000000a1, base LID 11, \"S1\"\n"
	"#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15\n#-----\n"
	"3   1   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  15\n"
	"1   3   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  15\n#-----\n\n"
	"Channel Adapter 0x00000000000000c1, base LID 1, \"H1\"\n"
	"0   0   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  7\n";

static const char paths[] = "# slid dlid sl\n1 2 1\n0x2 0x1 15\n";

static const char saved[] =
	"repath fabric 1\nswitch a1 3 S1\nswitch a2 3 S2\nhost b1 1 H1\nhost b2 1 H2\n"
	"lid a1 0 11 0 a1\nlid a2 0 12 0 a2\nlid b1 1 1 0 c1\nlid b2 1 2 0 c2\n"
	"cable a1 1 a2 2 40 8\ncable a1 3 b1 1 40\ncable a2 3 b2 1\n"
	"table a1 1:3 2:1 11:0 12:1\ntable a2 1:2 2:3 11:2 12:0\n"
	"lanes a1 * 1 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7\nlanes a2 2 3 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 15\n"
	"sl 2 1-1:3\nsl 1 2-2:4\nload a1 1 123456 7\n";

static const char members[] =
	"Default=0x7fff, ipoib : ALL=limited, SELF=full ;\n# some\n"
	"red=0x1, sl=1, defmember=full :\n\tmgid=ff12:401b::0707, sl=1\n\t0xc1, 0xc2=limited ;\n"
	"blue : 0xc1=full, 0xc2=both ; green=0x8003:0xc1;\n";

#define KINDS	7
static const char *const kinds[KINDS] = { subnet, net, tables, routes, lanes, paths, saved };

static char text[8192];

/* A piece of another kind, in the middle. */
static size_t mix(size_t n)
{
	const char *other = kinds[dice(KINDS)];
	size_t from = dice(strlen(other)), length = dice(60), at = dice(n + 1);

	if (length > strlen(other) - from)
		length = strlen(other) - from;
	if (n + length >= sizeof(text))
		return n;
	memmove(text + at + length, text + at, n - at);
	memcpy(text + at, other + from, length);
	return n + length;
}

static size_t cut(size_t n)
{
	size_t from = dice(n + 1), length = dice(80);

	if (length > n - from)
		length = n - from;
	memmove(text + from, text + from + length, n - from - length);
	return n - length;
}

static void poke(size_t n)
{
	static const char likely[] = "0123456789abcdefABCDEFx-:#{}[]()\"' \t\n\\;,=*";

	text[dice(n)] = dice(4) ? likely[dice(sizeof(likely) - 1)] : (char)dice(256);
}

static size_t damaged(const char *from)
{
	size_t n = strlen(from);

	memcpy(text, from, n);
	for (unsigned int i = 1 + dice(5); i--;) {
		switch (dice(4)) {
		case 0:
			n = mix(n);
			break;
		case 1:
			n = cut(n);
			break;
		default:
			if (n)
				poke(n);
		}
	}
	return n;
}

static unsigned int read_and_judge(const char *const *names, size_t n,
				   const struct partitions *partitions)
{
	struct check_wants wants = { .partitions = partitions };
	char message[READ_MESSAGE] = "";
	struct fabric *f = fabric_new();
	bool understood = read_fabric(f, names, n, message);
	struct check c;

	if (understood) {
		check_run(&c, f, &wants);
		check_free(&c);
	} else {
		CHECK(*message);
	}
	fabric_free(f);
	return understood;
}

/* One file damaged, the others as they were. */
static void fuzz(unsigned int kind)
{
	unsigned int understood = 0;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		char base[] = "/tmp/fabric-XXXXXX", hurt[] = "/tmp/fabric-XXXXXX";
		const char *names[] = { hurt, base };

		written(base, saved, strlen(saved));
		written(hurt, text, damaged(kinds[kind]));
		understood += read_and_judge(names, kinds[kind] == subnet || kinds[kind] == net ||
					     kinds[kind] == saved ? 1 : 2, NULL);
		unlink(base);
		unlink(hurt);
	}
	/* Not all is refused, and not all is taken. */
	CHECK(understood > ROUNDS / 50 && understood < ROUNDS);
}

static void fuzz_partitions(void)
{
	char base[] = "/tmp/fabric-XXXXXX", message[READ_MESSAGE];
	const char *names[] = { base };
	unsigned int understood = 0;

	written(base, saved, strlen(saved));
	for (unsigned int i = 0; i < ROUNDS; i++) {
		char hurt[] = "/tmp/fabric-XXXXXX";
		struct partitions *p;

		written(hurt, text, damaged(members));
		message[0] = 0;
		p = partitions_read(hurt, message);
		CHECK(p || *message);
		if (p)
			CHECK(read_and_judge(names, 1, p));
		understood += p != NULL;
		partitions_free(p);
		unlink(hurt);
	}
	unlink(base);
	CHECK(understood > ROUNDS / 50 && understood < ROUNDS);
}

/* As they are, all are understood and tell the same subnet. */
static void unhurt(void)
{
	static const char *const sets[][4] = { { subnet, tables, lanes, paths },
		{ net, tables, lanes, paths }, { net, routes, lanes, paths } };

	for (unsigned int set = 0; set < 3; set++) {
		char name[4][20];
		const char *names[4];
		char message[READ_MESSAGE] = "";
		struct fabric *f = fabric_new();
		struct check_wants wants = { };
		struct check c;

		for (unsigned int i = 0; i < 4; i++) {
			strcpy(name[i], "/tmp/fabric-XXXXXX");
			written(name[i], sets[set][i], strlen(sets[set][i]));
			names[3 - i] = name[i];
		}
		if (!read_fabric(f, names, 4, message))
			fprintf(stderr, "%s\n", message);
		CHECK_EQ(f->nodes, 4);
		CHECK_EQ(f->switches, 2);
		CHECK_EQ(fabric_sl(f, 2, 1), 15);
		CHECK(f->has_sl2vl && f->has_sl);
		CHECK_EQ(fabric_node(f, 0xa1)->port[1].gbps, set ? 40 : 10);
		check_run(&c, f, &wants);
		CHECK_EQ(c.pairs, 2);
		CHECK_EQ(c.unreached, 0);
		/* S2 to H1: H2's SLtoVL is not told of, SL 15 is no data lane. */
		CHECK_EQ(c.flow.lost, 1);
		CHECK(set == 2 || !c.management);
		check_free(&c);
		fabric_free(f);
		for (unsigned int i = 0; i < 4; i++)
			unlink(name[i]);
	}
}

int main(void)
{
	unhurt();
	for (unsigned int kind = 0; kind < KINDS; kind++)
		fuzz(kind);
	fuzz_partitions();
	return 0;
}
