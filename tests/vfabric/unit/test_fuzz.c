// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Nonsense by the hundred thousand: MADs, packets, topologies, console lines. Nothing may break. */
#include <string.h>

#include "check.h"
#include "console.h"
#include "ext.h"
#include "ext_packet.h"
#include "fault.h"
#include "manager.h"
#include "shared.h"
#include "sma.h"
#include "traffic.h"

#define MADS 300000
#define PACKETS 100000
#define TEXTS 3000
#define LINES 20000

static uint64_t rng = 12345;

static uint32_t any(uint32_t below)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (rng >> 33) % below;
}

static void fill(uint8_t *bytes, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		bytes[i] = any(4) ? 0 : any(256);
}

/* Mostly plausible, so that it comes far. */
static void make_mad(uint8_t *mad)
{
	static const uint8_t classes[] = { 1, 0x81, 4, 3, 7 };
	static const uint8_t methods[] = { 1, 2, 1, 2, 5, 7, 0x81, 6 };
	static const uint8_t attrs[] = { 0x10, 0x11, 0x12, 0x14, 0x15, 0x15, 0x16, 0x17, 0x18,
		0x19, 0x1b, 0x20, 0x1d, 0x01, 0x02 };

	fill(mad, 256);
	mad[0] = any(20) ? 1 : any(256);
	mad[1] = any(20) ? classes[any(sizeof(classes))] : any(256);
	mad[2] = any(20) ? 1 : any(256);
	mad[3] = any(20) ? methods[any(sizeof(methods))] : any(256);
	mad[6] = any(6) ? 0 : any(256);
	mad[7] = any(6) ? any(5) : any(256);
	put_be16(mad + 16, any(20) ? attrs[any(sizeof(attrs))] : any(65536));
	put_be32(mad + 20, any(2) ? any(5) : any(3) ? any(5) << 16 | any(300) : rng);
	put_be64(mad + 24, 0);
	if (any(10))
		put_be32(mad + 32, 0xffffffff);
	for (int i = 1; i < 6; i++)
		mad[128 + i] = any(20) ? 1 + any(5) : any(256);
}

static void fuzz_mads(struct fabric *f)
{
	uint64_t before = f->manager->smps;

	for (int i = 0; i < MADS; i++) {
		struct mad_address to = { any(100), any(15), any(3), any(3) };
		uint32_t port = any(f->nports);
		uint8_t mad[256];

		make_mad(mad);
		/* Nobody sends from within an HCA; some try. */
		while (is_shared(f, port) && any(10))
			port = any(f->nports);
		/* Port 0 of a host is no port; those of a switch do not send but by it. */
		if (!f->ports[port].is_switch && !f->ports[port].num)
			continue;
		if (i % 3)
			mad_send(f, port, &to, mad);
		else if (mad[1] == CLASS_SM_DR)
			smi_arrive(f, port, mad);
		else
			mad_arrive(f, port, &to, mad);
		if (i % 100 == 0)
			trap_resend(f, i);
	}
	CHECK(f->manager->smps > before + MADS / 8);
}

static void fuzz_packets(struct fabric *f)
{
	uint64_t hops = f->hops;

	CHECK_EQ(routes_minhop(f), 0);
	port_activate_all(f);
	for (int i = 0; i < PACKETS; i++) {
		uint8_t bytes[512];
		unsigned int n = any(4) ? 24 + any(60) * 4 : any(sizeof(bytes)), vl = any(8);
		uint32_t port = any(f->nports), packet;

		fill(bytes, n);
		if (n >= 8 && any(20)) {
			bytes[1] = any(256) << 4 | 2 | any(2);
			put_be16(bytes + 2, any(10) ? any(20) : any(65536));
			put_be16(bytes + 4, n / 4);
		}
		if (!f->ports[port].is_switch || !f->ports[port].up ||
		    !shared_send(f, port, vl, bytes, n))
			continue;
		ext_packet_mad(f, port, bytes, n);
		packet = ext_packet_from(f, bytes, n);
		if (packet == NONE)
			continue;
		if (queue_held(f, port * f->config.vls + vl) + 64 > f->capacity) {
			packet_put(f, packet);
			continue;
		}
		f->packets[packet].vl = vl;
		f->packets[packet].epoch = f->ports[port].epoch;
		/* As if the other end had sent it: it has the credits less. */
		f->lanes[f->ports[port].peer * f->config.vls + vl].credits -=
			packet_blocks(&f->packets[packet]);
		relay_arrive(f, port, packet);
		fabric_run(f, f->clock.now + 1000000);
	}
	CHECK(f->hops > hops + PACKETS / 20);
}

