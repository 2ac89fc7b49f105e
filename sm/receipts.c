// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How much each host receives: what OpenSM's performance manager reads of the switch's port that it
 * is at, for engines that go by weights. Of older readings an eighth is forgotten at each.
 */
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>

#include "plugin.h"
#include "receipts.h"

/* Words of 4 bytes, as the counters have them. */
struct receipt {
	uint64_t guid;
	uint8_t port;
	uint64_t words;
};

/**
 * struct rsm_receipts - by port
 * @mutex: for all below; no lock of OpenSM is taken while it is held
 * @tree: of struct receipt
 * @ports: in it
 * @readings: that have come
 */
struct rsm_receipts {
	pthread_mutex_t mutex;
	void *tree;
	unsigned int ports;
	unsigned long long readings;
};

static int by_port(const void *a, const void *b)
{
	const struct receipt *one = a, *other = b;

	if (one->guid != other->guid)
		return one->guid < other->guid ? -1 : 1;
	return (int)one->port - (int)other->port;
}

/* Returns NULL without memory. */
static struct receipt *find_or_add(struct rsm_receipts *receipts, uint64_t guid, uint8_t port)
{
	struct receipt *new = calloc(1, sizeof(*new)), **found;

	if (!new)
		return NULL;
	new->guid = guid;
	new->port = port;
	found = tsearch(new, &receipts->tree, by_port);
	if (!found || *found != new)
		free(new);
	else
		receipts->ports++;
	return found ? *found : NULL;
}

/**
 * rsm_received - by what a port of a switch leads to
 * @rsm: the plugin
 * @guid: of the switch's node
 * @port: its port
 *
 * Return: words of 4 bytes in the last readings, or 0: it is not known, or not counted.
 */
uint64_t rsm_received(struct rsm *rsm, uint64_t guid, uint8_t port)
{
	struct rsm_receipts *receipts = rsm->receipts;
	struct receipt wanted = { .guid = guid, .port = port }, **found;
	uint64_t words;

	if (!receipts)
		return 0;
	pthread_mutex_lock(&receipts->mutex);
	found = tfind(&wanted, &receipts->tree, by_port);
	words = found ? (*found)->words : 0;
	pthread_mutex_unlock(&receipts->mutex);
	return words;
}

/* With the lock of the performance manager's data base held, many times in a row. */
static void receipts_event(struct rsm *rsm, osm_epi_event_id_t id, void *data)
{
	struct rsm_receipts *receipts = rsm->receipts;
	const osm_epi_dc_event_t *sent = data;
	struct receipt *receipt;

	if (!receipts || id != OSM_EVENT_ID_PORT_DATA_COUNTERS)
		return;
	pthread_mutex_lock(&receipts->mutex);
	receipt = find_or_add(receipts, sent->port_id.node_guid, sent->port_id.port_num);
	if (receipt)
		receipt->words = receipt->words - receipt->words / 8 + sent->xmit_data;
	receipts->readings++;
	pthread_mutex_unlock(&receipts->mutex);
}

static void receipts_status(struct rsm *rsm, FILE *out)
{
	struct rsm_receipts *receipts = rsm->receipts;
	unsigned long long readings;
	unsigned int ports;

	if (!receipts) {
		fprintf(out, "null");
		return;
	}
	pthread_mutex_lock(&receipts->mutex);
	ports = receipts->ports;
	readings = receipts->readings;
	pthread_mutex_unlock(&receipts->mutex);
	fprintf(out, "{\"ports\":%u,\"readings\":%llu}", ports, readings);
}

static int receipts_start(struct rsm *rsm)
{
	struct rsm_receipts *receipts;

	if (!rsm->opt.pftree_learn)
		return 0;
	if (!rsm->osm->subn.opt.perfmgr)
		rsm_log(rsm, OSM_LOG_ERROR, "pftree_learn is set, but OpenSM's option perfmgr is not: "
			"all hosts weigh the same");
	receipts = calloc(1, sizeof(*receipts));
	if (!receipts)
		return -ENOMEM;
	pthread_mutex_init(&receipts->mutex, NULL);
	rsm->receipts = receipts;
	return 0;
}

static void receipts_stop(struct rsm *rsm)
{
	struct rsm_receipts *receipts = rsm->receipts;

	if (!receipts)
		return;
	tdestroy(receipts->tree, free);
	pthread_mutex_destroy(&receipts->mutex);
	free(receipts);
	rsm->receipts = NULL;
}

const struct rsm_part rsm_receipts_part = {
	.name = "receipts",
	.start = receipts_start,
	.stop = receipts_stop,
	.event = receipts_event,
	.status = receipts_status,
};
