// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fakeshim: speaks to ib_repath.ko as libibrepath.so does, for RC connections between two of its kind
 * that carry no traffic of their own. So the module can be tested without the shim.
 *
 * Prints one line for each thing that happens; tests wait for them:
 *	connected | ready N | check | gate | released | resumed | aborted | traffic ok
 *	got TYPE N | sent TYPE ERRNO | refused: TEXT
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "../../include/repath_peer.h"
#include "../../include/uapi/ib_repath.h"
#include "../../tests/apps/endpoint.h"
#include "../../tests/apps/oob.h"

#define QPS_MAX 256
#define RECORD 64

static const char usage[] =
"usage: fakeshim [-d DEVICE] [-g INDEX] [-q QPS] [-b BYTES] [-r REASON] [-p REASON]\n"
"                [-s STAGE] [-k] [-u] [-f] [HOST]\n"
"  -d NAME    RDMA device (rxe0)\n"
"  -g INDEX   of the own GID (that of an IPv4 address)\n"
"  -q N       connections (1)\n"
"  -b BYTES   of the blob that INFO carries (0)\n"
"  -r REASON  refuse when asked whether a device may be suspended\n"
"  -p REASON  refuse when the peer asks\n"
"  -s STAGE   go dead before saying this stage (2 gate, 3 drain, 4 release, ...), until ABORT\n"
"  -k         at -s, die instead\n"
"  -u         do not register\n"
"  -f         try to speak as a child of fork, and as another process; then exit\n"
"  HOST       connect to the fakeshim there; else wait for one\n";

static struct {
	const char *device, *refuse, *refuse_peer, *host;
	unsigned int qps, blob, stop;
	int gid_index;
	int die, unregistered, forger;
} opt = { .device = "rxe0", .qps = 1, .gid_index = -1 };

static struct {
	struct ibv_qp *qp;
	struct rc_address local, remote;
	uint32_t id;
} conns[QPS_MAX];

static struct {
	struct nl_sock *events, *requests;
	int family;
	struct endpoint ep;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	unsigned char memory[QPS_MAX][2][RECORD];
	uint32_t peer_id, op, round;
	uint64_t msg_id;
	uint16_t begun, abort_round;	/* as a shim counts them, for all connections alike */
	int moving, mover, released, aborting, reset, stopped, informed, connected_tx, connected_rx;
} me;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* --- netlink --- */

static struct nl_msg *msg_new(uint8_t cmd, int flags)
{
	struct nl_msg *msg = nlmsg_alloc_size(REPATH_CONNS_MAX * 32 + REPATH_BLOB_MAX);

	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, me.family, 0, NLM_F_REQUEST | flags, cmd,
		    REPATH_GENL_VERSION);
	return msg;
}

static void msg_send(struct nl_msg *msg)
{
	if (nl_send_auto(me.events, msg) < 0)
		err(1, "netlink");
	nlmsg_free(msg);
}

static void reply(uint8_t stage, uint32_t error, const char *reason)
{
	struct repath_counters counters = { .qps = opt.qps, .mrs = 1 };
	struct nl_msg *msg;

	if (opt.stop == stage) {
		say("stop at stage %u", stage);
		if (opt.die)
			_exit(3);
		opt.stop = 0;
		me.stopped = 1;
	}
	if (me.stopped)
		return;
	msg = msg_new(REPATH_CMD_REPLY, 0);
	nla_put_u32(msg, REPATH_A_OP_ID, me.op);
	nla_put_u8(msg, REPATH_A_OP_STAGE, stage);
	nla_put_u32(msg, REPATH_A_ERRNO, error);
	if (reason)
		nla_put_string(msg, REPATH_A_REASON, reason);
	if (stage == REPATH_STAGE_DRAIN)
		nla_put(msg, REPATH_A_COUNTERS, sizeof(counters), &counters);
	msg_send(msg);
}

static unsigned char pattern(unsigned int i)
{
	return i * 7 + i / 251;
}

