// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>
#include <time.h>

#include "mock_state.h"

struct mock_state mock = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.wake = PTHREAD_COND_INITIALIZER,
	.retry_ms = 1000,
};

uint64_t mock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

#define SETTER(fn, type, field)		\
	void fn(type value)		\
	{				\
		mock_lock();		\
		mock.field = value;	\
		pthread_cond_signal(&mock.wake); \
		mock_unlock();		\
	}

SETTER(mock_delay_us, unsigned int, delay_us)
SETTER(mock_reset_us, unsigned int, reset_us)
SETTER(mock_stall, bool, stalled)
SETTER(mock_hold_acks, bool, hold_acks)
SETTER(mock_lose_answers, bool, lose_answers)
SETTER(mock_retry_ms, unsigned int, retry_ms)
SETTER(mock_null_mode, bool, null_mode)

#define GETTER(fn, type, field)		\
	type fn(void)			\
	{				\
		type value;		\
		mock_lock();		\
		value = mock.field;	\
		mock_unlock();		\
		return value;		\
	}

GETTER(mock_cq_overruns, unsigned int, overruns)
GETTER(mock_strays, unsigned int, strays)
GETTER(mock_executed, uint64_t, executed)

unsigned int mock_live(enum mock_object kind)
{
	unsigned int n;

	mock_lock();
	n = mock.live[kind];
	mock_unlock();
	return n;
}

unsigned int mock_live_total(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < MOCK_OBJECTS; i++)
		n += mock_live(i);
	return n;
}

void mock_last_caps(uint32_t *max_send_wr, int *cqe)
{
	mock_lock();
	*max_send_wr = mock.asked_send_wr;
	*cqe = mock.asked_cqe;
	mock_unlock();
}

void mock_fail(const char *function, int err, unsigned int skip, unsigned int times)
{
	struct mock_failure *f = mock_zalloc(sizeof(*f));

	snprintf(f->function, sizeof(f->function), "%s", function);
	f->err = err;
	f->skip = skip;
	f->times = times;
	mock_lock();
	f->next = mock.failures;
	mock.failures = f;
	mock_unlock();
}

unsigned int mock_failures(void)
{
	struct mock_failure *f;
	unsigned int n = 0;

	mock_lock();
	for (f = mock.failures; f; f = f->next)
		n += f->times;
	mock_unlock();
	return n;
}

int mock_failing(const char *function)
{
	struct mock_failure **at, *f;
	int err = 0;

	for (at = &mock.failures; (f = *at); at = &f->next)
		if (!strcmp(f->function, function))
			break;
	if (!f)
		return 0;
	if (f->skip) {
		f->skip--;
		return 0;
	}
	err = f->err;
	if (!--f->times) {
		*at = f->next;
		free(f);
	}
	return err;
}
