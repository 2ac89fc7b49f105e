// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Topologies: ibsim's own examples, ibnetdiscover's dialect, generators, what must be refused. */
#include <string.h>

#include "check.h"
#include "net.h"

static void read_text(struct net *net, const char *text, int expected)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");

	net_init(net);
	CHECK_EQ(net_read_stream(net, file, "text"), expected);
	fclose(file);
}

static void check_links(const struct net *net, unsigned int expected)
{
	unsigned int ends = 0;

	for (uint32_t i = 0; i < net->n; i++)
		for (unsigned int p = 1; p <= net->nodes[i].nports; p++) {
			const struct net_port *port = &net->nodes[i].ports[p];

			if (port->peer == NET_NONE)
				continue;
			ends++;
			CHECK_EQ(net->nodes[port->peer].ports[port->peer_port].peer, i);
			CHECK_EQ(net->nodes[port->peer].ports[port->peer_port].peer_port, p);
		}
	CHECK_EQ(ends, 2 * expected);
}

/* Of the package ibsim-utils, which scripts/setup installs. */
static void test_ibsim_examples(void)
{
	static const struct { const char *name; unsigned int switches, hosts, links; } files[] = {
		{ "net", 2, 2, 4 }, { "net.1", 1, 2, 2 }, { "net.2sw2path", 2, 2, 4 },
		{ "net.2sw2path4hca", 2, 4, 6 }, { "net.2sw2path4hca2port", 2, 2, 6 },
	};

	for (unsigned int i = 0; i < sizeof(files) / sizeof(*files); i++) {
		unsigned int ends = 0;
		char path[128];
		struct net net;

		snprintf(path, sizeof(path), "/usr/share/doc/ibsim-utils/net-examples/%s",
			 files[i].name);
		net_init(&net);
		if (net_read(&net, path)) {
			fprintf(stderr, "%s: %s\n", path, net.error);
			exit(1);
		}
		CHECK_EQ(net_count(&net, NET_SWITCH), files[i].switches);
		CHECK_EQ(net_count(&net, NET_HCA), files[i].hosts);
		for (uint32_t n = 0; n < net.n; n++)
			for (unsigned int port = 1; port <= net.nodes[n].nports; port++)
				ends += net.nodes[n].ports[port].peer != NET_NONE;
		CHECK_EQ(ends, 2 * files[i].links);
		net_free(&net);
	}
}

static void test_ibnetdiscover(void)
{
	static const char text[] =
		"vendid=0x2c9\ndevid=0xb924\nsysimgguid=0xb8cffff00490b\n"
		"switchguid=0xb8cffff004908(b8cffff004908)\n"
		"Switch\t24 \"S-000b8cffff004908\"\t\t# \"sw one\" enhanced port 0 lid 3 lmc 0\n"
		"[1]\t\"H-0002c90200223ac8\"[2](2c90200223ac9) \t\t# \"host a\" lid 6 4xFDR\n"
		"[2]\t\"H-0002c90200223ac8\"[1](2c90200223aca) \t\t# \"host a\" lid 7 12xDDR\n"
		"\n"
		"caguid=0x2c90200223ac8\n"
		"Ca\t2 \"H-0002c90200223ac8\"\t\t# \"host a\"\n"
		"[2](2c90200223ac9) \t\"S-000b8cffff004908\"[1]\t\t# lid 6 lmc 0 \"sw one\" lid 3 4xFDR\n"
		"[1](2c90200223aca) \t\"S-000b8cffff004908\"[2]\t\t# lid 7 lmc 0 \"sw one\" lid 3 12xDDR\n";
	struct net net;
	uint32_t sw, host;

	read_text(&net, text, 0);
	sw = net_find(&net, "sw one");
	host = net_find(&net, "H-0002c90200223ac8");
	CHECK_EQ(net.n, 2);
	CHECK(sw != NET_NONE && host != NET_NONE);
	CHECK_EQ(net.nodes[sw].guid, 0xb8cffff004908ll);
	CHECK_EQ(net.nodes[host].guid, 0x2c90200223ac8ll);
	CHECK_EQ(net.nodes[sw].esp0, 1);
	CHECK_EQ(net.nodes[sw].device, 0xb924);
	CHECK_EQ(net.nodes[sw].ports[1].peer, host);
	CHECK_EQ(net.nodes[sw].ports[1].ext, 1);
	CHECK_EQ(net.nodes[host].ports[2].ext, 1);
	CHECK_EQ(net.nodes[host].ports[1].width, 8);
	CHECK_EQ(net.nodes[host].ports[1].speed, 2);
	check_links(&net, 2);
	net_free(&net);
}

