// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * New tables are set in the order of a plan (plan.h) before OpenSM sets them: it then finds every block
 * as it should be and sends none. Ports that were off are its own to bring up again, which it does
 * later in the same sweep; what break nodes discard it is told of when it sets SLtoVL tables.
 *
 * The answers are taken by OpenSM's own threads, which need its lock: it is given up while they are
 * waited for. The sweep goes on where it was: only its own thread changes the subnet.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "distribute.h"
#include "engine.h"
#include "plan.h"
#include "plugin.h"
#include "smp.h"
#include "topo_view.h"

#include <opensm/osm_helper.h>
#include <opensm/osm_node.h>
#include <opensm/osm_switch.h>

/**
 * struct counts - for the status
 * @distributions: of changed tables
 * @smps: sent for them
 * @waits: for packets on their way
 * @refused: tables that the plan does not suit
 * @failed: that not all switches have answered
 * @last_smps: of the last one
 * @last_us: it took
 * @discarded: turns that break nodes discard
 */
struct counts {
	unsigned long long distributions, smps, waits, refused, failed, last_smps, last_us, discarded;
};

/**
 * struct rsm_distribute - what the part knows
 * @turns: that break nodes discard
 * @tables: of each, what is there without
 * @mutex: for @shown
 * @counts: of the thread that sweeps
 * @shown: a copy for the status
 */
struct rsm_distribute {
	struct rsm_turns turns;
	ib_slvl_table_t *tables;
	pthread_mutex_t mutex;
	struct counts counts;
	struct counts shown;
};

/* A distribution: the fabric, its tables, what is sent. */
struct job {
	struct rsm *rsm;
	struct rsm_topo topo;
	struct rsm_direction direction;
	struct rsm_turns turns;
	struct rsm_change change;
	struct rsm_plan plan;
	const uint8_t **old_lft, **new_lft;
	ib_slvl_table_t *tables;
	uint32_t sent;
};

static osm_switch_t *switch_of(const struct job *job, uint32_t sw)
{
	return osm_get_switch_by_guid(&job->rsm->osm->subn,
				      cl_hton64(job->topo.switches[sw].guid));
}

static void job_free(struct job *job)
{
	rsm_plan_free(&job->plan);
	rsm_turns_free(&job->turns);
	rsm_direction_free(&job->direction);
	rsm_topo_free(&job->topo);
	free(job->old_lft);
	free(job->new_lft);
	free(job->tables);
}

static int job_tables(struct job *job)
{
	uint32_t n = job->topo.n_switches;

	job->old_lft = calloc(n + 1, sizeof(*job->old_lft));
	job->new_lft = calloc(n + 1, sizeof(*job->new_lft));
	if (!job->old_lft || !job->new_lft)
		return -ENOMEM;
	job->change.n_lft = job->topo.max_lid + 1;
	for (uint32_t i = 0; i < n; i++) {
		osm_switch_t *sw = switch_of(job, i);

		job->old_lft[i] = sw->lft;
		job->new_lft[i] = sw->new_lft;
		if (sw->lft_size < job->change.n_lft)
			job->change.n_lft = sw->lft_size;
	}
	job->change.topo = &job->topo;
	job->change.direction = &job->direction;
	job->change.old_lft = job->old_lft;
	job->change.new_lft = job->new_lft;
	job->change.old_turns = &job->rsm->distribute->turns;
	job->change.new_turns = &job->turns;
	return 0;
}

/*
 * What a turn's table was before it was discarded: now, or at the time when that was done. OpenSM may
 * not have set one yet: it says what is to be there later, rsm_distribute_lanes().
 */
static int job_saved(struct job *job)
{
	const struct rsm_distribute *d = job->rsm->distribute;

	job->tables = calloc(job->turns.n + 1, sizeof(*job->tables));
	if (!job->tables)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->turns.n; i++) {
		const struct rsm_turn *turn = &job->turns.turns[i];
		int64_t had = rsm_turns_index(&d->turns, turn->guid, turn->in, turn->out);
		osm_switch_t *sw = osm_get_switch_by_guid(&job->rsm->osm->subn,
							  cl_hton64(turn->guid));

		job->tables[i] = had >= 0 ? d->tables[had] :
				 *osm_physp_get_slvl_tbl(osm_node_get_physp_ptr(sw->p_node, turn->out),
							 turn->in);
	}
	return 0;
}

