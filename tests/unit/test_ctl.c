// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the shim says to modules of the same interface that know more or less than it does. */
#include <fcntl.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <pthread.h>
#include <sys/wait.h>

#include "../../libshim/ctl_socket.h"
#include "../../libshim/shim.h"
#include "check.h"

#define FAMILY	42
#define ROUND	7
#define CONN	9

/* The module: what it says that it knows; -1: it is older than that word. */
static struct {
	int64_t knows;
	int registered;
	bool asked, cycled, has_round;
	uint32_t conn_id, err, round;
	nl_recvmsg_msg_cb_t answer, done, families;
	void *answer_arg, *done_arg;
	bool asks;	/* whether this process can be moved, before it says that it has it; and again before it is done */
	unsigned int events;
	int fd;			/* of the socket that it talks to; -1: nothing comes by itself */
	struct sockaddr_nl name;
	unsigned int reads;
	char said[64];		/* what has been heard of what it says, in its order */
} module = { .fd = -1 };

static void heard(char what)
{
	char c[2] = { what };

	if (module.fd >= 0)
		strncat(module.said, c, sizeof(module.said) - strlen(module.said) - 1);
}

/* --- in place of libnl's --- */

int genl_connect(struct nl_sock *sk)
{
	(void)sk;
	return 0;
}

int genl_ctrl_resolve(struct nl_sock *sk, const char *name)
{
	(void)sk;
	CHECK(!strcmp(name, REPATH_GENL_NAME));
	return FAMILY;
}

int genl_ctrl_resolve_grp(struct nl_sock *sk, const char *family, const char *group)
{
	(void)sk;
	(void)family;
	(void)group;
	return 1;
}

int nl_socket_add_membership(struct nl_sock *sk, int group)
{
	(void)sk;
	(void)group;
	return 0;
}

int nl_socket_get_fd(const struct nl_sock *sk)
{
	return sk == rp_ctl.events ? module.fd : -1;
}

uint32_t nl_socket_get_local_port(const struct nl_sock *sk)
{
	return sk == rp_ctl.events ? module.name.nl_pid : 0;
}

/* There was more than the socket holds; two that are older are still there. */
int nl_recvmsgs_default(struct nl_sock *sk)
{
	struct nl_msg *msg;
	char c;

	CHECK(sk == rp_ctl.events);
	switch (module.reads++) {
	case 0:
		return -NLE_NOMEM;
	case 1:
	case 2:
		msg = nlmsg_alloc();
		CHECK(msg);
		genlmsg_put(msg, 0, 0, FAMILY, 0, 0, REPATH_CMD_EV_NUMBERS, REPATH_GENL_VERSION);
		nla_put_u32(msg, REPATH_A_COUNT, 0);
		rp_ctl_event_in(msg, NULL);
		nlmsg_free(msg);
		return 0;
	default:
		CHECK_EQ(recv(module.fd, &c, 1, MSG_DONTWAIT), 1);
		heard('.');
		return -NLE_AGAIN;
	}
}

int nl_socket_set_nonblocking(const struct nl_sock *sk)
{
	(void)sk;
	return 0;
}

int nl_socket_set_buffer_size(struct nl_sock *sk, int rxbuf, int txbuf)
{
	(void)sk;
	(void)rxbuf;
	(void)txbuf;
	return 0;
}

int nl_cb_set(struct nl_cb *cb, enum nl_cb_type type, enum nl_cb_kind kind, nl_recvmsg_msg_cb_t fn, void *arg)
{
	(void)cb;
	(void)kind;
	if (type == NL_CB_VALID) {
		module.answer = fn;
		module.answer_arg = arg;
	}
	if (type == NL_CB_ACK) {
		module.done = fn;
		module.done_arg = arg;
	}
	return 0;
}

int nl_socket_modify_cb(struct nl_sock *sk, enum nl_cb_type type, enum nl_cb_kind kind, nl_recvmsg_msg_cb_t fn,
			void *arg)
{
	(void)type;
	(void)kind;
	(void)arg;
	if (sk == rp_ctl.families)
		module.families = fn;
	return 0;
}

