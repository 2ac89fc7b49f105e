// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory, which is lost with its device. */
#include "mock_state.h"

struct mock_dm {
	struct ibv_dm dm;
	size_t length;
	char data[];
};

static int to_dm(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
	struct mock_dm *d = (struct mock_dm *)dm;

	if (offset > d->length || length > d->length - offset)
		return EFAULT;
	memcpy(d->data + offset, host, length);
	return 0;
}

static int from_dm(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	struct mock_dm *d = (struct mock_dm *)dm;

	if (offset > d->length || length > d->length - offset)
		return EFAULT;
	memcpy(host, d->data + offset, length);
	return 0;
}

struct ibv_dm *mock_alloc_dm(struct ibv_context *c, struct ibv_alloc_dm_attr *attr)
{
	struct mock_dm *d = mock_zalloc(sizeof(*d) + attr->length);

	d->dm.context = c;
	d->dm.memcpy_to_dm = to_dm;
	d->dm.memcpy_from_dm = from_dm;
	d->length = attr->length;
	return &d->dm;
}

int mock_free_dm(struct ibv_dm *dm)
{
	free(dm);
	return 0;
}