static void peer_send(uint8_t type, uint32_t flags, const char *text)
{
	const uint16_t round = type == REPATH_MSG_ABORTED ? me.abort_round : me.begun;
	struct repath_conn_rec recs[QPS_MAX] = {};
	struct nl_msg *msg = msg_new(REPATH_CMD_PEER_SEND, 0);
	unsigned char blob[REPATH_BLOB_MAX];
	unsigned int i;

	flags |= (uint32_t)round << REPATH_REC_ROUND_SHIFT;
	for (i = 0; i < opt.qps; i++)
		recs[i] = (struct repath_conn_rec){
			.conn_id = conns[i].id,
			.qpn = conns[i].qp ? conns[i].qp->qp_num : 0,
			.psn = conns[i].local.psn,
			.flags = flags | IBV_MTU_1024 << REPATH_REC_MTU_SHIFT,
			.count = 1000000007ULL * i,
		};
	nla_put_u32(msg, REPATH_A_PEER_ID, me.peer_id);
	nla_put_u8(msg, REPATH_A_MSG_TYPE, type);
	nla_put_u64(msg, REPATH_A_MSG_ID, ++me.msg_id);
	nla_put(msg, REPATH_A_CONNS, opt.qps * sizeof(recs[0]), recs);
	if (type == REPATH_MSG_INFO) {
		nla_put_u32(msg, REPATH_A_DEV_INDEX, ibv_get_device_index(me.ep.ctx->device));
		nla_put_u32(msg, REPATH_A_PORT, me.ep.port);
		nla_put_u32(msg, REPATH_A_SGID_INDEX, me.ep.gid_index);
		for (i = 0; i < opt.blob; i++)
			blob[i] = pattern(i);
		if (opt.blob)
			nla_put(msg, REPATH_A_BLOB, opt.blob, blob);
	} else if (text) {
		nla_put(msg, REPATH_A_BLOB, strlen(text) + 1, text);
	}
	msg_send(msg);
}

static int conn_row(struct nl_msg *msg, void *arg)
{
	struct nlattr *top[REPATH_A_MAX + 1], *tb[REPATH_A_MAX + 1];
	unsigned int i, *ready = arg;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, top, REPATH_A_MAX, NULL) < 0 || !top[REPATH_A_CONN] ||
	    nla_parse_nested(tb, REPATH_A_MAX, top[REPATH_A_CONN], NULL) < 0)
		return NL_SKIP;
	for (i = 0; i < opt.qps; i++)
		if (conns[i].qp && nla_get_u32(tb[REPATH_A_QPN]) == conns[i].qp->qp_num) {
			conns[i].id = nla_get_u32(tb[REPATH_A_CONN_ID]);
			if (tb[REPATH_A_PEER_ID])
				me.peer_id = nla_get_u32(tb[REPATH_A_PEER_ID]);
			*ready += nla_get_u8(tb[REPATH_A_CONN_STATE]) == REPATH_CONN_READY;
		}
	return NL_OK;
}

/* How many connections are READY; finds their numbers, too. */
static unsigned int refresh(void)
{
	struct nl_msg *msg = msg_new(REPATH_CMD_CONN_GET, NLM_F_DUMP);
	unsigned int ready = 0;

	nla_put_u32(msg, REPATH_A_PID, getpid());
	nl_socket_modify_cb(me.requests, NL_CB_VALID, NL_CB_CUSTOM, conn_row, &ready);
	if (nl_send_auto(me.requests, msg) < 0 || nl_recvmsgs_default(me.requests) < 0)
		errx(1, "CONN_GET failed");
	nlmsg_free(msg);
	return ready;
}

/* --- verbs --- */

