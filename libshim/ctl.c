// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "ctl.h"
#include "shim.h"

/* A move of thousands of connections arrives in bursts while the thread recreates objects. */
#define RCVBUF (8 << 20)
/* PEER_SEND at its limits: 1024 records and 32 KiB. */
#define MSG_SIZE (REPATH_CONNS_MAX * sizeof(struct repath_conn_rec) + REPATH_BLOB_MAX + 1024)

static struct {
	pthread_mutex_t lock;		/* started, running, calls */
	pthread_cond_t done;
	bool started, running;
	pthread_t thread;
	int wakefd;
	struct list_head calls;

	/* the control thread's own */
	struct nl_sock *events;		/* registered: events come here, requests go out here */
	struct nl_sock *requests;	/* dumps */
	struct nl_sock *families;	/* nlctrl's notifications: the module comes and goes */
	int family;			/* 0: no module */
} ctl = {
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

/*
 * Requests go out without NLM_F_ACK: the module answers only what it refuses, and then the error
 * carries our sequence number, which for a PEER_SEND is the low half of its msg_id.
 */
static int send_msg(struct nl_msg *msg)
{
	int ret = nl_send_auto(ctl.events, msg);

	nlmsg_free(msg);
	return ret < 0 ? -EIO : 0;
}

static struct nl_msg *new_msg(uint8_t cmd, uint32_t seq)
{
	struct nl_msg *msg;

	if (!ctl.family)
		return NULL;
	msg = nlmsg_alloc_size(MSG_SIZE);
	if (msg && !genlmsg_put(msg, NL_AUTO_PORT, seq, ctl.family, 0, NLM_F_REQUEST, cmd,
				REPATH_GENL_VERSION)) {
		nlmsg_free(msg);
		msg = NULL;
	}
	return msg;
}

int rp_ctl_reply(uint32_t op, enum repath_stage stage, int err, const char *reason,
		 const struct repath_counters *counters)
{
	struct nl_msg *msg = new_msg(REPATH_CMD_REPLY, NL_AUTO_SEQ);
	char text[REPATH_REASON_MAX];

	if (!msg)
		return -ENOTCONN;
	nla_put_u32(msg, REPATH_A_OP_ID, op);
	nla_put_u8(msg, REPATH_A_OP_STAGE, stage);
	nla_put_u32(msg, REPATH_A_ERRNO, err < 0 ? -err : err);
	if (reason) {
		snprintf(text, sizeof(text), "%s", reason);
		nla_put_string(msg, REPATH_A_REASON, text);
	}
	if (counters)
		nla_put(msg, REPATH_A_COUNTERS, sizeof(*counters), counters);
	rp_log(RP_LOG_INFO, "op %u stage %d: %s%s%s", op, stage, err ? "failed" : "done",
	       reason ? ": " : "", reason ? reason : "");
	return send_msg(msg);
}

int rp_ctl_peer_send(uint32_t peer_id, enum repath_msg type, uint64_t msg_id,
		     const struct repath_conn_rec *recs, unsigned int nrecs,
		     const struct rp_ctl_bind *bind, const void *blob, unsigned int blob_len)
{
	struct nl_msg *msg = new_msg(REPATH_CMD_PEER_SEND, (uint32_t)msg_id);

	if (!msg)
		return -ENOTCONN;
	nla_put_u32(msg, REPATH_A_PEER_ID, peer_id);
	nla_put_u8(msg, REPATH_A_MSG_TYPE, type);
	nla_put_u64(msg, REPATH_A_MSG_ID, msg_id);
	nla_put(msg, REPATH_A_CONNS, nrecs * sizeof(*recs), recs);
	if (bind) {
		nla_put_u32(msg, REPATH_A_DEV_INDEX, bind->dev_index);
		nla_put_u32(msg, REPATH_A_PORT, bind->port);
		nla_put_u32(msg, REPATH_A_SGID_INDEX, bind->sgid_index);
	}
	if (blob_len)
		nla_put(msg, REPATH_A_BLOB, blob_len, blob);
	return send_msg(msg);
}

struct conns_arg {
	void (*fn)(const struct rp_ctl_conn *c, void *arg);
	void *arg;
};

static int conn_row(struct nl_msg *msg, void *arg)
{
	struct conns_arg *a = arg;
	struct nlattr *top[REPATH_A_MAX + 1], *tb[REPATH_A_MAX + 1];
	struct rp_ctl_conn c = { 0 };

	if (genlmsg_parse(nlmsg_hdr(msg), 0, top, REPATH_A_MAX, NULL) < 0 ||
	    !top[REPATH_A_CONN] || nla_parse_nested(tb, REPATH_A_MAX, top[REPATH_A_CONN], NULL) < 0)
		return NL_SKIP;
	if (!tb[REPATH_A_CONN_ID] || !tb[REPATH_A_QPN] || !tb[REPATH_A_CONN_STATE])
		return NL_SKIP;
	c.conn_id = nla_get_u32(tb[REPATH_A_CONN_ID]);
	c.qpn = nla_get_u32(tb[REPATH_A_QPN]);
	c.state = nla_get_u8(tb[REPATH_A_CONN_STATE]);
	if (tb[REPATH_A_DEV_INDEX])
		c.dev_index = nla_get_u32(tb[REPATH_A_DEV_INDEX]);
	if (tb[REPATH_A_PEER_ID])
		c.peer_id = nla_get_u32(tb[REPATH_A_PEER_ID]);
	a->fn(&c, a->arg);
	return NL_OK;
}

static int dump_end(struct nl_msg *msg, void *arg)
{
	(void)msg;
	*(int *)arg = 0;
	return NL_STOP;
}

static int dump_error(struct sockaddr_nl *nla, struct nlmsgerr *err, void *arg)
{
	(void)nla;
	*(int *)arg = err->error < 0 ? err->error : -EIO;
	return NL_STOP;
}

int rp_ctl_conns(void (*fn)(const struct rp_ctl_conn *c, void *arg), void *arg)
{
	struct conns_arg a = { .fn = fn, .arg = arg };
	struct nl_cb *cb;
	struct nl_msg *msg;
	int state = 1;

	if (!ctl.family)
		return -ENOTCONN;
	msg = nlmsg_alloc();
	cb = nl_cb_alloc(NL_CB_DEFAULT);
	if (!msg || !cb) {
		nlmsg_free(msg);
		nl_cb_put(cb);
		return -ENOMEM;
	}
	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, ctl.family, 0, NLM_F_REQUEST | NLM_F_DUMP,
		    REPATH_CMD_CONN_GET, REPATH_GENL_VERSION);
	nla_put_u32(msg, REPATH_A_PID, getpid());
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, conn_row, &a);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, dump_end, &state);
	nl_cb_err(cb, NL_CB_CUSTOM, dump_error, &state);
	if (nl_send_auto(ctl.requests, msg) < 0)
		state = -EIO;
	while (state > 0)
		if (nl_recvmsgs(ctl.requests, cb) < 0 && state > 0)
			state = -EIO;
	nlmsg_free(msg);
	nl_cb_put(cb);
	return state;
}