/* What one end can not, the link can not; its length is that of either end. */
static void test_rates(void)
{
	static const char text[] =
		"Switch 3 \"s\"\n[1] \"a\"[1] w=8 s=7 e=15 l=12.5\n[2] \"b\"[1]\n[3] \"c\"[1] w=1\n\n"
		"Hca 1 \"a\"\n[1] \"s\"[1] w=31 s=2\n\nHca 1 \"b\"\n[1] \"s\"[2] s=1 l=0.5\n\n"
		"Hca 1 \"c\"\n[1] \"s\"[3] w=16\n";
	static const struct net_port expected[] = { { 0 },
		{ .width = 8, .speed = 2, .length = 1250 }, { .width = 2, .speed = 1, .length = 50 },
		{ .width = 1, .speed = 4 } };
	struct net net;

	read_text(&net, text, 0);
	for (unsigned int p = 1; p <= 3; p++)
		for (int end = 0; end < 2; end++) {
			const struct net_port *port = &net.nodes[end ? p : 0].ports[end ? 1 : p];

			CHECK_EQ(port->width, expected[p].width);
			CHECK_EQ(port->speed, expected[p].speed);
			CHECK_EQ(port->ext, 0);
			CHECK_EQ(port->length, expected[p].length);
		}
	net_free(&net);
	read_text(&net, "Switch 3 \"s\"\n[1] \"a\"[1] l=-3\n", -1);
	net_free(&net);
}

/* What ibsim reads besides: aliases of ports, with and without a prefix; bases of GUIDs; bare descriptions. */
static void test_ibsim_words(void)
{
	static const char text[] =
		"module=\"left\"\nswitchguid=0x1000\nsysimgguid=0x77\nvendid=0x2c9\n"
		"Switch 4 \"s\" # the first one lid 3 lmc 0\n[1] \"h\"[1] w = 1\n@[3] \"uplink\"\n"
		"# a remark\n@[4] \"spare\" w=8\n\n"
		"Hca 1 \"h\"\n\n"
		"module=\"right\"\nswitchguid+5\n"
		"Switch 4 \"s\"\n[1] \"left@uplink\"\n[2] \"@own\" s=1\n\n"
		"Switch 4 \"t\"\n@[4] \"own\"\n[1] \"left#s\"[4]\n\n"
		"do Unlink \"right#t\"[1]\npdebug=1\n";
	uint32_t left, right, third;
	struct net net;

	read_text(&net, text, 0);
	left = net_find(&net, "left#s");
	right = net_find(&net, "right#s");
	third = net_find(&net, "right#t");
	check_links(&net, 4);
	CHECK(!strcmp(net.nodes[left].desc, "the first one"));
	CHECK_EQ(net.nodes[left].sysimg, 0x77);
	CHECK_EQ(net.nodes[left].vendor, 0x2c9);
	CHECK_EQ(net.nodes[right].sysimg, 0);
	CHECK_EQ(net.nodes[right].vendor, 0);
	CHECK_EQ(net.nodes[right].guid, 0x1005);
	CHECK_EQ(net.nodes[left].ports[1].width, 1);
	CHECK_EQ(net.nodes[left].ports[3].peer, right);
	CHECK_EQ(net.nodes[left].ports[3].peer_port, 1);
	CHECK_EQ(net.nodes[left].ports[4].peer, third);
	CHECK_EQ(net.nodes[right].ports[2].peer, third);
	CHECK_EQ(net.nodes[right].ports[2].peer_port, 4);
	CHECK_EQ(net.nodes[right].ports[2].speed, 1);
	CHECK_EQ(net.ntodo, 1);
	CHECK(!strcmp(net.todo[0], " Unlink \"right#t\"[1]"));
	net_free(&net);
	read_text(&net, "Switch 4 \"s\"\n@[5] \"a\"\n", -1);
	net_free(&net);
	read_text(&net, "Switch 4 \"s\"\n@[1] \"a\"\n@[2] \"a\"\n", -1);
	CHECK(strstr(net.error, "text:3"));
	net_free(&net);
	read_text(&net, "@[1] \"a\"\n", -1);
	net_free(&net);
}