static void create_all(void)
{
	unsigned int i;

	endpoint_open(&me.ep, opt.device, opt.gid_index);
	me.pd = ibv_alloc_pd(me.ep.ctx);
	me.cq = ibv_create_cq(me.ep.ctx, 4 * opt.qps, NULL, NULL, 0);
	me.mr = ibv_reg_mr(me.pd, me.memory, sizeof(me.memory), IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; i < opt.qps; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = me.cq, .recv_cq = me.cq, .qp_type = IBV_QPT_RC,
			.cap = { 2, 2, 1, 1, 0 }, .sq_sig_all = 1,
		};

		conns[i].qp = ibv_create_qp(me.pd, &attr);
		if (!conns[i].qp || rc_init(conns[i].qp, &me.ep))
			err(1, "queue pair");
		conns[i].local = endpoint_address(&me.ep, conns[i].qp, rand() & 0xffffff);
	}
}

static void destroy_all(void)
{
	unsigned int i;

	for (i = 0; i < opt.qps; i++) {
		ibv_destroy_qp(conns[i].qp);
		conns[i].qp = NULL;
	}
	ibv_dereg_mr(me.mr);
	ibv_destroy_cq(me.cq);
	ibv_dealloc_pd(me.pd);
	ibv_close_device(me.ep.ctx);
}

static void reset_all(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	unsigned int i;

	for (i = 0; i < opt.qps; i++)
		if (ibv_modify_qp(conns[i].qp, &attr, IBV_QP_STATE) || rc_init(conns[i].qp, &me.ep))
			err(1, "RESET");
	me.reset = 1;
}

static void connect_all(void)
{
	unsigned int i;

	for (i = 0; i < opt.qps; i++) {
		struct ibv_sge sge = { (uintptr_t)me.memory[i][0], RECORD, me.mr->lkey };
		struct ibv_recv_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
		int ret;

		memset(me.memory[i][0], 0, RECORD);
		if (ibv_post_recv(conns[i].qp, &wr, &bad))
			err(1, "post_recv");
		ret = rc_connect(conns[i].qp, &me.ep, &conns[i].local, &conns[i].remote, NULL);
		if (ret)
			errx(1, "connect: %s", strerror(ret));
	}
}

/* One message each way on every connection: they lead to where they should. */
static void traffic(void)
{
	unsigned int i, done = 0, spins = 0;
	struct ibv_wc wc;

	me.round++;
	for (i = 0; i < opt.qps; i++) {
		struct ibv_sge sge = { (uintptr_t)me.memory[i][1], RECORD, me.mr->lkey };
		struct ibv_send_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1,
						.opcode = IBV_WR_SEND };

		memset(me.memory[i][1], i + me.round, RECORD);
		if (ibv_post_send(conns[i].qp, &wr, &bad))
			err(1, "post_send");
	}
	while (done < 2 * opt.qps) {
		if (ibv_poll_cq(me.cq, 1, &wc) == 1) {
			if (wc.status)
				errx(1, "completion: %s", ibv_wc_status_str(wc.status));
			done++;
		} else if (usleep(1000), ++spins > 20000) {
			errx(1, "traffic: %u of %u completions", done, 2 * opt.qps);
		}
	}
	for (i = 0; i < opt.qps; i++)
		if (me.memory[i][0][RECORD - 1] != (unsigned char)(i + me.round))
			errx(1, "connection %u leads to another one", i);
	say("traffic ok");
}

/* --- a move --- */

static void begin(void)
{
	me.begun += !me.moving;
	me.moving = 1;
}

/* Both ends may be movers: what comes from the other one comes before or after the own steps. */
static void finish(void)
{
	if (!me.connected_tx || !me.connected_rx)
		return;
	if (me.mover && !me.aborting)
		reply(REPATH_STAGE_CONNECT, 0, NULL);
	traffic();
	if (me.mover)
		reply(me.aborting ? REPATH_STAGE_ABORT : REPATH_STAGE_REPLAY, 0, NULL);
	say(me.aborting ? "aborted" : "resumed");
	me.moving = me.mover = me.released = me.aborting = me.reset = 0;
	me.informed = me.connected_tx = me.connected_rx = 0;
}

