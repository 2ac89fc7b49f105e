/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Notes: how a hook, which may neither sleep nor fail, tells process context what has happened.
 * A note is embedded in the object that it tells of, so posting one allocates nothing.
 */
#ifndef REPATH_NOTE_H
#define REPATH_NOTE_H

#include <linux/list.h>
#include <linux/types.h>

struct work_struct;

/* What has happened; several may come together, and are then told in this order. */
#define REPATH_NOTE_NEW		(1u << 0)
#define REPATH_NOTE_CHANGED	(1u << 1)
#define REPATH_NOTE_CONNECTED	(1u << 2) /* a queue pair reached RTR */
#define REPATH_NOTE_CTX_GONE	(1u << 3) /* a device has lost a user context */
#define REPATH_NOTE_GONE	(1u << 4)

/* What a note is embedded in. */
enum repath_note_of {
	REPATH_NOTE_OF_QP,
	REPATH_NOTE_OF_USER,
	REPATH_NOTE_OF_DEVICE,
	__REPATH_NOTE_OF_MAX
};

/**
 * struct repath_note - pending news of one object; small, since each queue pair has one
 * @next: the one posted after it; the queue's lock
 * @what: REPATH_NOTE_*, 0: not in the queue; the queue's lock
 * @of: enum repath_note_of
 */
struct repath_note {
	struct repath_note *next;
	u16 what;
	u8 of;
};

int repath_note_init(void);
void repath_note_exit(void);

void repath_note_setup(struct repath_note *note, enum repath_note_of of,
		       void (*deliver)(struct repath_note *note, unsigned int what));
bool repath_note_post(struct repath_note *note, unsigned int what);
void repath_note_flush(void);
void repath_note_defer(struct work_struct *work);

#endif /* REPATH_NOTE_H */