static void test_refused(void)
{
	struct net net;

	read_text(&net, "Switch 8 \"a\"\n\nSwitch 8 \"a\"\n", -1);
	CHECK(strstr(net.error, "text:3"));
	net_free(&net);
	read_text(&net, "Switch 8 \"a\"\n[9] \"b\"[1]\n", -1);
	CHECK(strstr(net.error, "text:2"));
	net_free(&net);
	read_text(&net, "Switch 8 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[1]\nHca 1 \"b\"\n", -1);
	CHECK(strstr(net.error, "plugged already"));
	net_free(&net);
	read_text(&net, "Switch 300 \"a\"\n", -1);
	net_free(&net);
	read_text(&net, "[1] \"a\"[1]\n", -1);
	net_free(&net);
	net_init(&net);
	CHECK_EQ(net_make(&net, "mesh:0x2"), -1);
	CHECK_EQ(net_make(&net, "tree:35,2"), -1);
	CHECK_EQ(net_make(&net, "xgft:2,3/1"), -1);
	CHECK_EQ(net_make(&net, "random:5,degree=x"), -1);
	CHECK_EQ(net_make(&net, "mesh:100000x100000"), -1);
	CHECK_EQ(net_make(&net, "mesh:2,vswitch=300"), -1);
	net_free(&net);
}

static void test_made(void)
{
	static const struct { const char *spec; unsigned int switches, hosts, links; } made[] = {
		{ "mesh:3x2", 6, 6, 7 + 6 }, { "mesh:4x4x4,hosts=2", 64, 128, 144 + 128 },
		{ "torus:4x4", 16, 16, 32 + 16 }, { "torus:2x5,hosts=0", 10, 0, 5 + 10 },
		{ "xgft:18,18/1,18", 36, 324, 324 + 324 },
		{ "tree:36,2", 54, 648, 648 + 648 }, { "tree:36,3", 1620, 11664, 3 * 11664 },
		{ "tree:4,3", 20, 16, 48 },
		/* A switch more and two hosts more for each host, each with a cable. */
		{ "mesh:2x2,vswitch=2", 4 + 4, 4 * 3, 4 + 4 + 4 * 3 },
	};
	struct net net, again;
	char *text;
	size_t size;
	FILE *file;

	for (unsigned int i = 0; i < sizeof(made) / sizeof(*made); i++) {
		net_init(&net);
		CHECK_EQ(net_make(&net, made[i].spec), 0);
		CHECK_EQ(net_count(&net, NET_SWITCH), made[i].switches);
		CHECK_EQ(net_count(&net, NET_HCA), made[i].hosts);
		check_links(&net, made[i].links);
		net_free(&net);
	}
	/* The same seed, the same net; written and read, too. Another seed, another net. */
	net_init(&net);
	CHECK_EQ(net_make(&net, "random:40,degree=5,hosts=2,seed=7,speed=2,length=30"), 0);
	file = open_memstream(&text, &size);
	net_write(&net, file);
	fclose(file);
	read_text(&again, text, 0);
	CHECK_EQ(again.n, net.n);
	for (uint32_t n = 0; n < net.n; n++) {
		CHECK_EQ(again.nodes[n].guid, net.nodes[n].guid);
		for (unsigned int p = 1; p <= net.nodes[n].nports; p++)
			CHECK(net.nodes[n].ports[p].peer == NET_NONE ||
			      !memcmp(&again.nodes[n].ports[p], &net.nodes[n].ports[p],
				      sizeof(*net.nodes[n].ports)));
	}
	free(text);
	net_free(&again);
	net_init(&again);
	CHECK_EQ(net_make(&again, "random:40,degree=5,hosts=2,seed=8,speed=2"), 0);
	unsigned int different = 0;

	for (uint32_t n = 0; n < net.n; n++)
		different += memcmp(again.nodes[n].ports + 1, net.nodes[n].ports + 1,
				    net.nodes[n].nports * sizeof(*net.nodes[n].ports)) != 0;
	CHECK(different > 10);
	net_free(&again);
	net_free(&net);
}

int main(void)
{
	test_ibsim_examples();
	test_ibnetdiscover();
	test_rates();
	test_ibsim_words();
	test_refused();
	test_made();
	return 0;
}
