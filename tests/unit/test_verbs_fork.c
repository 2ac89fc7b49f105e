// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A program that forks with a device open: the parent goes on, the child can open one of its own,
 * and closes what it has inherited. */
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"
#include "mock.h"
#include "pair.h"

int main(void)
{
	struct end e[2], own;
	int status, i;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	puts("ThreadSanitizer knows no threads in a child of a process with threads");
	return 77;
#endif
	alarm(HANGS);
	pair_open(e, &(struct pair_how){ .events = true });
	for (i = 0; i < 3; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			struct ibv_device **list = ibv_get_device_list(NULL);

			alarm(100);
			CHECK(list && list[0]);
			ibv_free_device_list(list);
			end_open(&own, "mock0", &(struct pair_how){ 0 });
			end_close(&own);
			CHECK_EQ(ibv_destroy_qp(e[0].qp), 0);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", status);
		send_one(e);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
