// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What another process would import, within this one. */
#include <unistd.h>

#include "mock_state.h"

/* Which device it is of can not be seen from the descriptor: that of the oldest context. */
struct ibv_context *ibv_import_device(int fd)
{
	struct ibv_device *device = NULL;
	struct ibv_context *context;
	struct mock_context *c;

	mock_lock();
	for (c = mock.contexts; c; c = c->next)
		device = &c->device->dev;
	mock_unlock();
	context = device ? ibv_open_device(device) : NULL;
	if (!context)
		return NULL;
	close(context->cmd_fd);
	context->cmd_fd = fd;
	return context;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct mock_pd *pd = mock_zalloc(sizeof(*pd)), *of;

	mock_lock();
	for (of = mock.pds; of; of = of->next)
		if (of->pd.handle == handle &&
		    mock_context(of->pd.context)->device == mock_context(context)->device)
			break;
	if (of) {
		pd->pd.context = context;
		pd->pd.handle = handle;
		pd->parent_of = of;
		of->users++;
		mock.live[MOCK_PD]++;
	}
	mock_unlock();
	if (of)
		return &pd->pd;
	free(pd);
	errno = ENOENT;
	return NULL;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	if (ibv_dealloc_pd(pd))
		abort();
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct mock_mr *m = mock_zalloc(sizeof(*m)), *of;

	mock_lock();
	for (of = mock.mrs; of; of = of->next)
		if (of->mr.handle == handle && mock_same_pd(of->mr.pd, pd))
			break;
	if (of) {
		*m = *of;
		m->windows = 0;
		m->mr.context = pd->context;
		m->mr.pd = pd;
		m->mr.addr = NULL;	/* the importer's own, which nobody has told */
		of->next = m;		/* the copy's next is set; keys find the owner's first */
		((struct mock_pd *)pd)->users++;
		mock.live[MOCK_MR]++;
	}
	mock_unlock();
	if (of)
		return &m->mr;
	free(m);
	errno = ENOENT;
	return NULL;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (ibv_dereg_mr(mr))
		abort();
}
