// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A move: what changes in the tables that are set now, sent to the switches that it changes, and known to
 * be there when OpenSM has their answers. If one is lost for good OpenSM sweeps, and sets what it finds
 * wrong.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "paths.h"
#include "plugin.h"
#include "router.h"
#include "slots.h"
#include "smp.h"
#include "topo_view.h"
#include "vm.h"
#include "vm_learn.h"

#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

/* The fabric as it was when somebody moved; until it changes. */
static struct rsm_topo fabric;
static uint64_t *guids;
static bool stale = true;
static unsigned int looked; /* how often */

/** rsm_vm_fabric_changed - look at it again; in any thread */
void rsm_vm_fabric_changed(void)
{
	__atomic_store_n(&stale, true, __ATOMIC_RELEASE);
}

/** rsm_vm_free - when OpenSM ends */
void rsm_vm_free(void)
{
	rsm_topo_free(&fabric);
	free(guids);
	guids = NULL;
	stale = true;
}

static int look(struct rsm *rsm)
{
	if (!__atomic_exchange_n(&stale, false, __ATOMIC_ACQUIRE))
		return 0;
	looked++;
	rsm_topo_free(&fabric);
	free(guids);
	guids = NULL;
	if (rsm_topo_of_subnet(rsm, &fabric))
		goto err;
	guids = malloc((fabric.n_switches + 1) * sizeof(*guids));
	if (!guids)
		goto err;
	for (uint32_t i = 0; i < fabric.n_switches; i++)
		guids[i] = fabric.switches[i].guid;
	return 0;
err:
	rsm_vm_free();
	return -ENOMEM;
}

static osm_switch_t *switch_at(struct rsm *rsm, uint32_t index)
{
	return osm_get_switch_by_guid(&rsm->osm->subn, cl_hton64(guids[index]));
}

/* OpenSM's tables by index. Return: how many entries all of them have, or 0. */
static uint32_t tables(struct rsm *rsm, uint8_t **lft)
{
	uint32_t least = UINT16_MAX;

	for (uint32_t i = 0; i < fabric.n_switches; i++) {
		osm_switch_t *sw = switch_at(rsm, i);

		if (!sw || !sw->new_lft)
			return 0;
		lft[i] = sw->new_lft;
		if (sw->lft_size < least)
			least = sw->lft_size;
	}
	return least;
}

/* Of OpenSM's engines those whose levels keep their own paths from closing a ring, and no mixture of them. */
static bool needs_own_paths(const struct rsm *rsm)
{
	const struct osm_routing_engine *engine = rsm->osm->routing_engine_used;

	return engine && (engine->type == OSM_ROUTING_ENGINE_TYPE_LASH ||
			  engine->type == OSM_ROUTING_ENGINE_TYPE_DFSSSP ||
			  engine->type == OSM_ROUTING_ENGINE_TYPE_NUE ||
			  engine->type == OSM_ROUTING_ENGINE_TYPE_TORUS_2QOS);
}

static int make_plan(struct rsm *rsm, struct rsm_vm_move *move, uint8_t **lft, uint8_t *wanted,
		     char *why, size_t size)
{
	uint8_t **engine = lft + fabric.n_switches;
	uint32_t n = tables(rsm, lft);
	struct rsm_move m = {
		.lid = move->lid,
		.other = move->other ? move->other : move->lid,
		.engine = engine,
		.n_engine = rsm_slots_tables(guids, fabric.n_switches, engine),
		.from = rsm_topo_switch_index(&fabric, move->from.sw),
		.to = rsm_topo_switch_index(&fabric, move->to.sw),
		.to_port = move->to.port,
		.swap = move->other,
		.limited = move->limited && !needs_own_paths(rsm),
	};

	if (n <= m.lid || n <= m.other || m.from < 0 || m.to < 0) {
		snprintf(why, size, "the subnet is not routed");
		return -EAGAIN;
	}
	if (!move->other) {
		if (!rsm_slots_entries(rsm, &move->to, guids, fabric.n_switches, wanted)) {
			snprintf(why, size, "no LID has paths to there");
			return -ENOENT;
		}
		m.wanted = wanted;
	}
	return rsm_move_plan(&fabric, lft, &m, &move->plan);
}