static int event_in(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *tb[REPATH_A_MAX + 1];
	struct rp_ctl_peer_msg m = { 0 };
	char dev[64] = "";

	(void)arg;
	/* Only the kernel's word counts; port 0 can not be taken by a process. */
	if (nlmsg_get_src(msg)->nl_pid || nlmsg_hdr(msg)->nlmsg_type != ctl.family ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, tb, REPATH_A_MAX, NULL) < 0)
		return NL_SKIP;

	switch (g->cmd) {
	case REPATH_CMD_EV_CHECK:
	case REPATH_CMD_EV_SUSPEND:
	case REPATH_CMD_EV_RESUME:
	case REPATH_CMD_EV_ABORT:
		if (!tb[REPATH_A_OP_ID] || !tb[REPATH_A_DEV_INDEX])
			return NL_SKIP;
		if (tb[REPATH_A_DEV_NAME])
			nla_strlcpy(dev, tb[REPATH_A_DEV_NAME], sizeof(dev));
		rp_move_event(g->cmd, nla_get_u32(tb[REPATH_A_OP_ID]),
			      nla_get_u32(tb[REPATH_A_DEV_INDEX]), dev,
			      tb[REPATH_A_TIMEOUT_MS] ? nla_get_u32(tb[REPATH_A_TIMEOUT_MS]) : 0);
		break;
	case REPATH_CMD_EV_PEER_MSG:
		if (!tb[REPATH_A_PEER_ID] || !tb[REPATH_A_MSG_TYPE] || !tb[REPATH_A_CONNS])
			return NL_SKIP;
		m.peer_id = nla_get_u32(tb[REPATH_A_PEER_ID]);
		m.type = nla_get_u8(tb[REPATH_A_MSG_TYPE]);
		m.recs = nla_data(tb[REPATH_A_CONNS]);
		m.nrecs = nla_len(tb[REPATH_A_CONNS]) / sizeof(*m.recs);
		if (tb[REPATH_A_DGID] && nla_len(tb[REPATH_A_DGID]) == sizeof(m.gid))
			memcpy(m.gid, nla_data(tb[REPATH_A_DGID]), sizeof(m.gid));
		if (tb[REPATH_A_DLID])
			m.lid = nla_get_u32(tb[REPATH_A_DLID]);
		if (tb[REPATH_A_BLOB]) {
			m.blob = nla_data(tb[REPATH_A_BLOB]);
			m.blob_len = nla_len(tb[REPATH_A_BLOB]);
		}
		rp_peer_msg_in(&m);
		break;
	case REPATH_CMD_EV_PEER_SENT:
		if (!tb[REPATH_A_PEER_ID] || !tb[REPATH_A_MSG_ID] || !tb[REPATH_A_ERRNO])
			return NL_SKIP;
		rp_peer_sent(nla_get_u32(tb[REPATH_A_PEER_ID]), nla_get_u64(tb[REPATH_A_MSG_ID]),
			     nla_get_u32(tb[REPATH_A_ERRNO]));
		break;
	}
	return NL_OK;
}

