/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The subnet management agents of switches and hosts: what an SM reads and sets. */
#ifndef VF_SMA_H
#define VF_SMA_H

#include "fabric.h"

#define SMP_GET 0x01
#define SMP_SET 0x02
#define SMP_RESP 0x81
#define SMP_TRAP 0x05
#define SMP_REPRESS 0x07
#define CLASS_SM 0x01
#define CLASS_SM_DR 0x81
#define CLASS_SA 0x03
#define CLASS_PERF 0x04

/* Statuses of the MAD header (IBA 1.2.1 vol 1, 13.4.7). */
#define MAD_BAD_VERSION (1 << 2)
#define MAD_BAD_METHOD (2 << 2)
#define MAD_BAD_ATTR (3 << 2)
#define MAD_BAD_VALUE (7 << 2)

struct port_sma {
	uint8_t info[64];	/* PortInfo as set; what the model knows is filled in on Get */
	uint16_t *pkeys;	/* big endian */
	uint8_t is_sm;
	uint64_t lease_ms;	/* when the M_Key's protection ends unless it is seen; 0: no lease runs */
	uint64_t guids[8];	/* GUIDInfo block 0, big endian; 0 is the port's */
};

struct sma {
	uint8_t switch_info[64];
	uint8_t port_change;
	uint8_t desc[64];
};

int sma_init(struct fabric *f);
void sma_free(struct fabric *f);
int sma_has_pkey(const struct fabric *f, uint32_t port, uint16_t pkey);
/* Another NodeDescription, as if somebody had changed it at the node: the SM is told. */
void sma_describe(struct fabric *f, uint32_t node, const char *text);
/* Another LinkWidthEnabled and LinkSpeedEnabled, 0: as it is. Return: -1 for what the port does not support. */
int sma_enable(struct fabric *f, uint32_t port, unsigned int width, unsigned int speed);
void sma_state_changed(struct fabric *f, uint32_t port, enum port_state old);

/**
 * sma_process() - answer an SMP in place
 * @port: the one it came in by (0 of a switch: LID routed or from the switch itself)
 * @slid: who sent it, 0xffff by a directed route
 * Return: the MAD status. *reply is 0 if there is nothing to send (TrapRepress and the like).
 */
unsigned int sma_process(struct fabric *f, uint32_t port, uint16_t slid, uint8_t *mad, int *reply);
/* As who is at the node itself reads it: without an M_Key and unseen by its lease. */
unsigned int sma_read(struct fabric *f, uint32_t port, unsigned int attr, uint32_t mod, uint8_t *data);
/* The attributes apart: sma_port.c has PortInfo, sma_table.c the tables. */
unsigned int sma_port_info(struct fabric *f, uint32_t node, unsigned int num, unsigned int local,
			   int set, uint8_t *data);
unsigned int sma_lft(struct fabric *f, uint32_t node, uint32_t mod, int set, uint8_t *data);
unsigned int sma_mft(struct fabric *f, uint32_t node, uint32_t mod, int set, uint8_t *data);
unsigned int sma_sl2vl(struct fabric *f, uint32_t node, unsigned int local, uint32_t mod, int set,
		       uint8_t *data);
unsigned int sma_vlarb(struct fabric *f, uint32_t node, unsigned int local, uint32_t mod, int set,
		       uint8_t *data);
unsigned int sma_pkeys(struct fabric *f, uint32_t node, unsigned int local, uint32_t mod, int set,
		       uint8_t *data);
unsigned int sma_guid_info(struct fabric *f, uint32_t node, unsigned int local, uint32_t mod,
			   int set, uint8_t *data);
void sma_port_info_now(struct fabric *f, uint32_t port, unsigned int local, uint8_t *data);
unsigned int sma_pkey_room(const struct fabric *f, uint32_t port);

/* pma.c: PortCounters, PortCountersExtended, ClassPortInfo */
unsigned int pma_process(struct fabric *f, uint32_t port, uint8_t *mad);
/* Sets a counter by its name in the console (PortCounters.SymbolErrorCounter ...). */
int pma_set(struct fabric *f, uint32_t port, const char *name, uint64_t value);

/* Big-endian fields. */
static inline uint16_t be16_at(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static inline uint32_t be32_at(const uint8_t *p)
{
	return (uint32_t)be16_at(p) << 16 | be16_at(p + 2);
}

static inline uint64_t be64_at(const uint8_t *p)
{
	return (uint64_t)be32_at(p) << 32 | be32_at(p + 4);
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
	put_be16(p, v >> 16);
	put_be16(p + 2, v);
}

static inline void put_be64(uint8_t *p, uint64_t v)
{
	put_be32(p, v >> 32);
	put_be32(p + 4, v);
}

#endif
