// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "ctl_socket.h"
#include "shim.h"

/* A move of thousands of connections arrives in bursts while the thread recreates objects. */
#define RCVBUF (8 << 20)
#define LOST_MAX 100	/* that the socket could not be read, before something else is done */

struct rp_ctl rp_ctl = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
	.wakefd = -1,
};

struct call {
	struct list_node node;
	void (*fn)(void *arg);
	void *arg;
	bool done;
};

static struct nl_sock *open_socket(bool nonblock)
{
	struct nl_sock *sk = nl_socket_alloc();
	const int size = RCVBUF;

	if (!sk)
		return NULL;
	nl_socket_disable_auto_ack(sk);
	nl_socket_disable_seq_check(sk);
	if (genl_connect(sk) < 0 || (nonblock && nl_socket_set_nonblocking(sk) < 0)) {
		nl_socket_free(sk);
		return NULL;
	}
	/* Beyond the system's limit where we may; else up to it. */
	if (setsockopt(nl_socket_get_fd(sk), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		nl_socket_set_buffer_size(sk, RCVBUF, 0);
	nl_socket_set_msg_buf_size(sk, 128 << 10);
	return sk;
}

static void unregister(void)
{
	rp_ctl.family = 0;
	rp_ctl.knows = 0;
	if (rp_ctl.events)
		nl_socket_free(rp_ctl.events);
	if (rp_ctl.requests)
		nl_socket_free(rp_ctl.requests);
	rp_ctl.events = rp_ctl.requests = NULL;
}

/* What the module says between taking this process and saying so. */
struct early {
	struct list_node node;
	struct nl_msg *msg;
};

static int keep_early(struct list_head *early, struct nl_msg *msg)
{
	struct early *e = malloc(sizeof(*e));

	if (!e) {
		rp_log(RP_LOG_ERR, "out of memory: something that the module has said is lost");
		return NL_OK;
	}
	nlmsg_get(msg);
	e->msg = msg;
	list_add_tail(early, &e->node);
	return NL_OK;
}

/* Registered; or not, and then it was to nobody. */
static void take_early(struct list_head *early, bool registered)
{
	struct early *e, *tmp;

	list_for_each_safe(e, tmp, early, node) {
		list_del(&e->node);
		if (registered)
			rp_ctl_event_in(e->msg, NULL);
		nlmsg_free(e->msg);
		free(e);
	}
}

static int register_answer(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *tb[REPATH_A_MAX + 1];

	if (genlmsg_parse(nlmsg_hdr(msg), 0, tb, REPATH_A_MAX, NULL) < 0)
		return NL_OK;
	if (g->cmd != REPATH_CMD_REGISTER)
		return keep_early(arg, msg);
	if (tb[REPATH_A_COUNT])
		rp_numbers_about(nla_get_u32(tb[REPATH_A_COUNT]));
	if (tb[REPATH_A_KNOWS])
		rp_ctl.knows = nla_get_u32(tb[REPATH_A_KNOWS]);
	return NL_OK;
}

static int any_seq(struct nl_msg *msg, void *arg)
{
	(void)msg;
	(void)arg;
	return NL_OK;
}

static int register_done(struct nl_msg *msg, void *arg)
{
	(void)msg;
	*(int *)arg = 0;
	return NL_STOP;
}

static int register_process(void)
{
	struct list_head early;
	struct nl_msg *msg;
	struct nl_cb *cb;
	int state = 1;

	list_init(&early);
	rp_ctl.events = open_socket(false);
	rp_ctl.requests = open_socket(false);
	if (!rp_ctl.events || !rp_ctl.requests) {
		unregister();
		return -EIO;
	}
	rp_ctl.family = genl_ctrl_resolve(rp_ctl.requests, REPATH_GENL_NAME);
	if (rp_ctl.family < 0) {
		unregister();
		return -ENOENT;
	}
	msg = nlmsg_alloc();
	cb = nl_cb_alloc(NL_CB_DEFAULT);
	if (!msg || !cb) {
		nlmsg_free(msg);
		nl_cb_put(cb);
		unregister();
		return -ENOMEM;
	}
	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, rp_ctl.family, 0, NLM_F_REQUEST | NLM_F_ACK,
		    REPATH_CMD_REGISTER, REPATH_GENL_VERSION);
	nla_put_u32(msg, REPATH_A_ABI_VERSION, REPATH_ABI_VERSION);
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, register_answer, &early);
	nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, any_seq, NULL);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, register_done, &state);
	nl_cb_err(cb, NL_CB_CUSTOM, rp_ctl_request_failed, &state);
	if (nl_send_auto(rp_ctl.events, msg) < 0)
		state = -EIO;
	while (state > 0)
		if (nl_recvmsgs(rp_ctl.events, cb) < 0 && state > 0)
			state = -EIO;
	nlmsg_free(msg);
	nl_cb_put(cb);
	if (state < 0) {
		if (state == -EPROTO)
			rp_log(RP_LOG_ERR, "this process can not be moved: ib_repath.ko has another ABI than this libibrepath.so, which has %u; use both of one release",
			       REPATH_ABI_VERSION);
		else
			rp_log(RP_LOG_ERR, "the module does not take this process: %s",
			       strerror(-state));
		take_early(&early, false);
		unregister();
		return state;
	}
	nl_socket_set_nonblocking(rp_ctl.events);
	nl_socket_modify_cb(rp_ctl.events, NL_CB_VALID, NL_CB_CUSTOM, rp_ctl_event_in, NULL);
	nl_socket_modify_err_cb(rp_ctl.events, NL_CB_CUSTOM, rp_ctl_event_error, NULL);
	rp_log(RP_LOG_INFO, "registered with the module, pid %d", getpid());
	rp_numbers_again();
	take_early(&early, true);
	return 0;
}

