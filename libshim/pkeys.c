// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * P_Keys. A queue pair names its partition by an index into its port's table, which the subnet manager
 * fills in for each port in its own order: after a move an index of the application stands for the
 * device's that has the same P_Key. Completions tell an index only of queue pair 1, which is the
 * kernel's: theirs is not translated.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "objects.h"
#include "recreate.h"

/* What the port has now, by the device's index; NULL: none, or it can not be read. */
static __be16 *read_table(struct rp_context *ctx, int port, int *n)
{
	struct ibv_port_attr p = { 0 };
	__be16 *table;
	int i;

	*n = 0;
	if (RP_REAL(rp_real.ibv_query_port(ctx->real, port, (void *)&p)) || !p.pkey_tbl_len)
		return NULL;
	table = calloc(p.pkey_tbl_len, sizeof(*table));
	if (!table)
		return NULL;
	*n = p.pkey_tbl_len;
	for (i = 0; i < *n; i++)
		if (RP_REAL(rp_real.ibv_query_pkey(ctx->real, port, i, &table[i])))
			table[i] = 0;
	return table;
}

static struct rp_pkeys *of_port(const struct rp_context *ctx, int port)
{
	return port < 1 || port > 4 ? NULL : (struct rp_pkeys *)&ctx->pkeys[port - 1];
}

int rp_real_pkey(const struct rp_context *ctx, int port, int index)
{
	const struct rp_pkeys *p = of_port(ctx, port);

	return p && p->map && index >= 0 && index < p->n ? p->map[index] : index;
}

int rp_virtual_pkey(const struct rp_context *ctx, int port, int index)
{
	const struct rp_pkeys *p = of_port(ctx, port);
	int i;

	for (i = 0; p && p->map && i < p->n; i++)
		if (p->map[i] == index)
			return i;
	return index;
}

bool rp_pkey_is_there(const struct rp_context *ctx, int port, int index)
{
	const struct rp_pkeys *p = of_port(ctx, port);
	__be16 key;

	if (!p || !p->map || index < 0 || index >= p->n || !p->key[index])
		return true;	/* not known to be another one's */
	return !RP_REAL(rp_real.ibv_query_pkey(ctx->real, port, p->map[index], &key)) && key == p->key[index];
}

static void save_port(struct rp_pkeys *p, __be16 *table, int n)
{
	int i;

	if (!p->map) {
		free(p->key);
		p->key = table;
		p->n = n;
		return;
	}
	/* One that could not be read is taken for what it was. */
	for (i = 0; i < p->n; i++)
		if (p->map[i] < n && table[p->map[i]])
			p->key[i] = table[p->map[i]];
	free(table);
}

void rp_pkeys_save(struct rp_context *ctx)
{
	__be16 *table;
	int port, n;

	/* Once in a move: a device that is left again may have been the wrong one. */
	if (ctx->pkeys_saved)
		return;
	ctx->pkeys_saved = true;
	for (port = 1; port <= ctx->limits.phys_port_cnt && port <= 4; port++) {
		table = read_table(ctx, port, &n);
		if (table)
			save_port(of_port(ctx, port), table, n);
	}
}

static bool in_use(const struct rp_context *ctx, int port, int index)
{
	const struct rp_qp *qp;

	list_for_each(qp, &ctx->qps, node)
		if (qp->attr_mask & IBV_QP_PKEY_INDEX && qp->attr.port_num == port &&
		    qp->attr.pkey_index == index)
			return true;
	return false;
}

static int find(__be16 key, const __be16 *table, int n, const bool *taken)
{
	int i;

	for (i = 0; i < n; i++)
		if (table[i] == key && !(taken && taken[i]))
			return i;
	return -1;
}

/* Each index gets one of the device's: of the same P_Key if there is one, else its own, else any that is
 * left, so that the application finds all that there are. */
static void fill(struct rp_pkeys *p, int *map, const __be16 *table, int n, bool *taken)
{
	int i;

	for (i = 0; i < p->n; i++) {
		map[i] = -1;
		if (i < n && p->key[i] && table[i] == p->key[i])
			taken[map[i] = i] = true;
	}
	for (i = 0; i < p->n; i++) {
		if (map[i] >= 0 || !p->key[i])
			continue;
		map[i] = find(p->key[i], table, n, taken);
		if (map[i] >= 0)
			taken[map[i]] = true;
		else	/* there twice before, now once */
			map[i] = find(p->key[i], table, n, NULL);
	}
	for (i = 0; i < p->n; i++)
		if (map[i] < 0 && !taken[i])
			taken[map[i] = i] = true;
	for (i = 0; i < p->n; i++) {
		int at = 0;

		if (map[i] >= 0)
			continue;
		while (at < p->n && taken[at])
			at++;
		map[i] = at < p->n ? at : i;
		taken[map[i]] = true;
	}
}

/* Room for as many as the device has, too. */
static int make_room(struct rp_pkeys *p, int n)
{
	__be16 *key;

	if (p->n >= n)
		return 0;
	key = realloc(p->key, n * sizeof(*key));
	if (!key)
		return -ENOMEM;
	p->key = key;
	while (p->n < n)
		p->key[p->n++] = 0;
	return 0;
}

static int map_port(struct rp_context *ctx, int port, const __be16 *table, int n, char *why, size_t room)
{
	struct rp_pkeys *p = of_port(ctx, port);
	bool *taken;
	int *map, i;

	for (i = 0; i < p->n; i++)
		if (p->key[i] && in_use(ctx, port, i) && find(p->key[i], table, n, NULL) < 0) {
			snprintf(why, room, "%s port %d has no P_Key 0x%04x; have it put into that partition",
				 ctx->name, port, be16toh(p->key[i]));
			return -EAGAIN;
		}
	if (make_room(p, n))
		return -ENOMEM;
	map = malloc(p->n * sizeof(*map));
	taken = calloc(p->n, sizeof(*taken));
	if (map && taken) {
		fill(p, map, table, n, taken);
		free(p->map);
		p->map = map;
	} else {
		free(map);
	}
	free(taken);
	return map && taken ? 0 : -ENOMEM;
}

int rp_pkeys_map(struct rp_context *ctx, char *why, size_t room)
{
	int port, n, ret = 0;
	__be16 *table;

	for (port = 1; port <= 4 && !ret; port++) {
		if (!of_port(ctx, port)->n)
			continue;
		table = read_table(ctx, port, &n);
		ret = map_port(ctx, port, table, n, why, room);
		free(table);
		if (ret == -ENOMEM)
			snprintf(why, room, "out of memory");
	}
	return ret;
}

void rp_pkeys_free(struct rp_context *ctx)
{
	int i;

	for (i = 0; i < 4; i++) {
		free(ctx->pkeys[i].key);
		free(ctx->pkeys[i].map);
	}
}
