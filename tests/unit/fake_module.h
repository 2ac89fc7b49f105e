/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stands in for libshim/ctl.c and the module behind it: everything happens in one process, whose
 * contexts are each other's peers. Messages between them are delivered late, twice, in another
 * order and sometimes reported as not delivered, as the seed says.
 */
#ifndef FAKE_MODULE_H
#define FAKE_MODULE_H

#include <stdint.h>

/**
 * struct fake_faults - what happens to messages, each in percent
 * @seed: of the random sequence
 * @late_us: each message waits for up to so long
 * @slow, @slow_us: messages of this type (enum repath_msg) take so much longer
 */
struct fake_faults {
	unsigned int seed, late_us;
	int twice, lost;
	int slow;
	unsigned int slow_us;
};

void fake_faults_set(const struct fake_faults *f);

/*
 * Each waits at most 10 s for the answer of the shim to the event and returns the
 * errno that it carried; *text, if given, is the reason (static).
 */
int fake_check(const char *dev, const char **text);
int fake_suspend(const char *dev);			/* after fake_check; until RELEASE */
int fake_suspend_start(const char *dev);		/* does not wait */
int fake_abort(void);					/* until ABORT */
int fake_resume(const char *dev, const char **text);	/* until REPLAY */
/* For two operations at once: those that follow are about this one (0 to 7; 0 at first). */
void fake_use_op(unsigned int op);
int fake_resume_start(const char *dev);			/* does not wait */
int fake_wait(int stage);				/* enum repath_stage */
/* The peers of a context's connections are said to have died. */
void fake_gone(const char *dev);
/* The module goes; the next event is that of a new one. */
void fake_unload(void);
/* Waits until no connection is moving: the peers' ends finish a little later than the mover's. */
int fake_settled(void);

struct repath_counters;
const struct repath_counters *fake_counters(void);	/* of the last answer that had some */

#endif /* FAKE_MODULE_H */