static void send_set(struct job *job, osm_node_t *node, osm_physp_t *physp, const void *payload,
		 size_t size, ib_net16_t attribute, uint32_t modifier,
		 const osm_madw_context_t *context)
{
	osm_physp_t *way = node->sw ? osm_node_get_physp_ptr(node, 0) : physp;

	osm_req_set(&job->rsm->osm->sm, osm_physp_get_dr_path_ptr(way), payload, size, attribute,
		    cl_hton32(modifier), FALSE, ib_port_info_get_m_key(&way->port_info), 0,
		    CL_DISP_MSGID_NONE, context);
}

static void send_lft(struct job *job, const struct rsm_step *step)
{
	osm_switch_t *sw = switch_of(job, step->sw);
	osm_madw_context_t context = { .lft_context = {
		.node_guid = osm_node_get_node_guid(sw->p_node), .set_method = TRUE } };

	send_set(job, sw->p_node, NULL, sw->new_lft + step->block * RSM_LFT_BLOCK, RSM_LFT_BLOCK,
	     IB_MAD_ATTR_LIN_FWD_TBL, step->block, &context);
}

static void send_turn(struct job *job, const struct rsm_step *step)
{
	const struct rsm_distribute *d = job->rsm->distribute;
	osm_node_t *node = switch_of(job, step->sw)->p_node;
	osm_physp_t *out = osm_node_get_physp_ptr(node, step->out);
	osm_madw_context_t context = { .slvl_context = {
		.node_guid = osm_node_get_node_guid(node),
		.port_guid = osm_physp_get_port_guid(out), .set_method = TRUE } };
	ib_slvl_table_t table;

	memset(&table, 0xff, sizeof(table));
	if (step->kind == RSM_STEP_RESTORE)
		table = d->tables[rsm_turns_index(&d->turns, job->topo.switches[step->sw].guid,
						  step->in, step->out)];
	send_set(job, node, NULL, &table, sizeof(table), IB_MAD_ATTR_SLVL_TABLE,
	     step->in << 8 | step->out, &context);
}

/* IBA 14.2.5.6: who sets Down takes the link down and lets it come up to Init again. */
static void send_off(struct job *job, const struct rsm_step *step)
{
	osm_subn_t *subn = &job->rsm->osm->subn;
	osm_madw_context_t context = { .pi_context = { .set_method = TRUE } };
	osm_physp_t *port, *behind;
	ib_port_info_t info;

	if (step->end) {
		osm_port_t *end = osm_get_port_by_guid(subn,
						       cl_hton64(job->topo.ends[step->sw].guid));

		port = end->p_physp;
	} else {
		port = osm_node_get_physp_ptr(switch_of(job, step->sw)->p_node, step->in);
	}
	context.pi_context.node_guid = osm_node_get_node_guid(port->p_node);
	context.pi_context.port_guid = osm_physp_get_port_guid(port);
	info = port->port_info;
	info.state_info2 = 0;
	info.link_width_enabled = 0;
	ib_port_info_set_link_speed_enabled(&info, 0);
	ib_port_info_set_port_state(&info, IB_LINK_DOWN);
	send_set(job, port->p_node, port, &info, sizeof(info), IB_MAD_ATTR_PORT_INFO,
	     osm_physp_get_port_num(port), &context);
	/* It goes along: OpenSM brings both up again. */
	behind = osm_physp_get_remote(port);
	if (behind && osm_physp_get_port_state(behind) > IB_LINK_INIT)
		ib_port_info_set_port_state(&behind->port_info, IB_LINK_INIT);
}

static bool send_step(struct job *job, const struct rsm_step *step)
{
	switch (step->kind) {
	case RSM_STEP_LFT:
		/* All of them are sent by OpenSM: it does not know what is there. */
		if (job->rsm->osm->subn.need_update)
			return false;
		send_lft(job, step);
		return true;
	case RSM_STEP_DISCARD:
	case RSM_STEP_RESTORE:
		send_turn(job, step);
		return true;
	case RSM_STEP_PORT_OFF:
		send_off(job, step);
		return true;
	default:
		return false;
	}
}

