// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"
#include "vm_learn.h"
#include "vm_words.h"

#include <opensm/osm_db_pack.h>
#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

#define UNKNOWN "the port has not said its GUIDs, and is asked again when OpenSM sweeps"

static const struct verb {
	const char *name;
	bool has_place, is_general;
} verbs[] = {
	[RSM_VM_PLAN] = { "plan", true },    [RSM_VM_BEGIN] = { "begin", true },
	[RSM_VM_END] = { "end", false },     [RSM_VM_CANCEL] = { "cancel", false },
	[RSM_VM_MOVE] = { "move", true },    [RSM_VM_START] = { "start", true },
	[RSM_VM_STOP] = { "stop", false },   [RSM_VM_LIST] = { "list", false, true },
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

/**
 * rsm_vm_words - take a line apart
 * @line: it; the words point into it
 * @words: filled in
 * @why: the reason of a failure, for a person; it has nothing of the line in it
 * @size: of @why
 *
 * Return: 0 or -EINVAL.
 */
int rsm_vm_words(char *line, struct rsm_vm_words *words, char *why, size_t size)
{
	char *save, *word = strtok_r(line, " \t\r", &save);
	size_t verb = 0;

	*words = (struct rsm_vm_words) { 0 };
	while (verb < N_VERBS && (!word || strcmp(word, verbs[verb].name)))
		verb++;
	if (verb == N_VERBS) {
		snprintf(why, size, "the first word is none of plan, begin, end, cancel, move, start, stop, list");
		return -EINVAL;
	}
	words->verb = verb;
	words->vm = strtok_r(NULL, " \t\r", &save);
	if (verbs[verb].has_place)
		words->place = strtok_r(NULL, " \t\r", &save);
	if ((!words->vm && !verbs[verb].is_general) || (verbs[verb].has_place && !words->place)) {
		snprintf(why, size, "%s wants a VM%s", verbs[verb].name,
			 verbs[verb].has_place ? " and where to" : "");
		return -EINVAL;
	}
	while ((word = strtok_r(NULL, " \t\r", &save))) {
		if (!strcmp(word, "limited")) {
			words->limited = true;
		} else if (!strcmp(word, "closed")) {
			words->closing = true;
		} else {
			snprintf(why, size, "behind them there may be limited and closed");
			return -EINVAL;
		}
	}
	return 0;
}

/* A LID, or a GUID: what is above all LIDs. Return: the rest of the word, or NULL. */
static const char *number_of(const char *word, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(word, &end, 0);
	return errno || end == word || !*number ? NULL : end;
}

/**
 * rsm_vm_find - whom a word means
 * @rsm: the plugin
 * @word: a LID, a VM's GUID, or the GUID of a VF's port: that one goes along with its VM
 * @move: its @lid, @from and @carried are filled in
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0, -ENOENT or -EAGAIN. A VF that is not there just now, or not known, has its LID in @move all the same.
 */
int rsm_vm_find(struct rsm *rsm, const char *word, struct rsm_vm_move *move, char *why,
		size_t size)
{
	osm_subn_t *subn = &rsm->osm->subn;
	osm_port_t *port = NULL;
	uint16_t lid, last;
	uint64_t number;
	const char *rest = number_of(word, &number);

	if (rest && !*rest && number <= IB_LID_UCAST_END_HO) {
		port = osm_get_port_by_lid_ho(subn, number);
		move->lid = number;
	} else if (rest && !*rest) {
		port = osm_get_port_by_guid(subn, cl_hton64(number));
		move->carried = port;
		if (!port)
			port = osm_get_port_by_alias_guid(subn, cl_hton64(number));
		if (!port && !osm_db_guid2lid_get(rsm->osm->sm.lid_mgr.p_g2l, number, &lid, &last))
			move->lid = lid;
	}
	/* A sweep has found it gone, and OpenSM has not yet forgotten it. */
	if (port && move->carried)
		move->lid = cl_ntoh16(osm_port_get_base_lid(port));
	if (!port || !rsm_place_of(port, &move->from)) {
		snprintf(why, size, "no such VM: a LID, its GUID, or that of its VF's port is wanted");
		return -ENOENT;
	}
	if (osm_port_get_lmc(port)) {
		snprintf(why, size, "it has several LIDs (LMC)");
		return -ENOENT;
	}
	move->lid = cl_ntoh16(osm_port_get_base_lid(port));
	if (!move->lid) {
		snprintf(why, size, "it has no LID: OpenSM's log says why");
		return -ENOENT;
	}
	/* Its GUIDs would be written over. */
	if (!move->carried && !rsm_vm_knows(port)) {
		snprintf(why, size, "it is not known which VM that is: " UNKNOWN);
		return -EAGAIN;
	}
	return 0;
}

/* A VF that no VM has: for one that comes without its HCA somebody's port must be there, with a LID. */
static bool is_free(struct rsm *rsm, const struct rsm_place *place, const struct rsm_vm_move *move, bool *unknown)
{
	osm_port_t *port = rsm_place_port(rsm, place);

	if (port && !rsm_vm_knows(port)) {
		*unknown = true;
		return false;
	}
	if (!move->carried)
		return port && osm_port_get_base_lid(port) && !rsm_vm_guid(port);
	return rsm->opt.vswitch == RSM_VSWITCH_DYNAMIC ? !port : !port || !rsm_vm_guid(port);
}

static int find_vf(struct rsm *rsm, osm_switch_t *sw, rsm_vm_taken taken, void *context,
		   struct rsm_vm_move *move, char *why, size_t size)
{
	struct rsm_place first = { 0 };
	bool unknown = false;
	osm_port_t *pf;

	move->to.sw = cl_ntoh64(osm_node_get_node_guid(sw->p_node));
	pf = rsm_place_pf(rsm, move->to.sw);
	if (!rsm_is_vswitch(rsm, sw) || !pf || !rsm_place_of(pf, &first)) {
		snprintf(why, size, "that switch is not part of an HCA");
		return -ENOENT;
	}
	for (unsigned int i = first.port + 1; i < sw->num_ports; i++) {
		move->to.port = i;
		if (is_free(rsm, &move->to, move, &unknown) && !taken(context, &move->to))
			return 0;
	}
	snprintf(why, size, unknown ? "no VF is free there, but not of all it is known: " UNKNOWN :
				      "no VF is free there");
	return unknown ? -EAGAIN : -ENOENT;
}

/**
 * rsm_vm_find_place - where a word means
 * @rsm: the plugin
 * @word: a LID or GUID: of a vSwitch or its PF, for a VF of it that is free, or of a VF or host, for
 *	its place; or of a switch, with a / and the port's number
 * @taken: whether somebody else comes there
 * @context: for @taken
 * @move: its @to and @other are filled in; all but @carried may be 0
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0, -ENOENT, -EEXIST or -EAGAIN.
 */
int rsm_vm_find_place(struct rsm *rsm, const char *word, rsm_vm_taken taken, void *context,
		      struct rsm_vm_move *move, char *why, size_t size)
{
	osm_subn_t *subn = &rsm->osm->subn;
	osm_port_t *port = NULL;
	osm_switch_t *sw = NULL;
	uint64_t number;
	const char *rest = number_of(word, &number);
	int rc = 0;

	if (rest && number <= IB_LID_UCAST_END_HO)
		port = osm_get_port_by_lid_ho(subn, number);
	else if (rest)
		port = osm_get_port_by_guid(subn, cl_hton64(number));
	if (port && port->p_node->sw)
		sw = port->p_node->sw;
	else if (rest && !port)
		sw = osm_get_switch_by_guid(subn, cl_hton64(number));
	if (sw && *rest == '/') {
		move->to.sw = cl_ntoh64(osm_node_get_node_guid(sw->p_node));
		rest = number_of(rest + 1, &number);
		if (!rest || *rest || !number || number >= sw->num_ports)
			rc = -ENOENT;
		else
			move->to.port = number;
	} else if (sw) {
		rc = find_vf(rsm, sw, taken, context, move, why, size);
		if (rc)
			return rc;
	} else if (!port || *rest || !rsm_place_of(port, &move->to)) {
		rc = -ENOENT;
	} else {
		sw = osm_get_switch_by_guid(subn, cl_hton64(move->to.sw));
		if (sw && rsm_is_vswitch(rsm, sw) && !rsm_place_is_vf(rsm, &move->to)) {
			rc = find_vf(rsm, sw, taken, context, move, why, size);
			if (rc)
				return rc;
		}
	}
	if (rc) {
		snprintf(why, size, "no such place: a LID or GUID of a hypervisor or VF is wanted");
		return rc;
	}
	if (rsm_place_is(&move->to, &move->from) || taken(context, &move->to)) {
		snprintf(why, size, rsm_place_is(&move->to, &move->from) ? "it is there" :
								       "another comes there");
		return -EEXIST;
	}
	port = rsm_place_port(rsm, &move->to);
	if (!port && !move->carried && move->lid) {
		snprintf(why, size, "no VF is there");
		return -ENOENT;
	}
	if (port && !move->carried && !osm_port_get_base_lid(port)) {
		snprintf(why, size, "the VF there has no LID: OpenSM's log says why");
		return -ENOENT;
	}
	if (port && !move->carried && !rsm_vm_knows(port)) {
		snprintf(why, size, "which VM is there is not known: " UNKNOWN);
		return -EAGAIN;
	}
	/* Its VF may go before the other one comes, with its own. */
	if (port && !move->carried && rsm_vm_guid(port)) {
		snprintf(why, size, "another VM is there");
		return -EEXIST;
	}
	move->other = port ? cl_ntoh16(osm_port_get_base_lid(port)) : 0;
	return 0;
}