static int family_event(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *tb[CTRL_ATTR_MAX + 1];

	(void)arg;
	if (genlmsg_parse(nlmsg_hdr(msg), 0, tb, CTRL_ATTR_MAX, NULL) < 0 ||
	    !tb[CTRL_ATTR_FAMILY_NAME] ||
	    strcmp(nla_get_string(tb[CTRL_ATTR_FAMILY_NAME]), REPATH_GENL_NAME))
		return NL_SKIP;
	if (g->cmd == CTRL_CMD_NEWFAMILY && !rp_ctl.family) {
		register_process();
	} else if (g->cmd == CTRL_CMD_DELFAMILY && rp_ctl.family) {
		rp_log(RP_LOG_INFO, "the module was unloaded");
		unregister();
		rp_move_lost_module();
	}
	return NL_OK;
}

static void watch_families(void)
{
	int group;

	rp_ctl.families = open_socket(false);
	if (!rp_ctl.families)
		return;
	group = genl_ctrl_resolve_grp(rp_ctl.families, "nlctrl", "notify");
	if (group < 0 || nl_socket_add_membership(rp_ctl.families, group) < 0) {
		nl_socket_free(rp_ctl.families);
		rp_ctl.families = NULL;
		return;
	}
	nl_socket_set_nonblocking(rp_ctl.families);
	nl_socket_modify_cb(rp_ctl.families, NL_CB_VALID, NL_CB_CUSTOM, family_event, NULL);
}