static int event_error(struct sockaddr_nl *nla, struct nlmsgerr *err, void *arg)
{
	(void)nla;
	(void)arg;
	if (err->error)
		rp_log(RP_LOG_ERR, "the module refused request %u: %s", err->msg.nlmsg_seq,
		       strerror(-err->error));
	if (err->error)
		rp_peer_sent(0, err->msg.nlmsg_seq, -err->error);
	return NL_SKIP;
}

static struct nl_sock *open_socket(bool nonblock)
{
	struct nl_sock *sk = nl_socket_alloc();

	if (!sk)
		return NULL;
	nl_socket_disable_auto_ack(sk);
	nl_socket_disable_seq_check(sk);
	if (genl_connect(sk) < 0 || (nonblock && nl_socket_set_nonblocking(sk) < 0)) {
		nl_socket_free(sk);
		return NULL;
	}
	nl_socket_set_buffer_size(sk, RCVBUF, 0);
	nl_socket_set_msg_buf_size(sk, 128 << 10);
	return sk;
}

static void unregister(void)
{
	ctl.family = 0;
	if (ctl.events)
		nl_socket_free(ctl.events);
	if (ctl.requests)
		nl_socket_free(ctl.requests);
	ctl.events = ctl.requests = NULL;
}

static int register_answer(struct nl_msg *msg, void *arg)
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
	struct nl_msg *msg;
	struct nl_cb *cb;
	int state = 1;

	ctl.events = open_socket(false);
	ctl.requests = open_socket(false);
	if (!ctl.events || !ctl.requests) {
		unregister();
		return -EIO;
	}
	ctl.family = genl_ctrl_resolve(ctl.requests, REPATH_GENL_NAME);
	if (ctl.family < 0) {
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
	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, ctl.family, 0, NLM_F_REQUEST | NLM_F_ACK,
		    REPATH_CMD_REGISTER, REPATH_GENL_VERSION);
	nla_put_u32(msg, REPATH_A_ABI_VERSION, REPATH_ABI_VERSION);
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, register_answer, NULL);
	nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, register_answer, NULL);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, register_done, &state);
	nl_cb_err(cb, NL_CB_CUSTOM, dump_error, &state);
	if (nl_send_auto(ctl.events, msg) < 0)
		state = -EIO;
	while (state > 0)
		if (nl_recvmsgs(ctl.events, cb) < 0 && state > 0)
			state = -EIO;
	nlmsg_free(msg);
	nl_cb_put(cb);
	if (state < 0) {
		rp_log(RP_LOG_ERR, "the module does not take this process: %s%s", strerror(-state),
		       state == -EPROTO ? ": libibrepath.so and ib_repath.ko differ in version" : "");
		unregister();
		return state;
	}
	nl_socket_set_nonblocking(ctl.events);
	nl_socket_modify_cb(ctl.events, NL_CB_VALID, NL_CB_CUSTOM, event_in, NULL);
	nl_socket_modify_err_cb(ctl.events, NL_CB_CUSTOM, event_error, NULL);
	rp_log(RP_LOG_INFO, "registered with the module, pid %d", getpid());
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
	if (g->cmd == CTRL_CMD_NEWFAMILY && !ctl.family) {
		register_process();
	} else if (g->cmd == CTRL_CMD_DELFAMILY && ctl.family) {
		rp_log(RP_LOG_INFO, "the module was unloaded");
		unregister();
		rp_move_lost_module();
	}
	return NL_OK;
}