static void wait_for_packets(struct rsm *rsm)
{
	struct timespec t = { rsm->opt.distribute_wait / 1000,
			      rsm->opt.distribute_wait % 1000 * 1000000l };

	rsm->distribute->counts.waits++;
	CL_PLOCK_RELEASE(&rsm->osm->lock);
	nanosleep(&t, NULL);
	CL_PLOCK_EXCL_ACQUIRE(&rsm->osm->lock);
}

/* Whether the switch has answered that it discards, or sends again. */
static bool turn_is_set(struct job *job, const struct rsm_step *step)
{
	osm_node_t *node = switch_of(job, step->sw)->p_node;
	const ib_slvl_table_t *table =
		osm_physp_get_slvl_tbl(osm_node_get_physp_ptr(node, step->out), step->in);

	return ib_slvl_table_get(table, 0) == 15;
}

static bool step_is_done(struct job *job, const struct rsm_step *step)
{
	osm_switch_t *sw;

	if (step->kind == RSM_STEP_DISCARD)
		return turn_is_set(job, step);
	if (step->kind != RSM_STEP_LFT || job->rsm->osm->subn.need_update)
		return true;
	sw = switch_of(job, step->sw);
	return sw->lft && !memcmp(sw->lft + step->block * RSM_LFT_BLOCK,
				  sw->new_lft + step->block * RSM_LFT_BLOCK, RSM_LFT_BLOCK);
}

/* Return: whether all has been answered. */
static bool send_all(struct job *job)
{
	const struct rsm_plan *plan = &job->plan;

	for (uint32_t first = 0, end; first < plan->n; first = end) {
		for (end = first; end < plan->n && plan->steps[end].kind == plan->steps[first].kind;)
			job->sent += send_step(job, &plan->steps[end++]);
		if (plan->steps[first].kind == RSM_STEP_WAIT)
			wait_for_packets(job->rsm);
		else
			rsm_smp_wait(job->rsm);
		for (uint32_t i = first; i < end; i++)
			if (!step_is_done(job, &plan->steps[i]))
				return false;
	}
	return true;
}

/* What break nodes discard from now on. */
static void remember(struct job *job)
{
	struct rsm_distribute *d = job->rsm->distribute;

	rsm_turns_free(&d->turns);
	free(d->tables);
	d->turns = job->turns;
	d->tables = job->tables;
	job->turns = (struct rsm_turns) { 0 };
	job->tables = NULL;
}

/* The old tables stay: OpenSM sends none, and tries again at its next sweep. */
static void keep_old(struct job *job)
{
	for (uint32_t i = 0; i < job->topo.n_switches; i++) {
		osm_switch_t *sw = switch_of(job, i);

		if (sw->lft)
			memcpy(sw->new_lft, sw->lft, sw->lft_size);
	}
	job->rsm->osm->subn.subnet_initialization_error = TRUE;
}

static int prepare(struct job *job, enum rsm_distribution how, char *why, size_t size)
{
	int rc = rsm_topo_of_subnet(job->rsm, &job->topo);

	rc = rc ?: rsm_direction_make(&job->topo, &job->direction);
	if (how == RSM_DISTRIBUTE_PORTS || how == RSM_DISTRIBUTE_TURNS)
		rc = rc ?: rsm_direction_turns(&job->topo, &job->direction, &job->turns);
	rc = rc ?: job_tables(job) ?: job_saved(job);
	if (rc) {
		snprintf(why, size, "no memory");
		return rc;
	}
	if (how == RSM_DISTRIBUTE_TURNS && !job->rsm->osm->subn.opt.qos) {
		snprintf(why, size, "turns needs QoS (opensm -Q)");
		return -EINVAL;
	}
	return rsm_plan_make(&job->change, how, &job->plan, why, size);
}

/**
 * rsm_distribute - set the tables that were computed, in the order that the options say
 * @rsm: the plugin
 *
 * In OpenSM's thread, with its lock held exclusively; it is given up and taken again. What can not be
 * done this way OpenSM does in its own.
 */
