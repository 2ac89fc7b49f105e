/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A subnet with a host of two ports, and SMPs to its agents. */
#ifndef UNIT_SMP_H
#define UNIT_SMP_H

#include <stdbool.h>
#include <string.h>

#include "made.h"
#include "manager.h"

#define SM_LID 7
#define NONE_CAME (-1)

enum { SWITCH_INFO = 0x12, PORT_INFO = 0x15, PKEYS = 0x16, VLARB = 0x18 };

/* One switch, a host with two ports and one with one. */
static const char two_ports[] = "Switch 4 \"S1\"\n[1] \"H1\"[1]\n[2] \"H1\"[2]\n[3] \"H2\"[1]\n\n"
	"Hca 2 \"H1\"\n\nHca 1 \"H2\"\n";

static struct net net;
static struct fabric f;
static struct manager manager;
static uint8_t mad[256];
static uint8_t *const data = mad + 64;

static inline void up(void)
{
	FILE *file = fmemopen((void *)two_ports, sizeof(two_ports) - 1, "r");

	net_init(&net);
	CHECK_EQ(net_read_stream(&net, file, "two ports"), 0);
	fclose(file);
	made_of(&f, &net, 8);
	manager = (struct manager){ .ctl = -1, .epoll = -1, .now_ms = 5000 };
	f.manager = &manager;
}

static inline void down(void)
{
	free(manager.traps);
	f.manager = NULL;
	made_down(&f, &net);
}

static inline uint32_t at(const char *id, unsigned int num)
{
	return fabric_port(&f, net_find(&net, id), num);
}

static inline void smp(unsigned int method, unsigned int attr, uint32_t mod, uint64_t key)
{
	memset(mad, 0, sizeof(mad));
	mad[0] = 1;
	mad[1] = CLASS_SM;
	mad[2] = 1;
	mad[3] = method;
	put_be16(mad + 16, attr);
	put_be32(mad + 20, mod);
	put_be64(mad + 24, key);
}

/* The status, if it is answered. */
static inline int ask(uint32_t port)
{
	int reply;
	unsigned int status = sma_process(&f, port, SM_LID, mad, &reply);

	return reply ? (int)status : NONE_CAME;
}

static inline int get(uint32_t port, unsigned int attr, uint32_t mod, uint64_t key)
{
	smp(SMP_GET, attr, mod, key);
	return ask(port);
}

/* A Set of a port's PortInfo as it is, for the test to alter. */
static inline void set_port_info(uint32_t port, uint64_t key)
{
	smp(SMP_SET, PORT_INFO, f.ports[port].num, key);
	sma_port_info_now(&f, port, f.ports[port].num, data);
	data[32] &= 0xf0;
	data[33] &= 0x0f;
}

#endif