static void run_calls(void)
{
	uint64_t n;

	if (read(rp_ctl.wakefd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return;
	pthread_mutex_lock(&rp_ctl.lock);
	while (!list_empty(&rp_ctl.calls)) {
		struct call *c = list_first(&rp_ctl.calls, struct call, node);

		list_del(&c->node);
		pthread_mutex_unlock(&rp_ctl.lock);
		c->fn(c->arg);
		pthread_mutex_lock(&rp_ctl.lock);
		c->done = true;
		pthread_cond_broadcast(&rp_ctl.done);
	}
	pthread_mutex_unlock(&rp_ctl.lock);
}

/* ENOBUFS: there was more than the socket holds, and what was lost is asked for, or taken for the worst. */
static void overrun(void)
{
	rp_peer_resend();
	rp_conns_missed();
	rp_numbers_about(1);
}

/*
 * ENOBUFS comes before what is older, and until the socket has been empty once the kernel drops more without saying so
 * again: what is lost is known then.
 */
static void read_events(void)
{
	int ret, lost = 0;

	do {
		ret = nl_recvmsgs_default(rp_ctl.events);
		if (ret < 0 && ret != -NLE_AGAIN && ret != -NLE_INTR)
			rp_log(RP_LOG_ERR, "netlink: %s", nl_geterror(ret));
		if (ret == -NLE_NOMEM && lost++)
			usleep(1000);	/* or it was ENOMEM */
	} while (lost && lost < LOST_MAX && (ret >= 0 || ret == -NLE_NOMEM || ret == -NLE_INTR));
	if (lost)
		overrun();
}

static void *ctl_main(void *arg)
{
	int ms, n;

	(void)arg;
	rp_work_begin();
	watch_families();
	register_process();
	pthread_mutex_lock(&rp_ctl.lock);
	rp_ctl.running = true;
	pthread_cond_broadcast(&rp_ctl.done);
	pthread_mutex_unlock(&rp_ctl.lock);

	for (;;) {
		struct pollfd fds[3] = {
			{ .fd = rp_ctl.wakefd, .events = POLLIN },
			{ .fd = rp_ctl.families ? nl_socket_get_fd(rp_ctl.families) : -1, .events = POLLIN },
			{ .fd = rp_ctl.events ? nl_socket_get_fd(rp_ctl.events) : -1, .events = POLLIN },
		};

		ms = rp_move_tick();

		/* ENOMEM, at worst: what is due is looked at soon. Nobody else does this thread's work. */
		rp_work_end();
		n = poll(fds, 3, ms);
		rp_work_begin();
		if (n < 0) {
			if (errno != EINTR)
				usleep(1000);
			continue;
		}
		if (fds[0].revents)
			run_calls();
		if (fds[2].revents && rp_ctl.events)
			read_events();
		if (fds[1].revents)
			nl_recvmsgs_default(rp_ctl.families);
	}
	return NULL;
}

/* Unless the program has closed all that it did not know, and the number is another one's since. */
static void close_inherited(struct nl_sock *sk)
{
	struct sockaddr_nl name = { 0 };
	socklen_t len = sizeof(name);
	int fd;

	if (!sk)
		return;
	fd = nl_socket_get_fd(sk);
	if (!getsockname(fd, (void *)&name, &len) && name.nl_family == AF_NETLINK &&
	    name.nl_pid == nl_socket_get_local_port(sk))
		close(fd);
}

/*
 * The child has neither the thread nor a registration. Its sockets are the parent's: as long as one is open the module takes
 * the parent to live, whom the child may outlive. What they are in may have been in the middle of a change.
 */
static void atfork_child(void)
{
	close_inherited(rp_ctl.events);
	close_inherited(rp_ctl.requests);
	close_inherited(rp_ctl.families);
	rp_ctl.started = rp_ctl.running = false;
	rp_ctl.family = 0;
	rp_ctl.events = rp_ctl.requests = rp_ctl.families = NULL;
	rp_ctl.wakefd = -1;
	pthread_mutex_init(&rp_ctl.lock, NULL);
	pthread_cond_init(&rp_ctl.done, NULL);
	rp_move_forked();
}

void rp_ctl_start(void)
{
	static bool hooked;
	sigset_t all, old;
	int cancel = rp_uncancelled();

	rp_forks_wait();
	pthread_mutex_lock(&rp_ctl.lock);
	if (!rp_ctl.started) {
		list_init(&rp_ctl.calls);
		rp_ctl.wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (!hooked)
			pthread_atfork(NULL, NULL, atfork_child);
		hooked = true;
		/* The application's signals are for the application's threads. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		rp_ctl.started = rp_ctl.wakefd >= 0 &&
			      !pthread_create(&rp_ctl.thread, NULL, ctl_main, NULL);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (rp_ctl.started) {
			/* It keeps the program's name: the kernel shows it as that of new objects. */
			pthread_detach(rp_ctl.thread);
		} else {
			rp_log(RP_LOG_ERR, "no control thread: %s; this process can not be moved",
			       strerror(errno));
		}
	}
	/* Queue pairs made before the module knows us would have no connections. */
	while (rp_ctl.started && !rp_ctl.running)
		pthread_cond_wait(&rp_ctl.done, &rp_ctl.lock);
	pthread_mutex_unlock(&rp_ctl.lock);
	rp_cancelled_as(cancel);
}

bool rp_ctl_call(void (*fn)(void *arg), void *arg)
{
	struct call c = { .fn = fn, .arg = arg };
	uint64_t one = 1;
	bool forks;
	int cancel;

	pthread_mutex_lock(&rp_ctl.lock);
	if (!rp_ctl.running) {
		pthread_mutex_unlock(&rp_ctl.lock);
		return false;
	}
	if (pthread_equal(rp_ctl.thread, pthread_self())) {
		pthread_mutex_unlock(&rp_ctl.lock);
		fn(arg);
		return true;
	}
	cancel = rp_uncancelled();
	forks = rp_fork_let();
	list_add_tail(&rp_ctl.calls, &c.node);
	while (write(rp_ctl.wakefd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	while (!c.done)
		pthread_cond_wait(&rp_ctl.done, &rp_ctl.lock);
	pthread_mutex_unlock(&rp_ctl.lock);
	if (forks)
		rp_fork_go_on();
	rp_cancelled_as(cancel);
	return true;
}

void rp_ctl_wake(void)
{
	int cancel = rp_uncancelled();
	uint64_t one = 1;

	while (rp_ctl.wakefd >= 0 && write(rp_ctl.wakefd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	rp_cancelled_as(cancel);
}
