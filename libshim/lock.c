// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>

#include "lock.h"

static void futex(struct rp_lock *l, int op, int val)
{
	int saved = errno;

	syscall(SYS_futex, &l->word, op | FUTEX_PRIVATE_FLAG, val, NULL, NULL, 0);
	errno = saved;
}

/* Drepper's mutex 3: once contended the word stays 2 until somebody has found it free. */
void rp_lock_wait(struct rp_lock *l)
{
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		futex(l, FUTEX_WAIT, 2);
}

void rp_lock_wake(struct rp_lock *l)
{
	futex(l, FUTEX_WAKE, 1);
}
