// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "mock_state.h"

/* Numbers of a new device start where none has been: far behind those of all before. */
#define NUMBERS_APART 0x1000

static const uint16_t default_pkeys[MOCK_PKEYS] = { 0xffff, 0x8001, 0x8002 };
static int last_index;
static uint32_t last_qpn = 0x100, last_key = 0x1000;

struct mock_device *mock_find_device(const char *name)
{
	struct mock_device *d;

	for (d = mock.devices; d; d = d->next)
		if (d->plugged && !strcmp(d->dev.name, name))
			return d;
	return NULL;
}

static void put_device(struct mock_device *dev)
{
	struct mock_device **at;

	if (--dev->refs)
		return;
	for (at = &mock.devices; *at != dev; at = &(*at)->next)
		;
	*at = dev->next;
	free(dev);
}

static void add_gid(struct mock_device *d, int port, int index, int type, bool ipv4)
{
	struct ibv_gid_entry *e = &d->gids[d->ngids++];

	e->gid_index = index;
	e->port_num = port;
	e->gid_type = type;
	if (ipv4) {
		e->gid.raw[10] = e->gid.raw[11] = 0xff;
		e->gid.raw[12] = 10;
		e->gid.raw[14] = d->index >> 8;
		e->gid.raw[15] = d->index;
	} else {
		e->gid.raw[0] = 0xfe;
		e->gid.raw[1] = 0x80;
		e->gid.raw[8] = 2;
		e->gid.raw[9] = port - 1;
		e->gid.raw[14] = d->index >> 8;
		e->gid.raw[15] = d->index;
	}
}

static int or_limit(int given, int usual)
{
	return given ? given : usual;
}

static int plug(const struct mock_plug *how)
{
	struct mock_device *d, **at;
	int port;

	if (mock_find_device(how->name))
		return EEXIST;
	d = mock_zalloc(sizeof(*d));
	d->refs = 1;
	d->index = ++last_index;
	d->driver = how->driver;
	d->plugged = true;
	d->dev.node_type = IBV_NODE_CA;
	d->dev.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->dev.name, sizeof(d->dev.name), "%s", how->name);
	snprintf(d->dev.dev_name, sizeof(d->dev.dev_name), "uverbs%d", d->index);
	snprintf(d->dev.dev_path, sizeof(d->dev.dev_path), "/nonexistent/%s", d->dev.dev_name);
	snprintf(d->dev.ibdev_path, sizeof(d->dev.ibdev_path), "/nonexistent/%s", d->dev.name);
	last_qpn += NUMBERS_APART;
	last_key += NUMBERS_APART;
	d->next_qpn = how->first_qpn ? how->first_qpn : last_qpn;
	d->next_key = how->first_key ? how->first_key : last_key << 8;
	d->max_qp_wr = how->max_qp_wr ? how->max_qp_wr : or_limit(how->limits.max_qp_wr, 4096);
	d->takes_wr = how->takes_wr ? how->takes_wr : d->max_qp_wr;
	d->max_cqe = how->max_cqe ? how->max_cqe : or_limit(how->limits.max_cqe, 65536);
	d->clock_khz = how->clock_khz ? how->clock_khz : 156250;
	/* Each one's stands elsewhere, the one further, the other one not so far. */
	d->clock_starts = d->index * 0x5a5a5a5a5a5aull;
	d->hidden_clock = how->hidden_clock;
	d->port = how->down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	d->last_grh.sgid_index = 0xff;
	d->limits = how->limits;
	d->without = how->without;
	memcpy(d->pkeys, how->pkeys[0] ? how->pkeys : default_pkeys, sizeof(d->pkeys));
	d->ports = how->ports ? how->ports : 1;
	d->lid = how->lid;
	d->no_apm = how->no_apm;
	d->max_rate = how->max_rate;
	for (port = 1; port <= d->ports; port++)
		add_gid(d, port, how->gid_shift, IBV_GID_TYPE_ROCE_V2, false);
	if (!how->no_ipv4)
		add_gid(d, 1, how->gid_shift + 1, IBV_GID_TYPE_ROCE_V2, true);
	if (how->more_local) {
		add_gid(d, 1, d->gids[d->ngids - 1].gid_index + 1, IBV_GID_TYPE_ROCE_V2, false);
		d->gids[d->ngids - 1].gid.raw[10] = 1;
	}
	for (at = &mock.devices; *at; at = &(*at)->next)
		;
	*at = d;
	return 0;
}

int mock_plug(const struct mock_plug *how)
{
	int ret;

	mock_lock();
	ret = plug(how);
	mock_unlock();
	return ret;
}

static __attribute__((constructor)) void plug_defaults(void)
{
	/* A kernel's locks are not the child's; the worker that may hold this one is not in it. */
	pthread_atfork(mock_lock, mock_unlock, mock_unlock);
	mock_plug(&(struct mock_plug){ .name = "mock0" });
	mock_plug(&(struct mock_plug){ .name = "mock1" });
}

int mock_unplug(const char *name)
{
	struct mock_device *d;
	int ret = ENODEV;

	mock_lock();
	d = mock_find_device(name);
	if (d) {
		ret = d->contexts ? EBUSY : 0;
		if (!ret) {
			d->plugged = false;
			put_device(d);
		}
	}
	mock_unlock();
	return ret;
}

void mock_port_up(const char *name)
{
	struct mock_device *d;

	mock_lock();
	d = mock_find_device(name);
	if (d)
		d->port = IBV_PORT_ACTIVE;
	mock_unlock();
}

