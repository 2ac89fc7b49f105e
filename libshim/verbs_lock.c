// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A move takes rp_context.verbs for writing at an instant when no verb runs. Where many threads register memory all
 * the time there is none. So those that are about to begin a verb wait meanwhile, for as long again as the move has
 * waited: at last for longer than any verb takes. Not for ever, as one that runs may wait for them, and not those that
 * are inside of one.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "conn.h"
#include "move.h"
#include "objects.h"

#define LEAST_NS	20000000ull
#define MOST_NS		1000000000ull

__thread unsigned int rp_verbs_inside __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void rp_verbs_want(struct rp_context *ctx, bool want)
{
	if (want == !!atomic_load(&ctx->verbs_wanted))
		return;
	pthread_mutex_lock(&lock);
	atomic_store(&ctx->verbs_wanted, want ? rp_now_ns() : 0);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void rp_verbs_give_way(struct rp_context *ctx)
{
	uint64_t now = rp_now_ns(), since = atomic_load(&ctx->verbs_wanted), ns;
	int cancel = rp_uncancelled();
	struct timespec until;

	ns = since && now > since ? now - since : 0;
	ns = ns < LEAST_NS ? LEAST_NS : ns > MOST_NS ? MOST_NS : ns;
	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += until.tv_nsec;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	pthread_mutex_lock(&lock);
	while (atomic_load(&ctx->verbs_wanted) &&
	       pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&lock);
	rp_cancelled_as(cancel);
}

/*
 * In a child of fork, which has no part in its parent's moves: the thread that has a lock for one is not there, nor are
 * others that were inside a verb. Only this one may be, of a context that is not away.
 */
void rp_verbs_forked(void)
{
	struct rp_context *ctx;

	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	list_for_each(ctx, &rp_contexts, node) {
		atomic_store(&ctx->verbs_wanted, 0);
		if (ctx->move || !rp_verbs_inside)
			pthread_rwlock_init(&ctx->verbs, NULL);
	}
}
