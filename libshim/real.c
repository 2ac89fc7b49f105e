// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim.h"

struct rp_real_table rp_real_table;
atomic_bool rp_real_resolved;
__thread int rp_depth __attribute__((tls_model("initial-exec")));
atomic_int rp_disabled = RP_UNREAD;
bool rp_no_remap;

static pthread_once_t once = PTHREAD_ONCE_INIT, environment_once = PTHREAD_ONCE_INIT;

static _Noreturn void missing(void)
{
	fputs("libibrepath: the program calls a verb that the loaded libibverbs does not have\n",
	      stderr);
	abort();
}

/*
 * By version: the unversioned name is whatever the library thinks newest. A library that was
 * loaded with RTLD_LOCAL is not in RTLD_NEXT's scope, but it has a handle.
 */
void *rp_real_find(const char *library, void **handle, const char *name, const char *node)
{
	void *sym = rp_dl_real(RTLD_NEXT, name, node);

	if (sym)
		return sym;
	if (!*handle)
		*handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	return *handle ? rp_dl_real(*handle, name, node) : NULL;
}

static void *lookup(void **handle, const char *name, const char *node)
{
	void *sym = rp_real_find("libibverbs.so.1", handle, name, node);

	if (sym)
		return sym;
	rp_log(RP_LOG_INFO, "libibverbs has no %s@%s", name, node);
	return (void *)missing;
}

static void resolve(void)
{
	void *handle = NULL;

#define RP_WRAP(name, node) rp_real_table.name = lookup(&handle, #name, #node);
#define RP_PASS(name, node)
#define RP_PROVIDER(name, node)
#include "verbs.def"
#undef RP_WRAP
#undef RP_PASS
#undef RP_PROVIDER
	rp_real_table.ibv_wc_status_str = lookup(&handle, "ibv_wc_status_str", "IBVERBS_1.1");
	/* The handle stays open: what the table points to must not be unloaded with a plug-in. */
	atomic_store_explicit(&rp_real_resolved, true, memory_order_release);
}

void rp_real_resolve(void)
{
	pthread_once(&once, resolve);
}

static bool env_is_set(const char *name)
{
	const char *v = secure_getenv(name);

	return v && *v && *v != '0';
}

static void read_environment(void)
{
	rp_no_remap = env_is_set("REPATH_NO_REMAP");
	atomic_store_explicit(&rp_disabled, env_is_set("REPATH_DISABLE"), memory_order_release);
}

bool rp_is_disabled(void)
{
	pthread_once(&environment_once, read_environment);
	return atomic_load_explicit(&rp_disabled, memory_order_acquire);
}

/* As the program was started, whatever it sets later; other libraries' constructors may be before this one. */
static __attribute__((constructor)) void constructed(void)
{
	rp_is_disabled();
}