int nl_send_auto(struct nl_sock *sk, struct nl_msg *msg)
{
	struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *tb[REPATH_A_MAX + 1];

	CHECK(sk == rp_ctl.events);
	CHECK(genlmsg_parse(nlmsg_hdr(msg), 0, tb, REPATH_A_MAX, NULL) >= 0);
	if (g->cmd == REPATH_CMD_REGISTER) {
		module.asked = true;
		return 0;
	}
	CHECK_EQ(g->cmd, REPATH_CMD_CYCLED);
	module.cycled = true;
	module.conn_id = nla_get_u32(tb[REPATH_A_CONN_ID]);
	module.err = nla_get_u32(tb[REPATH_A_ERRNO]);
	module.has_round = tb[REPATH_A_COUNT];
	module.round = module.has_round ? nla_get_u32(tb[REPATH_A_COUNT]) : 0;
	return 0;
}

static void ask(uint32_t op)
{
	struct nl_msg *msg;

	if (!module.asks)
		return;
	msg = nlmsg_alloc();
	CHECK(msg);
	genlmsg_put(msg, 0, 0, FAMILY, 0, 0, REPATH_CMD_EV_CHECK, REPATH_GENL_VERSION);
	nla_put_u32(msg, REPATH_A_OP_ID, op);
	nla_put_u32(msg, REPATH_A_DEV_INDEX, 1);
	nla_put_string(msg, REPATH_A_DEV_NAME, "mock0");
	module.answer(msg, module.answer_arg);
	nlmsg_free(msg);
}

int nl_recvmsgs(struct nl_sock *sk, struct nl_cb *cb)
{
	struct nl_msg *msg = nlmsg_alloc();

	(void)sk;
	(void)cb;
	CHECK(msg && module.asked && module.answer && module.done);
	module.asked = false;
	module.registered++;
	genlmsg_put(msg, 0, 0, FAMILY, 0, 0, REPATH_CMD_REGISTER, REPATH_GENL_VERSION);
	nla_put_u32(msg, REPATH_A_ABI_VERSION, REPATH_ABI_VERSION);
	nla_put_u32(msg, REPATH_A_COUNT, 0);
	if (module.knows >= 0)
		nla_put_u32(msg, REPATH_A_KNOWS, module.knows);
	ask(1);
	module.answer(msg, module.answer_arg);
	ask(2);
	CHECK_EQ(module.events, 0);
	module.done(msg, module.done_arg);
	nlmsg_free(msg);
	return 0;
}

/* --- in place of the rest of the shim --- */

void rp_log(enum rp_log_level level, const char *format, ...)
{
	(void)level;
	(void)format;
}

int rp_move_tick(void) { return -1; }
void rp_move_forked(void) { }
void rp_move_lost_module(void) { }
void rp_numbers_again(void) { }
void rp_peer_resend(void) { heard('r'); }
void rp_conns_missed(void) { heard('c'); }
void rp_peer_sent(uint64_t msg_id, int err) { (void)msg_id; (void)err; }
void rp_peer_msg_in(const struct rp_ctl_peer_msg *m) { (void)m; }
void rp_resolved(uint32_t id, int err, const struct rp_place *place) { (void)id; (void)err; (void)place; }
void rp_resolve_refused(uint32_t id, int err) { (void)id; (void)err; }
void rp_conn_ready(const struct rp_ctl_conn *row) { (void)row; }
void rp_cycle_event(uint32_t conn_id, const struct rp_ctl_path *to) { (void)conn_id; (void)to; }

void rp_numbers_about(uint32_t count)
{
	CHECK(!count || module.fd >= 0);
	heard(count ? 'n' : '0');
}

void rp_ahs_repath(uint32_t dev_index, uint32_t port, const uint8_t *gid, const struct rp_ctl_path *to)
{
	(void)dev_index;
	(void)port;
	(void)gid;
	(void)to;
}

void rp_move_event(int cmd, uint32_t op, uint32_t dev_index, const char *dev_name, uint32_t timeout_ms, bool force)
{
	(void)timeout_ms;
	(void)force;
	CHECK_EQ(cmd, REPATH_CMD_EV_CHECK);
	CHECK_EQ(dev_index, 1);
	CHECK(!strcmp(dev_name, "mock0"));
	CHECK_EQ(op, ++module.events);
}

/* --- */

static void rests(void *arg)
{
	(void)arg;
	CHECK_EQ(rp_ctl_rests(CONN, ROUND), 0);
}

