/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* OpenSM's alias GUIDs, and a log that says nothing, for who has no OpenSM. */
#ifndef TESTS_SM_OPENSM_ALIAS_H
#define TESTS_SM_OPENSM_ALIAS_H

#include <stdlib.h>

#include <opensm/osm_log.h>
#include <opensm/osm_port.h>

osm_alias_guid_t *osm_alias_guid_new(IN const ib_net64_t guid, IN osm_port_t *port)
{
	osm_alias_guid_t *alias = calloc(1, sizeof(*alias));

	alias->alias_guid = guid;
	alias->p_base_port = port;
	return alias;
}

void osm_alias_guid_delete(IN OUT osm_alias_guid_t **alias)
{
	free(*alias);
}

void osm_log(IN osm_log_t *const log, IN const osm_log_level_t level, IN const char *format, ...)
{
	(void)log;
	(void)level;
	(void)format;
}

#endif