static void answer_info(void)
{
	connect_all();
	if (!me.mover)
		peer_send(REPATH_MSG_INFO, 0, NULL);
	peer_send(REPATH_MSG_CONNECTED, 0, NULL);
	me.connected_tx = 1;
	finish();
}

static void resume(const char *device)
{
	opt.device = device ? strdup(device) : opt.device;
	create_all();
	me.released = 0;
	if (!me.aborting) {
		reply(REPATH_STAGE_OPEN, 0, NULL);
		reply(REPATH_STAGE_RECREATE, 0, NULL);
	}
	peer_send(REPATH_MSG_INFO, 0, NULL);
	if (me.informed)
		answer_info();
}

static void peer_msg(struct nlattr **tb)
{
	const struct repath_conn_rec *recs = nla_data(tb[REPATH_A_CONNS]);
	unsigned int i, j, n = nla_len(tb[REPATH_A_CONNS]) / sizeof(*recs);
	unsigned int len = tb[REPATH_A_BLOB] ? nla_len(tb[REPATH_A_BLOB]) : 0;
	const unsigned char *blob = len ? nla_data(tb[REPATH_A_BLOB]) : NULL;
	uint8_t type = nla_get_u8(tb[REPATH_A_MSG_TYPE]);

	say("got %u %u %u", type, n, len);
	switch (type) {
	case REPATH_MSG_PREPARE:
		refresh();
		peer_send(REPATH_MSG_PREPARED, 0, opt.refuse_peer);
		break;
	case REPATH_MSG_PREPARED:
		reply(REPATH_STAGE_CHECK, len ? EOPNOTSUPP : 0, (const char *)blob);
		break;
	case REPATH_MSG_GATE:
		begin();
		if (me.mover)
			reply(REPATH_STAGE_GATE, 0, NULL);
		peer_send(me.mover ? REPATH_MSG_DRAINED : REPATH_MSG_GATE, 0, NULL);
		break;
	case REPATH_MSG_DRAINED:
		peer_send(me.mover ? REPATH_MSG_READY : REPATH_MSG_DRAINED, 0, NULL);
		break;
	case REPATH_MSG_READY:
		if (me.mover) {
			reply(REPATH_STAGE_DRAIN, 0, NULL);
			destroy_all();
			me.released = 1;
			say("released");
			reply(REPATH_STAGE_RELEASE, 0, NULL);
		} else {
			reset_all();
			peer_send(REPATH_MSG_READY, 0, NULL);
		}
		break;
	case REPATH_MSG_INFO:
		for (i = 0; i < len; i++)
			if (blob[i] != pattern(i))
				errx(1, "blob is damaged at %u of %u", i, len);
		for (i = 0; i < n; i++)
			for (j = 0; j < opt.qps; j++)
				if (conns[j].id == recs[i].conn_id) {
					memcpy(conns[j].remote.gid, nla_data(tb[REPATH_A_DGID]), 16);
					conns[j].remote.qpn = recs[i].qpn;
					conns[j].remote.psn = recs[i].psn;
				}
		me.informed = 1;
		if (!me.released)
			answer_info();
		break;
	case REPATH_MSG_CONNECTED:
		me.connected_rx = 1;
		finish();
		break;
	case REPATH_MSG_ABORT:
		me.abort_round = REPATH_REC_ROUND(recs->flags);
		peer_send(REPATH_MSG_ABORTED, me.reset ? REPATH_REC_RESET : 0, NULL);
		if (!me.reset) {
			me.moving = 0;
			say("aborted");
		}
		break;
	case REPATH_MSG_ABORTED:
		reply(REPATH_STAGE_ABORT, 0, NULL);
		say("aborted");
		me.moving = me.mover = me.aborting = 0;
		break;
	case REPATH_MSG_GONE:
		say("gone");
		break;
	}
}

