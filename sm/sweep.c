// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One that fails, or finds another subnet manager, returns without an event. So a sweep that has been
 * long is over, too, when for a while OpenSM neither computed anything nor waited for an answer. How
 * long it may take depends on the fabric: an engine alone can take half a minute.
 */
#include "engine.h"
#include "smp.h"
#include "sweep.h"

#define SHORT_MS	10000 /* as long it is taken for under way, whatever it does */
#define QUIET_MS	1000 /* behind that */

static uint64_t begun;		/* milliseconds; 0: it has said that it has ended */
static uint64_t busy, looked;	/* it was seen to do something; somebody looked */

/** rsm_sweep_begins - OpenSM says so; in any thread */
void rsm_sweep_begins(uint64_t now)
{
	__atomic_store_n(&begun, now, __ATOMIC_RELEASE);
}

/** rsm_sweep_ends - OpenSM says so; in any thread */
void rsm_sweep_ends(void)
{
	__atomic_store_n(&begun, 0, __ATOMIC_RELEASE);
}

/**
 * rsm_is_sweeping - whether it does, as far as one can know
 * @rsm: the plugin
 * @now: of rsm_now()
 *
 * In the plugin's thread. Who wants to be sure asks again with OpenSM's lock held, for which it may have
 * waited through a part of the sweep. If nobody has looked for long the sweep has another while.
 */
bool rsm_is_sweeping(struct rsm *rsm, uint64_t now)
{
	uint64_t since = __atomic_load_n(&begun, __ATOMIC_ACQUIRE);

	if (!since)
		return false;
	if (rsm_engine_computes() || rsm_smp_outstanding(rsm) || now > looked + QUIET_MS)
		busy = now;
	looked = now;
	return now < since + SHORT_MS || now < busy + QUIET_MS;
}
