// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Devices that are on the move: who opens one waits. Any thread. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "move.h"

static pthread_mutex_t away_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t away_changed = PTHREAD_COND_INITIALIZER;
static unsigned int busy;	/* threads that open or close a device */
static struct list_head away = { { &away.n, &away.n } };

struct away_device {
	struct list_node node;
	char name[64];
};

void rp_away_set(const char *name)
{
	struct away_device *d = calloc(1, sizeof(*d));

	if (!d)
		return;
	snprintf(d->name, sizeof(d->name), "%s", name);
	pthread_mutex_lock(&away_lock);
	list_add_tail(&away, &d->node);
	pthread_mutex_unlock(&away_lock);
}

void rp_away_clear(const char *name)
{
	struct away_device *d, *tmp;

	pthread_mutex_lock(&away_lock);
	list_for_each_safe(d, tmp, &away, node)
		if (!strcmp(d->name, name)) {
			list_del(&d->node);
			free(d);
		}
	pthread_cond_broadcast(&away_changed);
	pthread_mutex_unlock(&away_lock);
}

static bool is_away(const char *name)
{
	struct away_device *d;

	list_for_each(d, &away, node)
		if (!strcmp(d->name, name))
			return true;
	return false;
}

void rp_move_wait_open(const char *name)
{
	int cancel = rp_uncancelled();

	pthread_mutex_lock(&away_lock);
	while (is_away(name))
		pthread_cond_wait(&away_changed, &away_lock);
	busy++;
	pthread_mutex_unlock(&away_lock);
	rp_cancelled_as(cancel);
}

void rp_move_close_begin(void)
{
	pthread_mutex_lock(&away_lock);
	busy++;
	pthread_mutex_unlock(&away_lock);
}

void rp_move_open_end(void)
{
	int saved = errno;

	pthread_mutex_lock(&away_lock);
	busy--;
	pthread_mutex_unlock(&away_lock);
	errno = saved;
}

bool rp_away_busy(void)
{
	bool ret;

	pthread_mutex_lock(&away_lock);
	ret = busy;
	pthread_mutex_unlock(&away_lock);
	return ret;
}

/* In a child of fork, which has no part in its parent's moves. */
void rp_away_forked(void)
{
	list_init(&away);
	busy = 0;
	pthread_mutex_init(&away_lock, NULL);
	pthread_cond_init(&away_changed, NULL);
	rp_verbs_forked();
}