/* SMPs to a switch for one of two steps. */
static unsigned int blocks_of(const struct rsm_vm_move *move, const osm_switch_t *sw, uint32_t i)
{
	unsigned int first = move->lid / RSM_LIDS_A_BLOCK, second = move->other / RSM_LIDS_A_BLOCK;
	bool one = move->plan.lid[i] != sw->new_lft[move->lid];
	bool other = move->other && move->plan.other[i] != sw->new_lft[move->other];

	return first == second ? one || other : one + other;
}

/* Where the VM is reached some other way before. */
static bool is_closed(const struct rsm_vm_move *move, const osm_switch_t *sw, uint32_t index)
{
	return sw->new_lft[move->lid] != move->plan.lid[index];
}

static void count(struct rsm *rsm, struct rsm_vm_move *move)
{
	move->counts = (struct rsm_vm_counts) { 0 };
	for (uint32_t i = 0; i < move->plan.n; i++) {
		osm_switch_t *sw = switch_at(rsm, i);
		unsigned int blocks = blocks_of(move, sw, i);

		if (!move->plan.changed[i])
			continue;
		if (rsm_is_vswitch(rsm, sw)) {
			move->counts.vswitch_blocks += blocks;
			continue;
		}
		move->counts.switches++;
		move->counts.blocks += blocks;
		move->counts.closing += move->closing && is_closed(move, sw, i);
	}
}

static bool is_own(struct rsm *rsm, const osm_port_t *port)
{
	return port && osm_port_get_guid(port) == rsm->osm->subn.sm_port_guid;
}

/**
 * rsm_vm_plan - what a move changes, now
 * @rsm: the plugin
 * @move: where from and where to; the plan and the counts are filled in
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0 or a negative error number.
 */
int rsm_vm_plan(struct rsm *rsm, struct rsm_vm_move *move, char *why, size_t size)
{
	osm_port_t *there = rsm_place_port(rsm, &move->to), *here = rsm_place_port(rsm, &move->from);
	uint8_t **lft = NULL, *wanted = NULL;
	int rc = look(rsm);

	snprintf(why, size, "no memory");
	rsm_move_plan_free(&move->plan);
	move->looked = looked;
	/* Who comes with its HCA takes nobody's LID away: a port that is there is unplugged first. */
	move->other = there && !move->carried ? cl_ntoh16(osm_port_get_base_lid(there)) : 0;
	if (is_own(rsm, there) || is_own(rsm, here)) {
		snprintf(why, size, "the subnet manager's own LID does not move");
		return -EBUSY;
	}
	if (!move->carried && (!move->other || !here)) {
		snprintf(why, size, "a VF has gone");
		return -ENOENT;
	}
	if (!move->carried && cl_ntoh16(osm_port_get_base_lid(here)) != move->lid) {
		snprintf(why, size, "another LID is there since");
		return -ENOENT;
	}
	/* It was, when the move was asked for. */
	if (!move->carried && (!rsm_vm_knows(here) || !rsm_vm_knows(there))) {
		snprintf(why, size, "a VF has come back, and it is not known which VM it has");
		return -EAGAIN;
	}
	if (!rc) {
		lft = calloc(2 * fabric.n_switches + 1, sizeof(*lft));
		wanted = malloc(fabric.n_switches + 1);
		rc = lft && wanted ? 0 : -ENOMEM;
	}
	rc = rc ?: make_plan(rsm, move, lft, wanted, why, size);
	if (!rc)
		count(rsm, move);
	free(lft);
	free(wanted);
	return rc;
}

static void send_blocks(struct rsm *rsm, osm_switch_t *sw, int first, int second)
{
	if (first >= 0)
		rsm_smp_set_block(rsm, sw, first);
	if (second >= 0 && second != first)
		rsm_smp_set_block(rsm, sw, second);
}

/* Before the move: nowhere is the VM reached any more by a switch whose entry will change. */
static void close_paths(struct rsm *rsm, struct rsm_vm_move *move)
{
	for (uint32_t i = 0; i < move->plan.n; i++) {
		osm_switch_t *sw = switch_at(rsm, i);

		if (!sw || !move->plan.changed[i] || rsm_is_vswitch(rsm, sw) || !is_closed(move, sw, i))
			continue;
		sw->new_lft[move->lid] = RSM_NO_PORT;
		send_blocks(rsm, sw, move->lid / RSM_LIDS_A_BLOCK, -1);
	}
}

