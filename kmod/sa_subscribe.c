// SPDX-License-Identifier: GPL-2.0
/*
 * The subscription to the traps 68 and 69. It lives in the memory of one subnet manager: it is made
 * again at whatever may mean that this has another one, or began anew, and now and then in case
 * that nobody said so.
 */
#include <linux/random.h>
#include <repath_sm.h>

#include "device.h"
#include "sa.h"
#include "sa_ask.h"

#define BACKOFF_MIN	(1 * HZ)
#define BACKOFF_MAX	(64 * HZ)
#define RENEW		(600 * HZ)

static const u16 traps[] = { REPATH_SM_UNPATH, REPATH_SM_REPATH };

/* Hosts that were all turned away at once do not come back all at once. */
static unsigned long about(unsigned long delay)
{
	return jiffies + delay + get_random_u32() % (delay / 4 + 1);
}

static void failed(struct repath_sa_port *sp)
{
	repath_stat_inc(sp->dev, REPATH_STAT_SM_LOST);
	sp->subscribed = false;
	sp->state = REPATH_SM_WAITING;
	sp->at = about(sp->backoff);
	sp->backoff = min_t(unsigned long, sp->backoff * 2, BACKOFF_MAX);
}

static void succeeded(struct repath_sa_port *sp, u64 asked_ns)
{
	repath_stat_inc(sp->dev, REPATH_STAT_SM_SUBSCRIBED);
	sp->backoff = BACKOFF_MIN;
	sp->state = REPATH_SM_SUBSCRIBED;
	sp->at = about(RENEW);
	if (sp->subscribed)
		return;
	sp->subscribed = true;
	sp->since_ns = asked_ns;
	/* What was reported before has not been heard, and its exceptions have ended. */
	set_bit(REPATH_SA_TABLE, &sp->wants);
	repath_sa_hand_on(sp, NULL);
}

static void ask(struct repath_sa_port *sp)
{
	unsigned int i;

	sp->state = REPATH_SM_ASKING;
	sp->failed = false;
	sp->pending = 0;
	for (i = 0; i < ARRAY_SIZE(traps); i++)
		if (repath_sa_ask_subscription(sp, traps[i], true))
			sp->failed = true;
		else
			sp->pending++;
	if (!sp->pending)
		failed(sp);
}

/**
 * repath_sa_subscribe - what is due to be subscribed, or has to wait
 * @sp: port, which has a way
 * @next: see sa.h
 */
void repath_sa_subscribe(struct repath_sa_port *sp, unsigned long *next)
{
	/* Functions of one port are one subscriber: the PF's module renews the subscription. */
	if (sp->relayed) {
		/* What was asked for was given up. */
		if (test_and_clear_bit(REPATH_SA_RENEW, &sp->wants))
			set_bit(REPATH_SA_TABLE, &sp->wants);
		sp->state = REPATH_SM_RELAYED;
		return;
	}
	if (test_and_clear_bit(REPATH_SA_RENEW, &sp->wants)) {
		sp->backoff = BACKOFF_MIN;
		ask(sp);
	} else if (sp->state != REPATH_SM_ASKING && time_after_eq(jiffies, sp->at)) {
		ask(sp);
	}
	if (sp->state != REPATH_SM_ASKING)
		repath_sa_sooner(next, sp->at);
}

/**
 * repath_sa_subscribe_answered - InformInfo was answered, or was not
 * @sp: port
 * @ask: the question, to the subnet manager that is
 */
void repath_sa_subscribe_answered(struct repath_sa_port *sp, struct repath_sa_ask *ask)
{
	if (sp->state != REPATH_SM_ASKING || !sp->pending)
		return;
	if (repath_sa_ask_status(ask))
		sp->failed = true;
	if (--sp->pending)
		return;
	if (sp->failed)
		failed(sp);
	else
		succeeded(sp, ask->started_ns);
}

/**
 * repath_sa_unsubscribe - no Report is wanted any more
 * @sp: port, which is subscribed
 */
void repath_sa_unsubscribe(struct repath_sa_port *sp)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(traps); i++)
		repath_sa_ask_subscription(sp, traps[i], false);
	sp->subscribed = false;
}
