/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A mutex of one word whose uncontended path is two instructions inline: it is taken once for
 * every post and every poll, so a call into the C library would show. Contended callers sleep
 * in the kernel (futex(2)), which matters where a guest has one processor.
 */
#ifndef RP_LOCK_H
#define RP_LOCK_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 0 free, 1 held, 2 held and somebody may be waiting */
struct rp_lock {
	atomic_int word;
};

void rp_lock_wait(struct rp_lock *l);
void rp_lock_wake(struct rp_lock *l);

static inline void rp_lock(struct rp_lock *l)
{
	int free = 0;

	if (__builtin_expect(!atomic_compare_exchange_strong_explicit(&l->word, &free, 1,
				memory_order_acquire, memory_order_relaxed), 0))
		rp_lock_wait(l);
}

static inline void rp_unlock(struct rp_lock *l)
{
	if (__builtin_expect(atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2, 0))
		rp_lock_wake(l);
}

/*
 * A thread that is cancelled leaves what it holds locked for ever, and libibverbs reads and writes. Where
 * that is done, or waited, under a lock the thread is not to be cancelled.
 */
static inline int rp_uncancelled(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

static inline void rp_cancelled_as(int old)
{
	pthread_setcancelstate(old, NULL);
}

#endif /* RP_LOCK_H */
