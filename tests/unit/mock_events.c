// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion channels and asynchronous events: a list and a pipe with a byte for each entry. */
#include <fcntl.h>
#include <unistd.h>

#include "mock_state.h"

int mock_events_open(struct mock_events *e)
{
	if (pipe2(e->pipe, O_CLOEXEC))
		return errno;
	e->first = NULL;
	e->last = &e->first;
	return 0;
}

void mock_events_close(struct mock_events *e)
{
	struct mock_event *ev;

	while ((ev = e->first)) {
		e->first = ev->next;
		free(ev);
	}
	close(e->pipe[0]);
	close(e->pipe[1]);
}

void mock_events_push(struct mock_events *e, const struct mock_event *event)
{
	struct mock_event *ev = mock_zalloc(sizeof(*ev));

	*ev = *event;
	ev->next = NULL;
	*e->last = ev;
	e->last = &ev->next;
	if (write(e->pipe[1], "", 1) != 1)
		abort();
}

static void swallow_byte(struct mock_events *e)
{
	char c;

	/* A reader may have taken the byte already and finds no event: it reads again. */
	if (fcntl(e->pipe[0], F_GETFL) & O_NONBLOCK) {
		if (read(e->pipe[0], &c, 1) < 0 && errno != EAGAIN)
			abort();
		return;
	}
	fcntl(e->pipe[0], F_SETFL, fcntl(e->pipe[0], F_GETFL) | O_NONBLOCK);
	if (read(e->pipe[0], &c, 1) < 0 && errno != EAGAIN)
		abort();
	fcntl(e->pipe[0], F_SETFL, fcntl(e->pipe[0], F_GETFL) & ~O_NONBLOCK);
}

void mock_events_drop(struct mock_events *e, bool (*match)(const struct mock_event *, void *),
		      void *arg)
{
	struct mock_event **at = &e->first, *ev;

	while ((ev = *at)) {
		if (!match(ev, arg)) {
			at = &ev->next;
			continue;
		}
		*at = ev->next;
		free(ev);
		swallow_byte(e);
	}
	e->last = at;
}

int mock_events_pop(struct mock_events *e, struct mock_event *event)
{
	struct mock_event *ev;
	char c;

	for (;;) {
		if (read(e->pipe[0], &c, 1) != 1)
			return -1;
		mock_lock();
		ev = e->first;
		if (ev) {
			e->first = ev->next;
			if (!e->first)
				e->last = &e->first;
			*event = *ev;
			if (event->cq) {
				((struct mock_cq *)event->cq)->comp_events_given++;
				free(ev);
			} else {	/* until it is acknowledged */
				ev->next = mock.given;
				mock.given = ev;
			}
			mock_unlock();
			return 0;
		}
		mock_unlock();
	}
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct mock_channel *ch = mock_zalloc(sizeof(*ch));
	int err;

	mock_lock();
	err = mock_failing("ibv_create_comp_channel");
	if (!err)
		err = mock_events_open(&ch->events);
	if (!err)
		mock.live[MOCK_CHANNEL]++;
	mock_unlock();
	if (err) {
		free(ch);
		errno = err;
		return NULL;
	}
	ch->ch.context = context;
	ch->ch.fd = ch->events.pipe[0];
	return &ch->ch;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct mock_channel *ch = (struct mock_channel *)channel;

	mock_lock();
	if (ch->ch.refcnt) {
		mock_unlock();
		return EBUSY;
	}
	mock.live[MOCK_CHANNEL]--;
	mock_events_close(&ch->events);
	mock_unlock();
	free(ch);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct mock_event ev;

	if (mock_events_pop(&((struct mock_channel *)channel)->events, &ev))
		return -1;
	*cq = ev.cq;
	*cq_context = ev.cq->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

void mock_async(struct ibv_context *c, enum ibv_event_type type, void *object)
{
	struct mock_event ev = { .event.event_type = type };

	/* All members of the union are pointers, but for the port number. */
	if ((uintptr_t)object < 256)
		ev.event.element.port_num = (uintptr_t)object;
	else
		ev.event.element.cq = object;
	mock_events_push(&mock_context(c)->events, &ev);
}

static bool is_about(const struct mock_event *ev, void *object)
{
	return ev->event.element.cq == object;
}

void mock_async_drop(struct ibv_context *c, void *object)
{
	struct mock_event *ev;

	mock_events_drop(&mock_context(c)->events, is_about, object);
	/* The object goes when all events about it that were read have been acknowledged. */
	do {
		for (ev = mock.given; ev && !is_about(ev, object); ev = ev->next)
			;
		if (ev)
			pthread_cond_wait(&mock.acknowledged, &mock.lock);
	} while (ev);
}

int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	struct mock_event ev;

	if (mock_events_pop(&mock_context(c)->events, &ev))
		return -1;
	*event = ev.event;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct mock_event **at, *ev;

	mock_lock();
	for (at = &mock.given; (ev = *at); at = &ev->next)
		if (!memcmp(&ev->event, event, sizeof(*event))) {
			*at = ev->next;
			free(ev);
			break;
		}
	pthread_cond_broadcast(&mock.acknowledged);
	mock_unlock();
}