void rsm_distribute(struct rsm *rsm)
{
	struct rsm_distribute *d = rsm->distribute;
	enum rsm_distribution how = rsm->opt.distribute - 1;
	struct job job = { .rsm = rsm };
	uint64_t start = rsm_microseconds();
	char why[256] = "";

	if (!rsm->opt.distribute || rsm->opt.dry_run)
		return;
	if (prepare(&job, how, why, sizeof(why))) {
		rsm_log(rsm, OSM_LOG_ERROR, "OpenSM distributes the tables itself: %s", why);
		d->counts.refused++;
		rsm_turns_free(&d->turns);
	} else {
		if (!send_all(&job)) {
			rsm_log(rsm, OSM_LOG_ERROR,
				"a switch did not answer: the tables are distributed at the next sweep");
			d->counts.failed++;
			keep_old(&job);
		}
		if (how == RSM_DISTRIBUTE_TURNS)
			remember(&job);
		/* Ports that come up again are routed once more, mostly as they were. */
		if (job.sent) {
			d->counts.distributions++;
			d->counts.smps += job.sent;
			d->counts.last_smps = job.sent;
			d->counts.last_us = rsm_microseconds() - start;
		}
	}
	job_free(&job);
	pthread_mutex_lock(&d->mutex);
	d->counts.discarded = d->turns.n;
	d->shown = d->counts;
	pthread_mutex_unlock(&d->mutex);
}

/* A table as OpenSM sends it: with lanes that the link has. */
static void lanes_in_use(osm_physp_t *port, ib_slvl_table_t *table)
{
	uint8_t lanes = ib_port_info_get_op_vls(&port->port_info);
	uint8_t mask = lanes ? (1 << (lanes - 1)) - 1 : 15;

	for (uint8_t sl = 0; sl < IB_MAX_NUM_VLS; sl++) {
		uint8_t vl = ib_slvl_table_get(table, sl);

		if (vl != 15)
			ib_slvl_table_set(table, sl, vl & mask);
	}
}

/**
 * rsm_distribute_lanes - what a break node discards stays discarded
 * @rsm: the plugin
 * @port: that packets leave by
 * @in: number of the port that they come in by
 * @out: number of @port
 * @table: that OpenSM is about to set; a turn that is discarded gets it when it is one no more
 */
void rsm_distribute_lanes(struct rsm *rsm, osm_physp_t *port, uint8_t in, uint8_t out,
			  ib_slvl_table_t *table)
{
	struct rsm_distribute *d = rsm->distribute;
	int64_t turn = -1;

	if (port->p_node->sw)
		turn = rsm_turns_index(&d->turns, cl_ntoh64(osm_node_get_node_guid(port->p_node)), in,
				       out);
	if (turn < 0)
		return;
	d->tables[turn] = *table;
	lanes_in_use(port, &d->tables[turn]);
	memset(table, 0xff, sizeof(*table));
}

static int distribute_start(struct rsm *rsm)
{
	rsm->distribute = calloc(1, sizeof(*rsm->distribute));
	if (!rsm->distribute)
		return -ENOMEM;
	pthread_mutex_init(&rsm->distribute->mutex, NULL);
	return 0;
}

static void distribute_stop(struct rsm *rsm)
{
	rsm_turns_free(&rsm->distribute->turns);
	free(rsm->distribute->tables);
	free(rsm->distribute);
	rsm->distribute = NULL;
}

static void distribute_status(struct rsm *rsm, FILE *out)
{
	struct counts counts;

	pthread_mutex_lock(&rsm->distribute->mutex);
	counts = rsm->distribute->shown;
	pthread_mutex_unlock(&rsm->distribute->mutex);
	fprintf(out,
		"{\"distributions\":%llu,\"smps\":%llu,\"waits\":%llu,\"refused\":%llu,"
		"\"failed\":%llu,\"last_smps\":%llu,\"last_us\":%llu,\"discarded\":%llu}",
		counts.distributions, counts.smps, counts.waits, counts.refused, counts.failed,
		counts.last_smps, counts.last_us, counts.discarded);
}

const struct rsm_part rsm_distribute_part = {
	.name = "distribute",
	.start = distribute_start,
	.stop = distribute_stop,
	.status = distribute_status,
};
