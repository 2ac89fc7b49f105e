// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices. One ibv_device of ours stands for a name for ever, so that pointers from one list are good
 * in the next, as they are with libibverbs; what it refers to follows the last list.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* all below, and rp_device.real */
static struct list_head devices = { { &devices.n, &devices.n } };
static struct ibv_device **held;	/* the last real list: keeps its devices alive */

static struct rp_device *find(const char *name)
{
	struct rp_device *d;

	list_for_each(d, &devices, node)
		if (!strncmp(d->dev.name, name, sizeof(d->dev.name)))
			return d;
	return NULL;
}

static struct rp_device *device_get(struct ibv_device *real)
{
	struct rp_device *d = find(real->name);

	if (!d) {
		d = calloc(1, sizeof(*d));
		if (!d)
			return NULL;
		d->dev = *real;
		list_add_tail(&devices, &d->node);
	}
	d->real = real;
	return d;
}

/* The application may be reading what stays as it is, and its name does. */
static void renew(struct ibv_device *dev, const struct ibv_device *now)
{
	size_t behind = offsetof(struct ibv_device, dev_name);

	if (memcmp(dev, now, offsetof(struct ibv_device, name)))
		memcpy(dev, now, offsetof(struct ibv_device, name));
	if (memcmp((char *)dev + behind, (const char *)now + behind, sizeof(*dev) - behind))
		memcpy((char *)dev + behind, (const char *)now + behind, sizeof(*dev) - behind);
}

/* Takes over a fresh real list. */
static void hold(struct ibv_device **list)
{
	struct rp_device *d;
	int i;

	list_for_each(d, &devices, node) {
		struct ibv_device *now = NULL;

		for (i = 0; list[i]; i++)
			if (!strncmp(d->dev.name, list[i]->name, sizeof(d->dev.name)))
				now = list[i];
		d->real = now;
		if (now)
			renew(&d->dev, now);
	}
	if (held)
		RP_REAL_VOID(rp_real.ibv_free_device_list(held));
	held = list;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **real, **list;
	int n = 0, i;

	if (RP_PASSING)
		return rp_real.ibv_get_device_list(num_devices);
	if (num_devices)
		*num_devices = 0;
	pthread_mutex_lock(&lock);
	real = RP_REAL(rp_real.ibv_get_device_list(&n));
	if (!real) {
		pthread_mutex_unlock(&lock);
		return NULL;
	}
	list = calloc(n + 1, sizeof(*list));
	for (i = 0; list && i < n; i++) {
		struct rp_device *d = device_get(real[i]);

		if (!d) {
			free(list);
			list = NULL;
			break;
		}
		list[i] = &d->dev;
	}
	hold(real);
	pthread_mutex_unlock(&lock);
	if (!list)
		errno = ENOMEM;
	else if (num_devices)
		*num_devices = n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	if (RP_PASSING)
		rp_real.ibv_free_device_list(list);
	else
		free(list);
}

struct rp_device *rp_device_of(struct ibv_device *real)
{
	struct rp_device *d;

	pthread_mutex_lock(&lock);
	d = find(real->name);
	if (!d) {
		d = device_get(real);
		if (d)
			d->real = NULL;	/* not ours to keep: the next list says */
	}
	pthread_mutex_unlock(&lock);
	return d;
}

/* The device of that name as it is now; caller holds the lock, so that it stays. */
static struct ibv_device *now(struct ibv_device *d)
{
	struct rp_device *dev = (struct rp_device *)d;
	struct ibv_device **real;

	if (!dev->real) {
		real = RP_REAL(rp_real.ibv_get_device_list(NULL));
		if (real)
			hold(real);
	}
	return dev->real;
}

struct ibv_context *rp_device_open(struct rp_device *dev)
{
	struct ibv_context *context = NULL;
	struct ibv_device *real;

	pthread_mutex_lock(&lock);
	real = now(&dev->dev);
	if (real)
		context = RP_REAL(rp_real.ibv_open_device(real));
	else
		errno = ENODEV;
	pthread_mutex_unlock(&lock);
	return context;
}

void rp_devices_hold(struct ibv_device **list)
{
	pthread_mutex_lock(&lock);
	hold(list);
	pthread_mutex_unlock(&lock);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	if (RP_PASSING)
		return rp_real.ibv_get_device_name(device);
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	struct ibv_device *real;
	__be64 guid = 0;

	if (RP_PASSING)
		return rp_real.ibv_get_device_guid(device);
	pthread_mutex_lock(&lock);
	real = now(device);
	if (real)
		guid = RP_REAL(rp_real.ibv_get_device_guid(real));
	pthread_mutex_unlock(&lock);
	return guid;
}

int ibv_get_device_index(struct ibv_device *device)
{
	struct ibv_device *real;
	int index = -1;

	if (RP_PASSING)
		return rp_real.ibv_get_device_index(device);
	pthread_mutex_lock(&lock);
	real = now(device);
	if (real)
		index = RP_REAL(rp_real.ibv_get_device_index(real));
	pthread_mutex_unlock(&lock);
	return index;
}