static void watch_families(void)
{
	int group;

	ctl.families = open_socket(false);
	if (!ctl.families)
		return;
	group = genl_ctrl_resolve_grp(ctl.families, "nlctrl", "notify");
	if (group < 0 || nl_socket_add_membership(ctl.families, group) < 0) {
		nl_socket_free(ctl.families);
		ctl.families = NULL;
		return;
	}
	nl_socket_set_nonblocking(ctl.families);
	nl_socket_modify_cb(ctl.families, NL_CB_VALID, NL_CB_CUSTOM, family_event, NULL);
}

static void run_calls(void)
{
	uint64_t n;

	if (read(ctl.wakefd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return;
	pthread_mutex_lock(&ctl.lock);
	while (!list_empty(&ctl.calls)) {
		struct call *c = list_first(&ctl.calls, struct call, node);

		list_del(&c->node);
		pthread_mutex_unlock(&ctl.lock);
		c->fn(c->arg);
		pthread_mutex_lock(&ctl.lock);
		c->done = true;
		pthread_cond_broadcast(&ctl.done);
	}
	pthread_mutex_unlock(&ctl.lock);
}

static void *ctl_main(void *arg)
{
	(void)arg;
	watch_families();
	register_process();
	pthread_mutex_lock(&ctl.lock);
	ctl.running = true;
	pthread_cond_broadcast(&ctl.done);
	pthread_mutex_unlock(&ctl.lock);

	for (;;) {
		struct pollfd fds[3] = {
			{ .fd = ctl.wakefd, .events = POLLIN },
			{ .fd = ctl.families ? nl_socket_get_fd(ctl.families) : -1, .events = POLLIN },
			{ .fd = ctl.events ? nl_socket_get_fd(ctl.events) : -1, .events = POLLIN },
		};

		if (poll(fds, 3, rp_move_tick()) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			run_calls();
		if (fds[2].revents && ctl.events) {
			int ret = nl_recvmsgs_default(ctl.events);

			if (ret < 0 && ret != -NLE_AGAIN && ret != -NLE_INTR)
				rp_log(RP_LOG_ERR, "netlink: %s", nl_geterror(ret));
			if (ret == -NLE_NOMEM)	/* ENOBUFS: there was more than the socket holds */
				rp_peer_resend();
		}
		if (fds[1].revents)
			nl_recvmsgs_default(ctl.families);
	}
	return NULL;
}

static void atfork_prepare(void)
{
	pthread_mutex_lock(&ctl.lock);
}

static void atfork_parent(void)
{
	pthread_mutex_unlock(&ctl.lock);
}

/* The child has neither the thread nor a registration; its sockets are the parent's. */
static void atfork_child(void)
{
	ctl.started = ctl.running = false;
	ctl.family = 0;
	ctl.events = ctl.requests = ctl.families = NULL;
	ctl.wakefd = -1;
	pthread_mutex_init(&ctl.lock, NULL);
	pthread_cond_init(&ctl.done, NULL);
	rp_move_forked();
}

void rp_ctl_start(void)
{
	static bool hooked;
	sigset_t all, old;

	pthread_mutex_lock(&ctl.lock);
	if (!ctl.started) {
		list_init(&ctl.calls);
		ctl.wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (!hooked)
			pthread_atfork(atfork_prepare, atfork_parent, atfork_child);
		hooked = true;
		/* The application's signals are for the application's threads. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		ctl.started = ctl.wakefd >= 0 &&
			      !pthread_create(&ctl.thread, NULL, ctl_main, NULL);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (ctl.started) {
			/* It keeps the program's name: the kernel shows it as that of new objects. */
			pthread_detach(ctl.thread);
		} else {
			rp_log(RP_LOG_ERR, "no control thread: %s; this process can not be moved",
			       strerror(errno));
		}
	}
	/* Queue pairs made before the module knows us would have no connections. */
	while (ctl.started && !ctl.running)
		pthread_cond_wait(&ctl.done, &ctl.lock);
	pthread_mutex_unlock(&ctl.lock);
}

bool rp_ctl_call(void (*fn)(void *arg), void *arg)
{
	struct call c = { .fn = fn, .arg = arg };
	uint64_t one = 1;

	pthread_mutex_lock(&ctl.lock);
	if (!ctl.running) {
		pthread_mutex_unlock(&ctl.lock);
		return false;
	}
	if (pthread_equal(ctl.thread, pthread_self())) {
		pthread_mutex_unlock(&ctl.lock);
		fn(arg);
		return true;
	}
	list_add_tail(&ctl.calls, &c.node);
	while (write(ctl.wakefd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	while (!c.done)
		pthread_cond_wait(&ctl.done, &ctl.lock);
	pthread_mutex_unlock(&ctl.lock);
	return true;
}
