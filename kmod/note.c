// SPDX-License-Identifier: GPL-2.0
/* Notes: from hooks, which may neither sleep nor fail, to process context. */
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "note.h"

static struct workqueue_struct *note_wq;
static LIST_HEAD(note_queue);
/* Protects note_queue and the fields of every note in it. Taken in probe handlers. */
static DEFINE_SPINLOCK(note_lock);

static void note_work_fn(struct work_struct *work)
{
	struct repath_note *note;
	unsigned long flags;
	unsigned int what;

	for (;;) {
		spin_lock_irqsave(&note_lock, flags);
		note = list_first_entry_or_null(&note_queue, struct repath_note, node);
		if (!note) {
			spin_unlock_irqrestore(&note_lock, flags);
			return;
		}
		list_del_init(&note->node);
		what = note->what;
		note->what = 0;
		spin_unlock_irqrestore(&note_lock, flags);

		note->deliver(note, what);
	}
}

static DECLARE_WORK(note_work, note_work_fn);

/**
 * repath_note_setup - initialise the note inside an object
 * @note: the note
 * @deliver: told @note and what has happened; drops the reference that posting has taken
 */
void repath_note_setup(struct repath_note *note,
		       void (*deliver)(struct repath_note *note, unsigned int what))
{
	INIT_LIST_HEAD(&note->node);
	note->what = 0;
	note->deliver = deliver;
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
	note->what |= what;
	queued = list_empty(&note->node);
	if (queued)
		list_add_tail(&note->node, &note_queue);
	spin_unlock_irqrestore(&note_lock, flags);

	if (queued)
		queue_work(note_wq, &note_work);
	return queued;
}

/**
 * repath_note_flush - wait until everything that was posted before has been delivered
 *
 * Context: process; not from a delivery.
 */
void repath_note_flush(void)
{
	flush_work(&note_work);
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
