/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packet sequence numbers. On the wire they have 24 bits; rdmavt counts them in u32 that run on,
 * so they are compared modulo 2^24, and a number from the wire is extended next to a known one.
 */
#ifndef VHCA_PSN_H
#define VHCA_PSN_H

#include <linux/types.h>

#define VHCA_PSN_MASK 0xffffffu

/* a - b modulo 2^24, as a number in [-2^23, 2^23). */
static inline s32 vhca_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/* The running number nearest to @base whose low 24 bits are those of @wire. */
static inline u32 vhca_psn_near(u32 base, u32 wire)
{
	return base + vhca_psn_diff(wire, base);
}

#endif