void mock_add_ipv4(const char *name)
{
	struct mock_device *d;

	mock_lock();
	d = mock_find_device(name);
	if (d)
		add_gid(d, 1, d->gids[d->ngids - 1].gid_index + 1, IBV_GID_TYPE_ROCE_V2, true);
	mock_unlock();
}

void mock_next_key(const char *name, uint32_t key)
{
	struct mock_device *d;

	mock_lock();
	d = mock_find_device(name);
	if (d)
		d->next_key = key;
	mock_unlock();
}

struct ibv_global_route mock_last_grh(const char *name)
{
	struct ibv_global_route grh = { .sgid_index = 0xff };
	struct mock_device *d;

	mock_lock();
	d = mock_find_device(name);
	if (d)
		grh = d->last_grh;
	mock_unlock();
	return grh;
}

uint16_t mock_qp_pkey(const struct mock_qp *qp)
{
	return mock_context(qp->qp.context)->device->pkeys[qp->attr.pkey_index];
}

uint16_t mock_pkey(uint32_t qpn)
{
	struct mock_qp *qp;
	uint16_t ret = 0;

	mock_lock();
	qp = mock_find_qp(qpn);
	if (qp)
		ret = mock_qp_pkey(qp);
	mock_unlock();
	return ret;
}

void mock_set_pkey(const char *name, int index, uint16_t pkey)
{
	struct mock_device *d;

	mock_lock();
	d = mock_find_device(name);
	if (d)
		d->pkeys[index] = pkey;
	mock_unlock();
}

int mock_path_mtu(uint32_t qpn)
{
	struct mock_qp *qp;
	int ret = -1;

	mock_lock();
	qp = mock_find_qp(qpn);
	if (qp)
		ret = qp->attr.path_mtu;
	mock_unlock();
	return ret;
}

int mock_path_sl(uint32_t qpn)
{
	struct mock_qp *qp;
	int ret = -1;

	mock_lock();
	qp = mock_find_qp(qpn);
	if (qp)
		ret = qp->attr.ah_attr.sl;
	mock_unlock();
	return ret;
}

void mock_path(uint32_t qpn, uint16_t *dlid, uint8_t *sl, uint8_t *rate)
{
	struct mock_qp *qp;

	mock_lock();
	qp = mock_find_qp(qpn);
	*dlid = qp ? qp->attr.ah_attr.dlid : 0;
	*sl = qp ? qp->attr.ah_attr.sl : 0;
	*rate = qp ? qp->attr.ah_attr.static_rate : 0;
	mock_unlock();
}

void mock_lmc(unsigned int lmc)
{
	mock_lock();
	mock.lmc = lmc;
	mock_unlock();
}

void mock_set_path(uint32_t qpn, uint16_t dlid, uint8_t sl, uint8_t rate)
{
	struct mock_qp *qp;

	mock_lock();
	qp = mock_find_qp(qpn);
	if (qp) {
		qp->attr.ah_attr.dlid = dlid;
		qp->attr.ah_attr.sl = sl;
		qp->attr.ah_attr.static_rate = rate;
	}
	mock_unlock();
}

void mock_async_event(const char *name, int type)
{
	struct mock_context *c;

	mock_lock();
	for (c = mock.contexts; c; c = c->next)
		if (!strcmp(c->device->dev.name, name))
			mock_async(&c->vctx.context, type, (void *)(uintptr_t)1);
	mock_unlock();
}

struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list;
	struct mock_device *d;
	int n = 0, err;

	mock_lock();
	err = mock_failing("ibv_get_device_list");
	for (d = mock.devices; d; d = d->next)
		n += d->plugged;
	list = mock_zalloc((n + 1) * sizeof(*list));
	n = 0;
	for (d = mock.devices; d && !err; d = d->next)
		if (d->plugged) {
			d->refs++;
			list[n++] = &d->dev;
		}
	mock_unlock();
	if (err) {
		free(list);
		errno = err;
		return NULL;
	}
	if (num)
		*num = n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	int i;

	mock_lock();
	for (i = 0; list[i]; i++)
		put_device((struct mock_device *)list[i]);
	mock_unlock();
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	struct mock_device *d = (struct mock_device *)device;
	union ibv_gid *g = &d->gids[0].gid;

	return g->global.interface_id;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return ((struct mock_device *)device)->index;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct mock_device *d = (struct mock_device *)device;
	struct mock_context *c = mock_zalloc(sizeof(*c));
	int err;

	mock_lock();
	err = mock_failing("ibv_open_device");
	if (!err && !d->plugged)
		err = ENODEV;
	if (!err)
		err = mock_events_open(&c->events);
	if (err) {
		mock_unlock();
		free(c);
		errno = err;
		return NULL;
	}
	c->device = d;
	d->refs++;
	d->contexts++;
	mock_fill_context(c);
	c->next = mock.contexts;
	mock.contexts = c;
	mock.live[MOCK_CONTEXT]++;
	mock_start_worker();
	mock_unlock();
	return &c->vctx.context;
}

int ibv_close_device(struct ibv_context *context)
{
	struct mock_context *c = mock_context(context), **at;
	struct mock_qp *qp;

	mock_lock();
	for (qp = mock.qps; qp; qp = qp->next)
		if (qp->qp.context == context)
			abort();	/* the tests' own order is wrong: release everything first */
	for (at = &mock.contexts; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	c->device->contexts--;
	put_device(c->device);
	mock.live[MOCK_CONTEXT]--;
	mock_events_close(&c->events);
	close(context->cmd_fd);
	mock_unlock();
	free(c);
	return 0;
}