static void family(void *arg)
{
	struct nl_msg *msg = nlmsg_alloc();

	CHECK(msg);
	genlmsg_put(msg, 0, 0, GENL_ID_CTRL, 0, 0, *(uint8_t *)arg, 1);
	nla_put_string(msg, CTRL_ATTR_FAMILY_NAME, REPATH_GENL_NAME);
	module.families(msg, NULL);
	nlmsg_free(msg);
}

/* The module that is there now goes, and one comes that knows @knows. */
static void load(int64_t knows)
{
	uint8_t gone = CTRL_CMD_DELFAMILY, new = CTRL_CMD_NEWFAMILY;
	int before = module.registered;

	CHECK(rp_ctl_call(family, &gone));
	module.knows = knows;
	CHECK(rp_ctl_call(family, &new));
	CHECK_EQ(module.registered, before + 1);
}

static void says(bool round)
{
	module.cycled = false;
	CHECK(rp_ctl_call(rests, NULL));
	CHECK(module.cycled, "an older module, too, has to hear that it rests");
	CHECK_EQ(module.conn_id, CONN);
	CHECK_EQ(module.err, ECANCELED);
	CHECK_EQ(module.has_round, round);
	CHECK_EQ(module.round, round ? ROUND : 0);
}

/* What the module asks while it takes this process, it asks once, and is heard, in its order. */
static void asked_early(void)
{
	CHECK_EQ(module.events, 2);
	module.events = 0;
}

/* A verb within which the control thread is; its lock is libibverbs'. */
static pthread_mutex_t verb_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool in_verb;

static void verb(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&verb_lock);
	in_verb = true;
	usleep(20000);
	pthread_mutex_unlock(&verb_lock);
	in_verb = false;
}

static void *works(void *arg)
{
	CHECK(rp_ctl_call(verb, NULL));
	return arg;
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Of another library, which takes its memory back when its program forks: it was there before the shim's, and is after it. */
static void purge(void)
{
	CHECK(rp_ctl_call(nothing, NULL));
}

/* The child of a fork() that comes in the middle of it finds it unlocked. */
static void forks(void)
{
	pthread_t thread;
	int i, status;
	pid_t pid;

	for (i = 0; i < 20; i++) {
		CHECK(!pthread_create(&thread, NULL, works, NULL));
		while (!in_verb)
			usleep(100);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(pthread_mutex_trylock(&verb_lock) != 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", status);
		pthread_join(thread, NULL);
	}
}

static void open_socket(void)
{
	socklen_t len = sizeof(module.name);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
	struct sockaddr_nl name = { .nl_family = AF_NETLINK };

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (void *)&name, sizeof(name)), 0);
	CHECK_EQ(getsockname(fd, (void *)&module.name, &len), 0);
	module.fd = fd;
}

/* What was lost is asked for when nothing more can be lost unseen, and what is older does not undo it. */
static void overruns(void)
{
	int i;

	CHECK_EQ(sendto(module.fd, "", 1, 0, (void *)&module.name, sizeof(module.name)), 1);
	CHECK(rp_ctl_call(nothing, NULL));
	for (i = 0; i < 5000 && !strchr(module.said, 'n'); i++)
		usleep(1000);
	CHECK(!strcmp(module.said, "00.rcn"), "%s", module.said);
}

/* The module takes a process to live for as long as its socket is open: a child does not keep it. */
static void leaves_socket(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(fcntl(module.fd, F_GETFD) >= 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", status);
	CHECK(fcntl(module.fd, F_GETFD) >= 0);
}

int main(void)
{
	alarm(HANGS);
	module.knows = -1;
	module.asks = true;
	pthread_atfork(purge, purge, NULL);
	rp_ctl_start();
	CHECK_EQ(module.registered, 1);
	asked_early();
	load(-1);
	asked_early();
	module.asks = false;
	says(false);
	load(REPATH_KNOWS_ROUND);
	says(true);
	/* Something else that a later one knows, which this shim does not */
	load(~REPATH_KNOWS_ROUND & 0xffffffffu);
	says(false);
	load(0xffffffffu);
	says(true);
	load(-1);
	says(false);
	forks();
	open_socket();
	overruns();
	leaves_socket();
	return 0;
}
