/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Endpoint hot spots and who contributes to them, out of two counters of the ports that have hosts:
 * dFtree's equations 1 to 3 and algorithm 1. Nothing in here knows OpenSM, or waits, or locks.
 *
 *	host A ---[ switch ]--- ... ---[ switch ]--- host H
 *	     ^ waits, and sends           ^ waits: H is a hot spot
 *	       little: A contributes
 *
 * Contributors are told to use the slow lane for what they send to H, and the fast lane again when
 * H is no hot spot any more.
 */
#ifndef SM_HOTSPOT_H
#define SM_HOTSPOT_H

#include <stdbool.h>
#include <stdint.h>

struct hotspot_rules {
	uint64_t wait_per_s;		/* ticks of XmitWait a second, above which a port is congested */
	unsigned int used_percent;	/* of a link; a congested host that sends less contributes */
	unsigned int onset;		/* sweeps in a row above wait_per_s that make a hot spot */
	unsigned int calm;		/* sweeps in a row below calm_percent of it that end one */
	unsigned int calm_percent;
};

/* A cable between a switch and a host. */
struct hotspot_link {
	uint64_t switch_guid, host_guid;	/* of the nodes */
	uint8_t switch_port, host_port;
	uint16_t lid;				/* of the host's port */
	uint64_t bytes_per_s;			/* what the link carries */
};

enum hotspot_lane { HOTSPOT_SLOW, HOTSPOT_FAST };

/*
 * The host at @to is to use that lane for what it sends to the host at @hot. Return: whether it is
 * somebody who can be told; of the slow lane the others are not told again when it ends, but tried
 * again in the next sweep.
 */
typedef bool (*hotspot_tell)(void *context, enum hotspot_lane lane, uint16_t hot, uint16_t to);

struct hotspot_counts {
	unsigned int links, hot, contributors;	/* now; a host counts once for each hot spot */
	uint64_t sweeps, begun, ended, slow, fast;
};

struct hotspot;

/* Return: NULL without memory. */
struct hotspot *hotspot_new(const struct hotspot_rules *rules);
void hotspot_free(struct hotspot *h);

/**
 * hotspot_links() - the cables are these now
 *
 * What is known of those that were there before stays. A hot spot that is gone, or has another LID
 * now, is ended and its contributors are told so.
 *
 * Return: 0, or -1 without memory; then everything is as before.
 */
int hotspot_links(struct hotspot *h, const struct hotspot_link *links, unsigned int n,
		  hotspot_tell tell, void *context);

/*
 * What a port's counters have grown by since they were read before. @now in ns. The first reading of
 * a port only says when; ports at no known cable are ignored.
 */
void hotspot_waited(struct hotspot *h, uint64_t guid, uint8_t port, uint64_t ticks, uint64_t now);
void hotspot_sent(struct hotspot *h, uint64_t guid, uint8_t port, uint64_t words, uint64_t now);

/* Every port has been read once more: algorithm 1. A port that has not been read stays as it is. */
void hotspot_sweep(struct hotspot *h, hotspot_tell tell, void *context);

const struct hotspot_counts *hotspot_counts(const struct hotspot *h);

#endif
