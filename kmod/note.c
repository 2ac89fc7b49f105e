// SPDX-License-Identifier: GPL-2.0
/* Notes: from hooks, which may neither sleep nor fail, to process context. */
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "note.h"

static struct workqueue_struct *note_wq;
static struct repath_note *first_note, **next_note = &first_note;
/* The same for all notes of a kind. */
static void (*deliver_to[__REPATH_NOTE_OF_MAX])(struct repath_note *note, unsigned int what);
/* How many were queued, and have been delivered, in the same order. */
static u64 queued_count, delivered_count;
/* Protects the queue, these, and the fields of every note in it. Taken in probe handlers. */
static DEFINE_SPINLOCK(note_lock);
static DECLARE_WAIT_QUEUE_HEAD(delivered_wait);

static void note_work_fn(struct work_struct *work)
{
	struct repath_note *note;
	unsigned int what, delivered = 0;
	unsigned long flags;

	for (;;) {
		spin_lock_irqsave(&note_lock, flags);
		delivered_count += delivered;
		note = first_note;
		if (note) {
			first_note = note->next;
			if (!first_note)
				next_note = &first_note;
			what = note->what;
			note->what = 0;
		}
		spin_unlock_irqrestore(&note_lock, flags);

		if (delivered && wq_has_sleeper(&delivered_wait))
			wake_up_all(&delivered_wait);
		if (!note)
			return;
		deliver_to[note->of](note, what);
		delivered = 1;
	}
}

static DECLARE_WORK(note_work, note_work_fn);

/**
 * repath_note_setup - initialise the note inside an object
 * @note: the note
 * @of: what the object is
 * @deliver: always the same for @of. Told @note and what has happened, in process context, one note at a
 *	time, in the order of posting; drops the reference that posting has taken
 */
void repath_note_setup(struct repath_note *note, enum repath_note_of of,
		       void (*deliver)(struct repath_note *note, unsigned int what))
{
	WRITE_ONCE(deliver_to[of], deliver);
	note->what = 0;
	note->of = of;
}

/**
 * repath_note_post - something has happened to an object
 * @note: its note
 * @what: REPATH_NOTE_*
 *
 * The caller takes a reference of the object before, and drops it again if the answer is false;
 * else the delivery drops it.
 *
 * Context: any.
 * Return: false if the note was queued already, @what was added to it.
 */
bool repath_note_post(struct repath_note *note, unsigned int what)
{
	unsigned long flags;
	bool queued;

	spin_lock_irqsave(&note_lock, flags);
	queued = !note->what;
	note->what |= what;
	if (queued) {
		queued_count++;
		note->next = NULL;
		*next_note = note;
		next_note = &note->next;
	}
	spin_unlock_irqrestore(&note_lock, flags);

	if (queued)
		queue_work(note_wq, &note_work);
	return queued;
}

static bool are_delivered(u64 count)
{
	unsigned long flags;
	bool are;

	spin_lock_irqsave(&note_lock, flags);
	are = delivered_count >= count;
	spin_unlock_irqrestore(&note_lock, flags);
	return are;
}

/**
 * repath_note_flush - wait until everything that was posted before has been delivered
 *
 * What is posted meanwhile, by whoever makes queue pairs without end, is not waited for.
 *
 * Context: process; not from a delivery.
 */
void repath_note_flush(void)
{
	unsigned long flags;
	u64 count;

	spin_lock_irqsave(&note_lock, flags);
	count = queued_count;
	spin_unlock_irqrestore(&note_lock, flags);
	wait_event(delivered_wait, are_delivered(count));
}

/**
 * repath_note_defer - run work after the notes that were posted before
 * @work: for what may sleep and must be done before the module goes
 *
 * Context: any.
 */
void repath_note_defer(struct work_struct *work)
{
	queue_work(note_wq, work);
}

int repath_note_init(void)
{
	note_wq = alloc_ordered_workqueue("ib_repath", 0);
	return note_wq ? 0 : -ENOMEM;
}

void repath_note_exit(void)
{
	destroy_workqueue(note_wq);
}
