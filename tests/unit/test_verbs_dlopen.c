// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that asks a handle of libibverbs for its functions gets ours; of all else it asks, and
 * what is meant as seen from itself, it gets what it would get without us.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>

#include "check.h"
#include "mock.h"

static void *ours(const char *name)
{
	Dl_info info;
	void *p = dlsym(RTLD_DEFAULT, name);

	CHECK(p && dladdr(p, &info));
	CHECK(strstr(info.dli_fname, "libibrepath.so"), "%s is of %s", name, info.dli_fname);
	return p;
}

static void not_ours(const void *p)
{
	Dl_info info;

	CHECK(p && dladdr(p, &info));
	CHECK(!strstr(info.dli_fname, "libibrepath.so"));
}

static void *ask(void *handle)
{
	int i;

	for (i = 0; i < 1000; i++)
		CHECK(dlsym(handle, "ibv_create_qp") == ours("ibv_create_qp"));
	return NULL;
}

int main(void)
{
	struct ibv_device **(*list)(int *num);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd), (*close_device)(struct ibv_context *context);
	void (*free_list)(struct ibv_device **list);
	struct ibv_device **devices;
	struct ibv_context *ctx;
	pthread_t thread[4];
	struct ibv_pd *pd;
	void *handle;
	Dl_info info;
	int i, n;

	alarm(HANGS);
	handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(handle, "%s", dlerror());
	CHECK(dlsym(handle, "ibv_open_device") == ours("ibv_open_device"));
	CHECK(dlvsym(handle, "ibv_open_device", "IBVERBS_1.1") == ours("ibv_open_device"));
	CHECK(dlvsym(handle, "_ibv_query_gid_ex", "IBVERBS_1.11") == ours("_ibv_query_gid_ex"));
	CHECK(!dlvsym(handle, "ibv_open_device", "IBVERBS_9.9"));
	CHECK(dlerror());
	CHECK(!dlsym(handle, "ibv_no_such_verb"));
	CHECK(dlerror());
	CHECK(!dlerror());
	/* What we do not wrap. */
	not_ours(dlsym(handle, "ibv_wc_status_str"));
	not_ours(dlsym(handle, "mock_unplug"));
	CHECK(dlsym(handle, "mock_unplug") == (void *)mock_unplug);

	/* As seen from here: the next after the program is the shim, not what comes after that. */
	CHECK(dlsym(RTLD_NEXT, "ibv_open_device") == ours("ibv_open_device"));
	CHECK(dlvsym(RTLD_NEXT, "ibv_open_device", "IBVERBS_1.1") == ours("ibv_open_device"));
	CHECK(dladdr(dlsym(RTLD_NEXT, "getpid"), &info));
	CHECK(!strstr(info.dli_fname, "libibrepath"));

	/* And they work. */
	list = dlsym(handle, "ibv_get_device_list");
	open_device = dlsym(handle, "ibv_open_device");
	alloc_pd = dlsym(handle, "ibv_alloc_pd");
	dealloc_pd = dlsym(handle, "ibv_dealloc_pd");
	close_device = dlsym(handle, "ibv_close_device");
	free_list = dlsym(handle, "ibv_free_device_list");
	devices = list(&n);
	CHECK(devices && n);
	ctx = open_device(devices[0]);
	CHECK(ctx);
	pd = alloc_pd(ctx);
	CHECK(pd && pd->context == ctx);
	CHECK_EQ(mock_live(MOCK_PD), 1);
	CHECK_EQ(dealloc_pd(pd), 0);
	CHECK_EQ(close_device(ctx), 0);
	free_list(devices);
	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, ask, handle), 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	dlclose(handle);
	return 0;
}