static void fuzz_texts(void)
{
	static const char base[] =
		"switchguid=0x1(1)\nSwitch 8 \"S1\" # \"d\" base port 0 lid 1 lmc 0\n"
		"[1] \"H1\"[1](2) w=3 s=7 # \"h\" lid 1 4xQDR\n[2] \"S1\"[3]\n\n"
		"Hca 2 \"H1\" # \"h\"\n[1](5) \"S1\"[1] # lid 2 lmc 0 \"d\" lid 1 4xSDR\n";
	int good = 0;

	for (int i = 0; i < TEXTS; i++) {
		char text[sizeof(base)];
		struct net net;
		FILE *file;

		memcpy(text, base, sizeof(base));
		for (uint32_t hits = any(6); hits; hits--)
			text[any(sizeof(base) - 1)] = " \"[]#=0129\nSH"[any(13)];
		file = fmemopen(text, sizeof(base) - 1, "r");
		net_init(&net);
		if (!net_read_stream(&net, file, "fuzz")) {
			struct fabric f;

			good++;
			CHECK_EQ(fabric_init(&f, &net, NULL), 0);
			CHECK_EQ(routes_minhop(&f), 0);
			fabric_free(&f);
		}
		fclose(file);
		net_free(&net);
	}
	CHECK(good > TEXTS / 20 && good < TEXTS);
}

static void fuzz_lines(struct fabric *f)
{
	static const char *const lines[] = {
		"Unlink \"S1\"[2]", "ReLink \"S1\"[2]", "Clear \"S2\"[1]", "ReLink \"S2\"",
		"Link \"S1\"[1] \"S2\"[2]", "Down \"S3\"", "Up \"S3\"", "Error \"S1\"[2] 5",
		"Fault \"S1\"[2] loss=0.1 delay=100 jitter=5 slow=200", "Dump \"S1\"", "Route 1 5",
		"PerformanceSet \"S1\"[1] PortCounters.PortXmitData=5", "Baselid \"H1\"[1] 9 0",
		"Trap \"S1\"[1] 128", "Flow \"H1\" \"H2\" sl=1 rate=0.5 window=4 stop=50",
		"Uniform rate=0.1 spread=2 stop=20", "Hotspot \"H1\" 20 rate=0.1 stop=10",
		"Permutation 1 rate=0.1 stop=10", "Measure 10", "Advance 20", "Results json",
		"Results flows", "Results vls", "Deadlock", "Remove \"S1\"[2] 0", "Time", "Stop",
		"At 5 Unlink \"S2\"[2]", "Attached", "Help", "Tables minhop",
	};
	const unsigned int n = sizeof(lines) / sizeof(*lines);
	FILE *out = fopen("/dev/null", "w");
	int good = 0;

	for (int i = 0; i < LINES; i++) {
		char line[128];
		size_t length;

		snprintf(line, sizeof(line), "%s", lines[any(n)]);
		length = strlen(line);
		if (any(3) == 0)
			line[any(length)] = " \"[]=0129S-\n"[any(12)];
		/* Sources pile up: once in a while all of them go. */
		if (i % 500 == 0) {
			fabric_run(f, f->clock.now + 1000000000);
			f->config.seed++;
		}
		if (f->traffic && f->traffic->nflows > 300 && strchr("FUHP", *line))
			continue;
		if (strstr(line, "Advance"))
			snprintf(line, sizeof(line), "Advance %u", 1 + any(30));
		/* Results of two words and more go to a file of the second's name: no names by chance. */
		if (!strncmp(line, "Results", 7) && strpbrk(line + 8, " \t\r\n"))
			continue;
		good += console_line(f, line, out) == 0;
	}
	fclose(out);
	CHECK(good > LINES / 10);
}

static void start(struct fabric *f, const struct net *net, struct manager *manager)
{
	struct fabric_config config = { .seed = 1 };

	*manager = (struct manager){ .ctl = -1, .epoll = -1 };
	CHECK_EQ(fabric_init(f, net, &config), 0);
	CHECK_EQ(sma_init(f), 0);
	f->manager = manager;
	f->deliver = ext_deliver;
}

static void end(struct fabric *f)
{
	free(f->manager->traps);
	f->manager = NULL;
	fault_forget(f);
	sma_free(f);
	fabric_free(f);
}

static void fuzz(const char *spec)
{
	struct manager manager;
	struct fabric f;
	struct net net;

	net_init(&net);
	CHECK_EQ(net_make(&net, spec), 0);
	start(&f, &net, &manager);
	fuzz_mads(&f);
	end(&f);
	start(&f, &net, &manager);
	fuzz_packets(&f);
	fuzz_lines(&f);
	end(&f);
	net_free(&net);
}

int main(void)
{
	fuzz("random:6,degree=4,hosts=1,seed=3");
	fuzz("random:4,degree=3,hosts=1,seed=3,shared=2");
	fuzz_texts();
	return 0;
}
