// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mock_state.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct mock_pd *pd = mock_zalloc(sizeof(*pd));
	int err;

	mock_lock();
	err = mock_failing("ibv_alloc_pd");
	if (!err)
		mock.live[MOCK_PD]++;
	mock_unlock();
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->pd.context = context;
	mock_lock();
	pd->pd.handle = ++mock.handles;
	pd->next = mock.pds;
	mock.pds = pd;
	mock_unlock();
	return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct mock_pd *pd = (struct mock_pd *)ibpd, **at;
	int ret;

	mock_lock();
	ret = pd->users ? EBUSY : 0;
	if (!ret && pd->parent_of)
		pd->parent_of->users--;
	if (!ret && pd->td)
		pd->td->users--;
	if (!ret)
		mock.live[MOCK_PD]--;
	for (at = &mock.pds; !ret && *at; at = &(*at)->next)
		if (*at == pd) {
			*at = pd->next;
			break;
		}
	mock_unlock();
	if (!ret)
		free(pd);
	return ret;
}

static bool key_in_use(uint32_t key)
{
	struct mock_mr *m;

	struct mock_mw *w;

	for (m = mock.mrs; m; m = m->next)
		if (m->mr.lkey == key || m->mr.rkey == key)
			return true;
	for (w = mock.windows; w; w = w->next)
		if (!((w->key ^ key) >> 8))
			return true;
	return false;
}

uint32_t mock_new_key(struct mock_device *d)
{
	uint32_t key;

	do {
		key = d->next_key;
		d->next_key += 0x100;
	} while (key_in_use(key));
	return key;
}

/* Asked of the kernel, which does not end the program for it; and behind a sanitizer's back: nothing is read here. */
static bool can_be_read(const void *addr)
{
	int fd[2];
	bool can;

	if (pipe(fd))
		abort();
	can = syscall(SYS_write, fd[1], addr, 1) == 1;
	close(fd[0]);
	close(fd[1]);
	return can;
}

/* The kernel pins what is registered. */
static bool is_mapped(void *addr, size_t length)
{
	uintptr_t from = (uintptr_t)addr & -4096ul;

	if (!addr || !length)
		return true;
	return !msync((void *)from, (uintptr_t)addr - from + length, MS_ASYNC) && can_be_read(addr);
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned int access, const char *function)
{
	struct mock_device *d = mock_context(pd->context)->device;
	struct mock_mr *m;
	int err;

	mock_lock();
	err = mock_failing(function);
	if (!err && (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		err = EINVAL;
	if (!err && !is_mapped(addr, length))
		err = EFAULT;
	if (err) {
		mock_unlock();
		errno = err;
		return NULL;
	}
	m = mock_zalloc(sizeof(*m));
	m->mr.context = pd->context;
	m->mr.pd = pd;
	m->mr.addr = addr;
	m->mr.length = length;
	m->mr.handle = ++mock.handles;
	m->mr.lkey = mock_new_key(d);
	m->mr.rkey = mock_new_key(d);
	m->iova = iova;
	m->access = access;
	m->next = mock.mrs;
	mock.mrs = m;
	((struct mock_pd *)pd)->users++;
	mock.live[MOCK_MR]++;
	mock_unlock();
	return &m->mr;
}

/* As in libibverbs one symbol calls the other through the PLT: whoever is first there sees it. */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return reg(pd, addr, length, iova, access, "ibv_reg_mr");
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return reg(pd, addr, length, iova, access & ~IB_UVERBS_ACCESS_OPTIONAL_RANGE, "ibv_reg_mr");
}

/* Somebody else's memory: a key, and nothing behind it here. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	struct stat st;

	if (fstat(fd, &st) || offset > (uint64_t)st.st_size || length > st.st_size - offset) {
		errno = EINVAL;
		return NULL;
	}
	return reg(pd, NULL, length, iova, access, "ibv_reg_dmabuf_mr");
}

int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct mock_mr *m = (struct mock_mr *)ibmr;

	mock_lock();
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		((struct mock_pd *)m->mr.pd)->users--;
		((struct mock_pd *)pd)->users++;
		m->mr.pd = pd;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		m->mr.addr = addr;
		m->mr.length = length;
		m->iova = (uintptr_t)addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		m->access = access;
	/* Other rights alone need no other key. */
	if (flags != IBV_REREG_MR_CHANGE_ACCESS) {
		m->mr.lkey = mock_new_key(mock_context(m->mr.context)->device);
		m->mr.rkey = mock_new_key(mock_context(m->mr.context)->device);
	}
	mock_unlock();
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct mock_mr *m = (struct mock_mr *)ibmr, **at;

	mock_lock();
	if (m->windows) {
		mock_unlock();
		return EBUSY;
	}
	for (at = &mock.mrs; *at != m; at = &(*at)->next)
		;
	*at = m->next;
	((struct mock_pd *)m->mr.pd)->users--;
	mock.live[MOCK_MR]--;
	mock_unlock();
	free(m);
	return 0;
}

static char *within(const struct mock_mr *m, uint64_t addr, uint64_t len)
{
	if (addr < m->iova || len > m->mr.length || addr - m->iova > m->mr.length - len)
		return NULL;
	return (char *)m->mr.addr + (addr - m->iova);
}

char *mock_local(struct ibv_pd *pd, const struct ibv_sge *sge, bool write)
{
	struct mock_mr *m;

	for (m = mock.mrs; m; m = m->next)
		if (m->mr.lkey == sge->lkey)
			break;
	if (!m || !mock_same_pd(m->mr.pd, pd) || (write && !(m->access & IBV_ACCESS_LOCAL_WRITE)))
		return NULL;
	if (m->null) {	/* reads as zeroes, forgets what is written */
		static char nothing[65536];

		memset(nothing, 0, sizeof(nothing));
		return sge->length <= sizeof(nothing) ? nothing : NULL;
	}
	return within(m, sge->addr, sge->length);
}

char *mock_remote(struct mock_qp *qp, uint32_t rkey, uint64_t addr, uint64_t len,
		  unsigned int access)
{
	struct mock_mr *m;

	for (m = mock.mrs; m; m = m->next)
		if (m->mr.rkey == rkey)
			break;
	if (!m)
		return mock_window_at(qp, rkey, addr, len, access);
	if (!mock_same_pd(m->mr.pd, qp->qp.pd) || m->null || (m->access & access) != access)
		return NULL;
	return within(m, addr, len);
}

int mock_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg,
		   uint32_t n)
{
	uint32_t i;
	int ret = 0;

	(void)advice;
	(void)flags;
	mock_lock();
	for (i = 0; i < n && !ret; i++)
		ret = mock_local(pd, &sg[i], false) ? 0 : ENOENT;
	mock_unlock();
	return ret;
}
