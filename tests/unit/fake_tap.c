// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One fault of one type of message at one stage; see struct fake_tap. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_work.h"

#define LOSSES		3
#define OVERTAKEN_US	30000
#define NOBODY		4711	/* no process has this number */

static struct {
	struct fake_tap how;
	struct work *kept;
	unsigned int touched, delivered;
} tap;

struct work *fake_work_copy(const struct work *w)
{
	struct work *c = fake_work_new(w->kind);

	*c = *w;
	c->msg.recs = c->recs;
	c->blob = NULL;
	c->msg.blob = NULL;
	if (w->msg.blob_len) {
		c->blob = malloc(w->msg.blob_len);
		if (!c->blob)
			abort();
		memcpy(c->blob, w->blob, w->msg.blob_len);
		c->msg.blob = c->blob;
	}
	return c;
}

static void forget(void)
{
	if (tap.kept)
		free(tap.kept->blob);
	free(tap.kept);
	tap.kept = NULL;
}

void fake_tap_begin(const struct fake_tap *how)
{
	if (how->forget || how->type != tap.how.type)
		forget();
	tap.how = *how;
	tap.touched = tap.delivered = 0;
}

void fake_tap_count(unsigned int *touched, unsigned int *delivered)
{
	*touched = tap.touched;
	*delivered = tap.delivered;
}

int fake_tap_send(struct work *w, int copies, int *err, unsigned int *late_us)
{
	if (!tap.how.type || (int)w->msg.type != tap.how.type)
		return copies;
	forget();
	tap.kept = fake_work_copy(w);
	tap.touched++;
	switch (tap.how.fault) {
	case FAKE_LOST:
		if (tap.touched > LOSSES && !tap.how.always)
			return copies;
		*err = ETIMEDOUT;
		return 0;
	case FAKE_DELAYED:
		if (tap.touched > 1)
			return copies;
		*err = ETIMEDOUT;
		return 0;
	case FAKE_OVERTAKEN:
		*late_us = OVERTAKEN_US;
		return copies;
	default:
		return copies;
	}
}

static void deliver(struct work *c)
{
	tap.delivered++;
	fake_enqueue(c, 0);
}

/* Less of it: without its last records, none at all, with half of its blob and with none. */
static void deliver_truncated(void)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		struct work *c = fake_work_copy(tap.kept);

		if (i == 0)
			c->msg.nrecs /= 2;
		else if (i == 1)
			c->msg.nrecs = 0;
		else if (i == 2)
			c->msg.blob_len /= 2;
		else
			c->msg.blob_len = 0;
		deliver(c);
	}
}

void fake_tap_stage(enum fake_stage stage)
{
	struct work *c;

	if (!tap.how.type || stage != tap.how.stage || !tap.kept)
		return;
	switch (tap.how.fault) {
	case FAKE_DOUBLED:
	case FAKE_DELAYED:
		deliver(fake_work_copy(tap.kept));
		break;
	case FAKE_FORGED:
		c = fake_work_copy(tap.kept);
		c->forged = NOBODY;
		deliver(c);
		c = fake_work_copy(tap.kept);
		c->forged = 1;
		deliver(c);
		c = fake_work_copy(tap.kept);
		c->forged = 2;
		deliver(c);
		break;
	case FAKE_TRUNCATED:
		deliver_truncated();
		break;
	default:
		break;
	}
}
