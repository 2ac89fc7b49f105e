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

static void test_ibsim_examples(void)
{
	static const struct { const char *name; unsigned int switches, hosts, links; } files[] = {
		{ "net", 2, 2, 4 }, { "net.2sw2path", 2, 2, 4 },
		{ "net.2sw2path4hca", 2, 4, 6 }, { "net.2sw2path4hca2port", 2, 2, 6 },
	};
	unsigned int read = 0;

	for (unsigned int i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char path[128];
		struct net net;

		snprintf(path, sizeof(path), "/usr/share/doc/ibsim-utils/net-examples/%s",
			 files[i].name);
		net_init(&net);
		if (net_read(&net, path)) {
			CHECK(strstr(net.error, "can not open"));
			net_free(&net);
			continue;
		}
		read++;
		CHECK_EQ(net_count(&net, NET_SWITCH), files[i].switches);
		CHECK_EQ(net_count(&net, NET_HCA), files[i].hosts);
		net_free(&net);
	}
	CHECK(read == 0 || read == 4);
}

static void test_ibnetdiscover(void)
{
	static const char text[] =
		"vendid=0x2c9\ndevid=0xb924\nsysimgguid=0xb8cffff00490b\n"
		"switchguid=0xb8cffff004908(b8cffff004908)\n"
		"Switch\t24 \"S-000b8cffff004908\"\t\t# \"sw one\" enhanced port 0 lid 3 lmc 0\n"
		"[1]\t\"H-0002c90200223ac8\"[2](2c90200223ac9) \t\t# \"host a\" lid 6 4xFDR\n"
		"\n"
		"caguid=0x2c90200223ac8\n"
		"Ca\t2 \"H-0002c90200223ac8\"\t\t# \"host a\"\n"
		"[2](2c90200223ac9) \t\"S-000b8cffff004908\"[1]\t\t# lid 6 lmc 0 \"sw one\" lid 3 12xDDR\n";
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
	CHECK_EQ(net.nodes[host].ports[2].width, 8);
	CHECK_EQ(net.nodes[host].ports[2].speed, 2);
	check_links(&net, 1);
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
	CHECK_EQ(net_make(&net, "random:40,degree=5,hosts=2,seed=7,speed=2"), 0);
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
	test_refused();
	test_made();
	return 0;
}
