// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* REPATH_DISABLE counts from the first verb on, also where that is one of a library that is constructed before the shim. */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>

#include "check.h"
#include "mock.h"

extern struct ibv_context *early_context;	/* fake_early.c */

static bool is_ours(const void *p)
{
	Dl_info info;

	CHECK(p && dladdr(p, &info));
	return strstr(info.dli_fname, "libibrepath.so");
}

/* It is the shim's, or the provider's, and so is what is made of it now. */
static void goes_on(bool disabled)
{
	struct ibv_pd *pd;

	CHECK(early_context);
	CHECK_EQ(is_ours(early_context->ops.poll_cq), !disabled);
	pd = ibv_alloc_pd(early_context);
	CHECK(pd && pd->context == early_context);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(early_context), 0);
	CHECK_EQ(mock_live_total(), 0);
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	alarm(HANGS);
	if (argc > 1) {
		goes_on(true);
		return 0;
	}
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		setenv("REPATH_DISABLE", "1", 1);
		execl("/proc/self/exe", argv[0], "disabled", NULL);
		_exit(127);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", status);
	/* What the program sets for its children is not for itself. */
	setenv("REPATH_DISABLE", "1", 1);
	goes_on(false);
	return 0;
}
