// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory, which is lost with its device. */
#include "mock_state.h"

struct mock_dm {
	struct ibv_dm dm;
	size_t length;
	char *data;
	struct mock_dm *next;	/* those that can be imported */
};

static struct mock_dm *all;

static bool within(const struct mock_dm *d, uint64_t offset, size_t length)
{
	return offset <= d->length && length <= d->length - offset;
}

static int to_dm(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
	struct mock_dm *d = (struct mock_dm *)dm;

	if (!within(d, offset, length))
		return EFAULT;
	memcpy(d->data + offset, host, length);
	return 0;
}

static int from_dm(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	struct mock_dm *d = (struct mock_dm *)dm;

	if (!within(d, offset, length))
		return EFAULT;
	memcpy(host, d->data + offset, length);
	return 0;
}

static struct mock_dm *new_dm(struct ibv_context *c, size_t length, char *data)
{
	struct mock_dm *d = mock_zalloc(sizeof(*d));

	d->dm.context = c;
	d->dm.memcpy_to_dm = to_dm;
	d->dm.memcpy_from_dm = from_dm;
	d->length = length;
	d->data = data;
	return d;
}

struct ibv_dm *mock_alloc_dm(struct ibv_context *c, struct ibv_alloc_dm_attr *attr)
{
	struct mock_dm *d = new_dm(c, attr->length, mock_zalloc(attr->length));

	mock_lock();
	d->dm.handle = ++mock.handles;
	d->next = all;
	all = d;
	mock.live[MOCK_FIXED]++;
	mock_unlock();
	return &d->dm;
}

int mock_free_dm(struct ibv_dm *dm)
{
	struct mock_dm *d = (struct mock_dm *)dm, **at;

	mock_lock();
	for (at = &all; *at != d; at = &(*at)->next)
		;
	*at = d->next;
	mock.live[MOCK_FIXED]--;
	mock_unlock();
	free(d->data);
	free(d);
	return 0;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *c, uint32_t handle)
{
	struct mock_dm *of, *d = NULL;

	mock_lock();
	for (of = all; of && of->dm.handle != handle; of = of->next)
		;
	if (of) {
		d = new_dm(c, of->length, of->data);
		d->dm.handle = handle;
		mock.live[MOCK_FIXED]++;
	}
	mock_unlock();
	if (!d) {
		errno = ENOENT;
		return NULL;
	}
	return &d->dm;
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	mock_lock();
	mock.live[MOCK_FIXED]--;
	mock_unlock();
	free(dm);
}

struct ibv_mr *mock_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			      unsigned int access)
{
	struct mock_dm *d = (struct mock_dm *)dm;

	if (!within(d, offset, length)) {
		errno = EINVAL;
		return NULL;
	}
	return ibv_reg_mr_iova2(pd, d->data + offset, length, 0, access);
}
