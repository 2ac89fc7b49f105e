/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What goes wrong on a wire, on command. */
#ifndef VF_FAULT_H
#define VF_FAULT_H

#include "fabric.h"

/* Marks in packet.kind of what happened on the wire; the receiver acts on them. */
#define FAULT_CORRUPT 0x40
#define FAULT_LOST 0x80
#define FAULT_MARKS 0xc0

#define FAULT_OF_HCA (-2)

/**
 * fault_set() - let a direction of a cable go wrong
 * @port: the end that sends
 * @word: loss, corrupt, duplicate, reorder (probabilities 0..1), delay, jitter, window (ns),
 *	slow (percent of the time a byte takes; 100 is normal)
 *	drain (of a host: the same for taking it out of its buffer; without, it takes all at once)
 *	mute (an attribute of SMPs that the agent of that port obeys and does not answer; 0: none)
 * Return: 0, -1 if there is no such word or the value is out of range, or FAULT_OF_HCA: a real HCA is
 * in the place of that host, which is never slow or drained.
 */
int fault_set(struct fabric *f, uint32_t port, const char *word, double value);
void fault_clear(struct fabric *f, uint32_t port);
/**
 * fault_on_wire() - a packet leaves by a port with faults: when does it arrive, and how
 * @room: blocks that the other end has for a second one
 * @when: it would arrive
 * Return: a second one, that arrives at the same time and has to be counted as the first; or NONE.
 */
uint32_t fault_on_wire(struct fabric *f, uint32_t port, uint32_t packet, uint32_t room,
		       uint64_t *when);
/* Does a management packet get lost here? */
int fault_loses_mad(struct fabric *f, uint32_t port);
/* Does the port's agent not answer that attribute? */
int fault_mutes(struct fabric *f, uint32_t port, uint16_t attribute);
/* Do others overtake it? Return: ms that it is late, of the wall clock as all management. */
unsigned int fault_delays_mad(struct fabric *f, uint32_t port);

int node_down(struct fabric *f, uint32_t node);		/* power off: all its links go down */
int node_up(struct fabric *f, uint32_t node);
int link_unplug(struct fabric *f, uint32_t port);
int link_replug(struct fabric *f, uint32_t port);
/* A new cable between ports that have none; a real HCA whose cable is pulled asks for its new place. */
int link_new(struct fabric *f, uint32_t a, uint32_t b);

/* Runs the console line at virtual time @when. Return: -1 if memory is out. */
int fault_schedule(struct fabric *f, uint64_t when, const char *line);
void fault_due(struct fabric *f, uint32_t number);
void fault_forget(struct fabric *f);

#endif
