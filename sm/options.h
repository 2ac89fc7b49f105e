/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The plugin's option file: one "name value" a line; # begins a comment. */
#ifndef RSM_OPTIONS_H
#define RSM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#define RSM_OPTIONS_FILE "/etc/opensm/repath.conf"

/**
 * enum rsm_method - who is told what when paths change
 * @RSM_WILDCARD: every host, everything, at each heavy sweep
 * @RSM_REPATH_ONLY: the host at the source of each changed path, with the record
 * @RSM_HYBRID: every host, everything, when any path changed
 * @RSM_AFFECTED: each host that a path of changed, everything
 * @RSM_AUTO: each host that a path of changed, the records or everything, what is cheaper
 */
enum rsm_method {
	RSM_WILDCARD,
	RSM_REPATH_ONLY,
	RSM_HYBRID,
	RSM_AFFECTED,
	RSM_AUTO,
};

/**
 * enum rsm_vswitch - whose paths VMs have
 * @RSM_VSWITCH_OFF: VMs are not known of
 * @RSM_VSWITCH_PREPOPULATED: of the VF that they are in, which has a LID whether or not it is used
 * @RSM_VSWITCH_DYNAMIC: of their hypervisor
 */
enum rsm_vswitch {
	RSM_VSWITCH_OFF,
	RSM_VSWITCH_PREPOPULATED,
	RSM_VSWITCH_DYNAMIC,
};

/**
 * struct rsm_options - what the file says, or the defaults
 * @method: see enum rsm_method
 * @unpath: whether UnPath is sent: -1: with AFFECTED and AUTO, 0, 1
 * @dry_run: only log
 * @report_timeout: milliseconds until the first repetition; doubled each time
 * @report_limit: how often a report is sent at most
 * @window: reports on their way at most
 * @host_rate: reports to one host a second at most; 0: no limit
 * @coalesce: whether an unsent notice gives way to one that says more
 * @both_ends: with AUTO, who is at the other end of a changed path is told the way back
 * @unpath_wait: milliseconds that tables wait at most for the answers to UnPath
 * @link_wait: milliseconds that RePath waits at most for links that are not active yet
 * @steady: an engine's random choices are the same each time
 * @auto_records: records that AUTO sends to one host at most
 * @sm_sl: paths of the subnet manager's have the level that OpenSM's options say
 * @slow_sl: of flows to hot spots; 0: hot spots are not looked for
 * @hotspot_wait: ticks of XmitWait a second that are congestion
 * @hotspot_used: percent of its link; a congested host that sends less contributes
 * @hotspot_onset: sweeps of the performance manager that make a hot spot
 * @hotspot_calm: sweeps in a row that end it
 * @hotspot_calm_percent: of @hotspot_wait; below it a sweep is calm
 * @hotspot_mbit: what a host's link carries, Mbit/s; 0: what its port says
 * @moves_interval: milliseconds between two looks at the alias GUIDs; 0: none
 * @moves_keep: seconds that a deleted GUID is waited for
 * @moves_limit: how many of those at most
 * @vftree_even: each leaf has as many others in each lane
 * @vftree_lanes: data VLs that vFtree spreads paths over; 0: all that links have
 * @pftree_isolation: percent of what engine pftree aims at that is isolation; the rest is weights
 * @pftree_lanes: that it uses at most
 * @pftree_learn: whether hosts weigh what they have received
 * @pftree_policy: path of the file that says what is wanted of partitions; empty: nothing
 * @distribute: in which order tables are set: 0: OpenSM's, else 1 + enum rsm_distribution
 * @distribute_wait: milliseconds until packets on their way are gone
 * @updown_even: engine updown uses links evenly
 * @vswitch: see enum rsm_vswitch
 * @vswitch_routed: whether SMPs to switches go by their LIDs, not by directed routes
 * @vswitch_name: what is in the names of switches that are part of an HCA
 * @vswitch_socket: path of the socket for who moves VMs; empty: none
 * @voqsw_engine: whose tables VOQsw takes: 0: updown, 1: vftree, 2: pftree
 * @voqsw_even: whether all of these have about as many paths
 * @voqsw_hosts: whether hosts' tables are part of it
 * @voqsw_over: OpenSM's own engines get those lanes
 * @voqsw_sls: service levels that it uses at most
 * @voqsw_vls: data VLs that it uses at most; 0: all that links have
 * @status_socket: path of the socket; empty: none
 */
struct rsm_options {
	int method;
	int unpath;
	int dry_run;
	int report_timeout;
	int report_limit;
	int window;
	int host_rate;
	int coalesce;
	int both_ends;
	int unpath_wait;
	int link_wait;
	int steady;
	int auto_records;
	int slow_sl;
	int sm_sl;
	int hotspot_wait;
	int hotspot_used;
	int hotspot_onset;
	int hotspot_calm;
	int hotspot_calm_percent;
	int hotspot_mbit;
	int moves_interval;
	int moves_keep;
	int moves_limit;
	int vftree_even;
	int vftree_lanes;
	int pftree_isolation;
	int pftree_lanes;
	int pftree_learn;
	int distribute;
	int distribute_wait;
	int updown_even;
	int vswitch;
	int vswitch_routed;
	char vswitch_name[108];
	char vswitch_socket[108];
	int voqsw_engine;
	int voqsw_even;
	int voqsw_hosts;
	int voqsw_over;
	int voqsw_sls;
	int voqsw_vls;
	char status_socket[108];
	char pftree_policy[108];
};

const char *rsm_method_name(int method);
int rsm_options_read(struct rsm_options *opt, const char *path, char *why, size_t size);

#endif