static int event(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *tb[REPATH_A_MAX + 1];

	(void)arg;
	if (nlmsg_hdr(msg)->nlmsg_type != me.family ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, tb, REPATH_A_MAX, NULL) < 0)
		return NL_SKIP;
	if (tb[REPATH_A_OP_ID])
		me.op = nla_get_u32(tb[REPATH_A_OP_ID]);
	switch (g->cmd) {
	case REPATH_CMD_EV_CHECK:
		say("check %u ready", refresh());
		if (opt.refuse)
			reply(REPATH_STAGE_CHECK, EOPNOTSUPP, opt.refuse);
		else if (me.peer_id)
			peer_send(REPATH_MSG_PREPARE, 0, NULL);
		else
			reply(REPATH_STAGE_CHECK, 0, NULL);
		break;
	case REPATH_CMD_EV_SUSPEND:
		me.mover = 1;
		begin();
		say("gate");
		peer_send(REPATH_MSG_GATE, 0, NULL);
		break;
	case REPATH_CMD_EV_RESUME:
		resume(nla_get_string(tb[REPATH_A_DEV_NAME]));
		break;
	case REPATH_CMD_EV_ABORT:
		me.stopped = 0;
		if (!me.mover) {
			reply(REPATH_STAGE_ABORT, 0, NULL);
			break;
		}
		me.aborting = 1;
		if (me.released)
			resume(NULL);
		else
			peer_send(REPATH_MSG_ABORT, 0, NULL);
		break;
	case REPATH_CMD_EV_PEER_MSG:
		if (!me.stopped)
			peer_msg(tb);
		break;
	case REPATH_CMD_EV_PEER_SENT:
		say("sent %u %u", nla_get_u8(tb[REPATH_A_MSG_TYPE]), nla_get_u32(tb[REPATH_A_ERRNO]));
		if (nla_get_u8(tb[REPATH_A_MSG_TYPE]) == REPATH_MSG_PREPARE &&
		    nla_get_u32(tb[REPATH_A_ERRNO]))
			reply(REPATH_STAGE_CHECK, nla_get_u32(tb[REPATH_A_ERRNO]),
			      "the peer was not reached");
		break;
	}
	return NL_OK;
}

/* The kernel's text is better than a number. */
static int refused(struct sockaddr_nl *nla, struct nlmsgerr *e, void *arg)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)e - 1;
	struct nlattr *tb[NLMSGERR_ATTR_MAX + 1] = {};
	unsigned int skip = sizeof(*e);

	(void)nla;
	(void)arg;
	if (!e->error)
		return NL_OK;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		skip += e->msg.nlmsg_len - sizeof(e->msg);
	if (nlh->nlmsg_flags & NLM_F_ACK_TLVS)
		nla_parse(tb, NLMSGERR_ATTR_MAX, (struct nlattr *)((char *)e + skip),
			  nlh->nlmsg_len - NLMSG_HDRLEN - skip, NULL);
	say("refused: %s: %s", strerror(-e->error),
	    tb[NLMSGERR_ATTR_MSG] ? nla_get_string(tb[NLMSGERR_ATTR_MSG]) : "");
	return NL_SKIP;
}

static void want_reasons(void)
{
	int one = 1;

	setsockopt(nl_socket_get_fd(me.events), 270 /* SOL_NETLINK */, NETLINK_EXT_ACK, &one,
		   sizeof(one));
}

static void open_sockets(void)
{
	struct nl_cb *cb;

	me.events = nl_socket_alloc();
	me.requests = nl_socket_alloc();
	if (genl_connect(me.events) || genl_connect(me.requests))
		errx(1, "netlink");
	nl_socket_disable_seq_check(me.events);
	nl_socket_disable_auto_ack(me.events);
	nl_socket_disable_auto_ack(me.requests);
	nl_socket_set_buffer_size(me.events, 4 << 20, 4 << 20);
	nl_socket_set_msg_buf_size(me.events, 1 << 17);
	nl_socket_set_nonblocking(me.events);
	want_reasons();
	nl_socket_modify_cb(me.events, NL_CB_VALID, NL_CB_CUSTOM, event, NULL);
	cb = nl_socket_get_cb(me.events);
	nl_cb_err(cb, NL_CB_CUSTOM, refused, NULL);
	nl_cb_put(cb);
	me.family = genl_ctrl_resolve(me.requests, REPATH_GENL_NAME);
	if (me.family < 0)
		errx(1, "no module: %s", nl_geterror(me.family));
}