static void write_tables(struct rsm *rsm, struct rsm_vm_move *move)
{
	for (uint32_t i = 0; i < move->plan.n; i++) {
		osm_switch_t *sw = switch_at(rsm, i);
		int first = -1, second = -1;

		if (!sw || !move->plan.changed[i])
			continue;
		if (sw->new_lft[move->lid] != move->plan.lid[i])
			first = move->lid / RSM_LIDS_A_BLOCK;
		sw->new_lft[move->lid] = move->plan.lid[i];
		if (move->other && sw->new_lft[move->other] != move->plan.other[i]) {
			second = move->other / RSM_LIDS_A_BLOCK;
			sw->new_lft[move->other] = move->plan.other[i];
		}
		send_blocks(rsm, sw, first, second);
	}
}

static void write_all(struct rsm *rsm, struct rsm_vm_move *move)
{
	osm_port_t *a = rsm_place_port(rsm, &move->from), *b = rsm_place_port(rsm, &move->to);

	move->state = RSM_VM_WRITING;
	if (!move->carried && a && b) {
		move->ports[0] = cl_ntoh64(osm_port_get_guid(a));
		move->ports[1] = cl_ntoh64(osm_port_get_guid(b));
		rsm_paths_take_along(rsm, move->lid, osm_port_get_guid(b));
		rsm_paths_take_along(rsm, move->other, osm_port_get_guid(a));
		rsm_vm_exchange(rsm, a, b, &move->counts);
	}
	write_tables(rsm, move);
	rsm_slots_moved(rsm, move->lid, &move->to);
	if (move->other)
		rsm_slots_moved(rsm, move->other, &move->from);
	if (move->carried && !rsm_slots_expect(move->lid, &move->to, &move->from))
		rsm_log(rsm, OSM_LOG_ERROR, "LID %u: too many VFs are on their way: the next sweep routes it to where it is",
			move->lid);
}

/* Whether a sweep has begun since: indices are other switches', or switches are gone. */
static bool is_crossed(const struct rsm_vm_move *move)
{
	return move->looked != looked || __atomic_load_n(&stale, __ATOMIC_ACQUIRE);
}

/* Whether switches have said that they have what they were told. */
static bool is_written(struct rsm *rsm, const struct rsm_vm_move *move)
{
	for (uint32_t i = 0; i < move->plan.n; i++) {
		osm_switch_t *sw = switch_at(rsm, i);

		if (!sw || !move->plan.changed[i])
			continue;
		if (sw->lft[move->lid] != sw->new_lft[move->lid] ||
		    (move->other && sw->lft[move->other] != sw->new_lft[move->other]))
			return false;
	}
	return !rsm_smp_outstanding(rsm);
}

static bool is_through(struct rsm_vm_move *move)
{
	for (int i = 0; i < 2; i++)
		move->unheard |= move->ports[i] && rsm_vm_is_unheard(move->ports[i]);
	return true;
}

/**
 * rsm_vm_start - send the first SMPs
 * @rsm: the plugin
 * @move: with a plan of now
 */
void rsm_vm_start(struct rsm *rsm, struct rsm_vm_move *move)
{
	move->began = rsm_microseconds();
	if (!move->closing) {
		write_all(rsm, move);
		return;
	}
	move->state = RSM_VM_CLOSING;
	close_paths(rsm, move);
}

/**
 * rsm_vm_go_on - send the next ones if all are answered
 * @rsm: the plugin
 * @move: a started one
 *
 * A sweep sets the tables as they are after the move, or, if these were only closed, as they were
 * before it: then the move is RSM_VM_QUEUED again.
 *
 * Return: whether it is through; then @move says whether all have answered.
 */
bool rsm_vm_go_on(struct rsm *rsm, struct rsm_vm_move *move)
{
	if (is_crossed(move)) {
		if (move->state == RSM_VM_WRITING)
			return !rsm_smp_outstanding(rsm) && is_through(move);
		move->state = RSM_VM_QUEUED;
		return false;
	}
	if (!is_written(rsm, move))
		return false;
	if (move->state == RSM_VM_WRITING)
		return is_through(move);
	write_all(rsm, move);
	return false;
}
