// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What can not be moved is refused by name, before anything is touched. */
#include <pthread.h>
#include <sys/wait.h>

#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"
#include "../../libshim/shim.h"
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static void refused(const char *dev, const char *because)
{
	const char *why = "";
	int ret = fake_check(dev, &why);

	CHECK(ret == EOPNOTSUPP, "%d", ret);
	CHECK(strstr(why, because), "says: %s", why);
	CHECK_EQ(fake_abort(), 0);
}

static struct ibv_dm *device_memory(struct end *e)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(e->ctx, &attr);

	CHECK(dm);
	return dm;
}

/* What keeps the device's file open besides libibverbs: a copy of its descriptor, a child. */
static void held(struct end *e, struct traffic *t)
{
	char because[64];
	int fd = dup(e->ctx->cmd_fd), pipes[2];
	pid_t child;
	char c;

	CHECK(fd >= 0);
	refused("mock0", "1 descriptor of the device");
	/* With the setting that avoids it. */
	refused("mock0", "UCX_TLS=rc_verbs,ud_verbs");
	close(fd);
	CHECK_EQ(pipe(pipes), 0);
	child = fork();
	if (!child) {
		close(pipes[1]);
		_exit(read(pipes[0], &c, 1) != 0);
	}
	snprintf(because, sizeof(because), "its child PID %d", (int)child);
	refused("mock0", because);
	close(pipes[0]);
	close(pipes[1]);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	traffic_flows(t, 50);
}

/* Not made at all: a program that can do without matches by itself. */
static void tag_matching(struct end *e)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM, .pd = e->pd, .cq = e->cq,
		.tm_cap = { .max_num_tags = 8, .max_ops = 8 },
	};

	errno = 0;
	CHECK(!ibv_create_srq_ex(e->ctx, &attr));
	CHECK_EQ(errno, EOPNOTSUPP);
	CHECK_EQ(mock_live(MOCK_SRQ), 0);
	CHECK_EQ(fake_check("mock0", NULL), 0);
	CHECK_EQ(fake_abort(), 0);
}

static void *loaded_anew(void *arg)
{
	usleep(200000);
	fake_renumber();
	return arg;
}

static void *found_again(void *arg)
{
	loaded_anew(arg);
	fake_faults_set(&(struct fake_faults){ 0 });
	return arg;
}

/* While it is asked the peer gets another number: it has still to answer. */
static void renumbered(struct traffic *t)
{
	struct fake_faults lost = { .seed = 3, .lost = 100 };
	struct fake_faults late = { .seed = 3, .slow = REPATH_MSG_PREPARE, .slow_us = 500000 };
	pthread_t thread;

	fake_faults_set(&lost);
	CHECK_EQ(pthread_create(&thread, NULL, loaded_anew, NULL), 0);
	refused("mock0", "does not answer");
	CHECK_EQ(pthread_join(thread, NULL), 0);
	fake_faults_set(&late);
	CHECK_EQ(pthread_create(&thread, NULL, loaded_anew, NULL), 0);
	CHECK_EQ(fake_check("mock0", NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(fake_abort(), 0);
	/* By the old one the module lets nobody ask any more, and the peer says nothing by itself. */
	fake_faults_set(&lost);
	CHECK_EQ(pthread_create(&thread, NULL, found_again, NULL), 0);
	CHECK_EQ(fake_check("mock0", NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(fake_abort(), 0);
	traffic_flows(t, 50);
}

/* Two devices are asked for at once: what a peer of the one says is nothing to the other. */
static void two_devices(void)
{
	const char *why = "";
	struct end e[2], f[2];
	int ret;

	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock2" }), 0);
	pair_open(e, &(struct pair_how){ 0 });
	pair_open(f, &(struct pair_how){ .dev = { "mock2", "mock1" } });
	atomic_fetch_add(&to_rp_context(e[1].ctx)->immovable[RP_IMM_DIRECT_VERBS], 1);
	fake_faults_set(&(struct fake_faults){
		.seed = 1, .slow = REPATH_MSG_PREPARED, .slow_us = 300000 });
	fake_check_start("mock0");
	fake_use_op(1);
	ret = fake_check("mock2", &why);
	CHECK(!ret, "%d, %s", ret, why);
	CHECK_EQ(fake_abort(), 0);
	fake_use_op(0);
	CHECK_EQ(fake_wait(REPATH_STAGE_CHECK), EOPNOTSUPP);
	CHECK_EQ(fake_abort(), 0);
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	atomic_fetch_sub(&to_rp_context(e[1].ctx)->immovable[RP_IMM_DIRECT_VERBS], 1);
	pair_close(e);
	pair_close(f);
	CHECK_EQ(mock_unplug("mock2"), 0);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	struct ibv_dm *dm[2];
	struct traffic *t;
	struct end e[2];

	alarm(HANGS);
	two_devices();
	pair_open(e, &(struct pair_how){ 0 });
	t = traffic_start(e, &(struct traffic_how){ .seed = 8 });
	traffic_flows(t, 50);

	dm[0] = device_memory(&e[0]);
	refused("mock0", "1 device memory");
	CHECK_EQ(ibv_free_dm(dm[0]), 0);
	traffic_flows(t, 50);

	held(&e[0], t);
	renumbered(t);
	tag_matching(&e[0]);

	/* Made after the check: the suspend is refused, and can be tried again. */
	CHECK_EQ(fake_check("mock0", NULL), 0);
	dm[0] = device_memory(&e[0]);
	dm[1] = device_memory(&e[0]);
	CHECK_EQ(fake_suspend("mock0"), EOPNOTSUPP);
	CHECK_EQ(fake_abort(), 0);
	traffic_flows(t, 50);
	CHECK_EQ(ibv_free_dm(dm[1]), 0);
	CHECK_EQ(ibv_free_dm(dm[0]), 0);
	move_away("mock0");
	move_back("mock0");
	traffic_flows(t, 50);
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