static void send_register(uint32_t abi)
{
	struct nl_msg *msg = msg_new(REPATH_CMD_REGISTER, 0);

	nla_put_u32(msg, REPATH_A_ABI_VERSION, abi);
	msg_send(msg);
}

static void handle(int ms)
{
	struct pollfd p = { nl_socket_get_fd(me.events), POLLIN, 0 };

	if (poll(&p, 1, ms) > 0)
		while (nl_recvmsgs_default(me.events) >= 0)
			;
}

/* What the module must not believe; each is answered by "refused". */
static void forge(void)
{
	send_register(REPATH_ABI_VERSION + 1);
	handle(2000);
	send_register(REPATH_ABI_VERSION);
	me.op = 4711;
	if (!fork()) {
		reply(REPATH_STAGE_CHECK, 0, NULL);
		handle(2000);
		_exit(0);
	}
	wait(NULL);
	nl_close(me.events);
	genl_connect(me.events);
	nl_socket_set_nonblocking(me.events);
	want_reasons();
	reply(REPATH_STAGE_CHECK, 0, NULL);
	handle(2000);
	send_register(REPATH_ABI_VERSION);
	reply(REPATH_STAGE_CHECK, 0, NULL);
	handle(2000);
	conns[0].id = 1;
	me.peer_id = 1;
	peer_send(REPATH_MSG_GATE, 0, NULL);
	handle(2000);
	peer_send(REPATH_MSG_HELLO, 0, NULL);
	handle(2000);
}

int main(int argc, char **argv)
{
	unsigned int i, ready = 0;
	int o, tcp;

	while ((o = getopt(argc, argv, "d:g:q:b:r:p:s:kuf")) >= 0) {
		switch (o) {
		case 'd': opt.device = optarg; break;
		case 'g': opt.gid_index = atoi(optarg); break;
		case 'q': opt.qps = atoi(optarg); break;
		case 'b': opt.blob = atoi(optarg); break;
		case 'r': opt.refuse = optarg; break;
		case 'p': opt.refuse_peer = optarg; break;
		case 's': opt.stop = atoi(optarg); break;
		case 'k': opt.die = 1; break;
		case 'u': opt.unregistered = 1; break;
		case 'f': opt.forger = 1; break;
		default: errx(2, "%s", usage);
		}
	}
	opt.host = argv[optind];
	if (!opt.qps || opt.qps > QPS_MAX || opt.blob > REPATH_BLOB_MAX)
		errx(2, "%s", usage);
	srand(getpid());
	if (!opt.unregistered)
		open_sockets();
	if (opt.forger) {
		forge();
		return 0;
	}
	if (!opt.unregistered)
		send_register(REPATH_ABI_VERSION);

	create_all();
	tcp = opt.host ? oob_connect(opt.host, 18700, 30) : oob_listen(18700);
	for (i = 0; i < opt.qps; i++)
		if (!oob_write(tcp, &conns[i].local, sizeof(conns[i].local)) ||
		    !oob_read(tcp, &conns[i].remote, sizeof(conns[i].remote)))
			errx(1, "the other end is gone");
	connect_all();
	if (!oob_write(tcp, "", 1) || !oob_read(tcp, &o, 1))
		errx(1, "the other end is gone");
	say("connected");
	traffic();
	if (opt.unregistered)
		pause();
	for (;;) {
		handle(ready < opt.qps ? 50 : -1);
		if (ready < opt.qps) {
			ready = refresh();
			if (ready == opt.qps)
				say("ready %u", ready);
		}
	}
}
