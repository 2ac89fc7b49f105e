// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Alternate paths and rate limits, which a RESET takes from a queue pair: after a move of either end they
 * are there again, and lead to where the peer is; what the device has migrated by itself stays migrated.
 * Where an alternate path can not be, the connection goes on without, and says so when it is asked.
 */
#include <errno.h>
#include <fcntl.h>

#include "../../include/uapi/ib_repath.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

#define ALT_SL	3
#define SECOND	16	/* from a port's LID to that of the next one */

static struct end e[2];
static struct ibv_ah_attr to[2][2];	/* by end and port of the peer, as its owner knows it */

/* As in mock_plug; the last LID of the devices. */
static uint16_t last_lid;

static void plug(const char *dev, struct mock_plug how)
{
	how.name = dev;
	how.lid = how.lid ? how.lid : (last_lid += 4 * SECOND);
	how.ports = how.ports ? how.ports : 2;
	CHECK_EQ(mock_plug(&how), 0);
}

static void plug_both(void)
{
	CHECK_EQ(mock_unplug("mock0"), 0);
	CHECK_EQ(mock_unplug("mock1"), 0);
	plug("mock0", (struct mock_plug){ 0 });
	plug("mock1", (struct mock_plug){ 0 });
}

static void back_with(const char *dev, struct mock_plug how)
{
	const char *why = NULL;
	int ret;

	plug(dev, how);
	ret = fake_resume(dev, &why);
	CHECK(!ret, "resume of %s: %d, %s", dev, ret, why);
	CHECK_EQ(fake_settled(), 0);
}

static void move_to(const char *dev, struct mock_plug how)
{
	move_away(dev);
	back_with(dev, how);
}

static void move(const char *dev)
{
	move_to(dev, (struct mock_plug){ 0 });
}

static struct ibv_ah_attr way_to(struct end *peer, int port, int sl)
{
	struct ibv_ah_attr av = {
		.is_global = 1, .port_num = port, .sl = sl, .grh = { .hop_limit = 1 },
	};
	struct ibv_port_attr p;

	CHECK_EQ(ibv_query_port(peer->ctx, port, &p), 0);
	CHECK_EQ(ibv_query_gid(peer->ctx, port, 0, &av.grh.dgid), 0);
	av.dlid = p.lid;
	return av;
}

static struct ibv_qp_attr query(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_ALT_PATH |
			      IBV_QP_PATH_MIG_STATE, &init), 0);
	return attr;
}

static void same_av(const struct ibv_ah_attr *is, const struct ibv_ah_attr *av)
{
	CHECK_EQ(is->dlid, av->dlid);
	CHECK_EQ(is->sl, av->sl);
	CHECK_EQ(is->port_num, av->port_num);
	CHECK(!memcmp(&is->grh.dgid, &av->grh.dgid, 16));
	CHECK_EQ(is->grh.sgid_index, av->grh.sgid_index);
}

static void load(int i, const struct ibv_ah_attr *av)
{
	struct ibv_qp_attr a = {
		.alt_ah_attr = *av, .alt_port_num = av->port_num, .alt_timeout = 15,
		.alt_pkey_index = e[i].pkey_index, .path_mig_state = IBV_MIG_REARM,
	};

	CHECK_EQ(ibv_modify_qp(e[i].qp, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), 0);
}

/* With the other LID, port and service level as alternate path; @loads: it is loaded in RTR */
static void rtr(int i, bool loads)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = e[!i].qp->qp_num,
		.rq_psn = 100 + !i, .max_dest_rd_atomic = 4, .min_rnr_timer = 12,
		.ah_attr = to[i][0], .alt_ah_attr = to[i][1], .alt_port_num = to[i][1].port_num,
		.alt_timeout = 15, .alt_pkey_index = e[i].pkey_index,
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (e[i].qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	qp_to_init(&e[i], e[i].qp);
	CHECK_EQ(ibv_modify_qp(e[i].qp, &a, mask | (loads ? IBV_QP_ALT_PATH : 0)), 0);
}

/* @port: of the alternate path */
static void open_pair(enum ibv_qp_type type, int port, bool loads, const struct pair_how *more)
{
	struct pair_how how = more ? *more : (struct pair_how){ 0 };
	int i;

	how.type = type;
	for (i = 0; i < 2; i++)
		end_open(&e[i], i ? "mock1" : "mock0", &how);
	for (i = 0; i < 2; i++) {
		to[i][0] = way_to(&e[!i], 1, 0);
		to[i][1] = way_to(&e[!i], port, ALT_SL);
	}
	for (i = 0; i < 2; i++)
		rtr(i, loads);
}

static void open_armed(enum ibv_qp_type type, int port, const struct pair_how *more)
{
	int i;

	open_pair(type, port, false, more);
	for (i = 0; i < 2; i++) {
		qp_to_rts(e[i].qp, 100 + i);
		load(i, &to[i][1]);
	}
}

static void goes_by(int from, int sl)
{
	CHECK_EQ(post_recv(&e[!from], 7, 0, 64), 0);
	CHECK_EQ(post(&e[from], &e[!from], IBV_WR_SEND, 8, IBV_SEND_SIGNALED, 4096, 16), 0);
	CHECK_EQ(expect(&e[!from], 7, IBV_WC_SUCCESS).sl, sl);
	expect(&e[from], 8, IBV_WC_SUCCESS);
}

static void event(int i, enum ibv_event_type type)
{
	struct ibv_async_event ev;

	do {
		CHECK_EQ(ibv_get_async_event(e[i].ctx, &ev), 0);
		ibv_ack_async_event(&ev);
	} while (ev.event_type == IBV_EVENT_LID_CHANGE || ev.event_type == IBV_EVENT_GID_CHANGE);
	CHECK_EQ(ev.event_type, type);
	CHECK(ev.element.qp == e[i].qp);
}

/* What its owner has loaded is there, armed when something has been sent. */
static void is_armed(int i, const struct ibv_ah_attr *path, const struct ibv_ah_attr *alt)
{
	struct ibv_qp_attr attr = query(&e[i]);

	CHECK_EQ(attr.path_mig_state, IBV_MIG_ARMED);
	CHECK_EQ(attr.alt_port_num, alt->port_num);
	CHECK_EQ(attr.alt_timeout, 15);
	CHECK_EQ(attr.alt_pkey_index, e[i].pkey_index);
	same_av(&attr.alt_ah_attr, alt);
	same_av(&attr.ah_attr, path);
	CHECK_EQ(attr.port_num, path->port_num);
}

static void has_migrated(int i, const struct ibv_ah_attr *path)
{
	struct ibv_qp_attr attr = query(&e[i]);

	CHECK_EQ(attr.path_mig_state, IBV_MIG_MIGRATED);
	same_av(&attr.ah_attr, path);
	CHECK_EQ(attr.port_num, path->port_num);
	CHECK_EQ(attr.pkey_index, e[i].pkey_index);
}

static void has_none(int i)
{
	struct ibv_qp_attr attr = query(&e[i]);

	CHECK_EQ(attr.path_mig_state, IBV_MIG_MIGRATED);
	CHECK_EQ(attr.alt_port_num, 0);
	CHECK_EQ(attr.alt_ah_attr.dlid, 0);
	same_av(&attr.ah_attr, &to[i][0]);
}

static void close_pair(void)
{
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	CHECK_EQ(mock_cq_overruns(), 0);
}

/* Both ends are moved, armed each time; then a path breaks, at the one end or at the other. */
static void armed(enum ibv_qp_type type, int port, int cut)
{
	static const char *const devs[] = { "mock0", "mock1", "mock1", "mock0" };
	int i, k;

	open_armed(type, port, NULL);
	goes_by(0, 0);
	for (k = 0; k < 4; k++) {
		move(devs[k]);
		goes_by(k % 2, 0);
		for (i = 0; i < 2; i++)
			is_armed(i, &to[i][0], &to[i][1]);
	}
	CHECK_EQ(mock_cut(cut ? "mock1" : "mock0"), 1);
	goes_by(cut, ALT_SL);
	goes_by(!cut, ALT_SL);
	for (i = 0; i < 2; i++) {
		event(i, IBV_EVENT_PATH_MIG);
		has_migrated(i, &to[i][1]);
	}
	/* Back: the owners load what they have left, which they know by where it was. */
	move("mock0");
	for (i = 0; i < 2; i++)
		load(i, &to[i][0]);
	goes_by(0, ALT_SL);
	move("mock1");
	goes_by(1, ALT_SL);
	for (i = 0; i < 2; i++)
		is_armed(i, &to[i][1], &to[i][0]);
	CHECK_EQ(mock_cut("mock0"), 1);
	goes_by(0, 0);
	goes_by(1, 0);
	for (i = 0; i < 2; i++)
		has_migrated(i, &to[i][0]);
	close_pair();
}

/* Also with more keys than INFO has room for. */
static void many_regions(void)
{
	static struct ibv_mr *mr[2][4200];
	int i, k;

	open_armed(IBV_QPT_RC, 2, NULL);
	goes_by(0, 0);
	for (i = 0; i < TIMES(2); i++)
		for (k = 0; k < 4200; k++) {
			mr[i][k] = ibv_reg_mr(e[i].pd, e[i].buf, 8, ALL_ACCESS);
			CHECK(mr[i][k]);
		}
	for (i = 0; i < 2; i++) {
		move(i ? "mock1" : "mock0");
		goes_by(0, 0);
		for (k = 0; k < 2; k++)
			is_armed(k, &to[k][0], &to[k][1]);
	}
	for (i = 0; i < TIMES(2); i++)
		for (k = 0; k < 4200; k++)
			CHECK_EQ(ibv_dereg_mr(mr[i][k]), 0);
	close_pair();
}

/* It has migrated, and nobody has asked: that is the path that the new device is given. */
static void migrated_unseen(const char *dev, bool idle)
{
	int i;

	open_armed(IBV_QPT_RC, 2, NULL);
	goes_by(0, 0);
	CHECK_EQ(mock_cut("mock0"), 1);
	if (!idle)
		goes_by(0, ALT_SL);
	move(dev);
	goes_by(0, ALT_SL);
	goes_by(1, idle ? 0 : ALT_SL);
	for (i = 0; i < 2 - idle; i++) {
		event(i, IBV_EVENT_PATH_MIG);
		has_migrated(i, &to[i][1]);
		CHECK_EQ(query(&e[i]).alt_port_num, 0);
	}
	move(dev);
	goes_by(0, ALT_SL);
	close_pair();
}

static void no_event(int i)
{
	struct ibv_async_event ev;
	int flags = fcntl(e[i].ctx->async_fd, F_GETFL);

	CHECK_EQ(fcntl(e[i].ctx->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	while (!ibv_get_async_event(e[i].ctx, &ev)) {
		CHECK(ev.event_type == IBV_EVENT_LID_CHANGE || ev.event_type == IBV_EVENT_GID_CHANGE);
		ibv_ack_async_event(&ev);
	}
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(fcntl(e[i].ctx->async_fd, F_SETFL, flags), 0);
}

/* Its owner's alternate path is used up, and the module moves it by one of its own: that is not for the owner. */
static void ours_after_owners(void)
{
	int i;

	open_armed(IBV_QPT_RC, 2, NULL);
	goes_by(0, 0);
	/* In the place of one that was not used. */
	for (i = 0; i < 2; i++)
		load(i, &to[i][1]);
	goes_by(0, 0);
	CHECK_EQ(mock_cut("mock0"), 1);
	goes_by(0, ALT_SL);
	for (i = 0; i < 2; i++)
		event(i, IBV_EVENT_PATH_MIG);
	mock_reroute(e[0].qp->qp_num, ALT_SL + 1);
	no_event(0);
	/* And once more, which nobody has read when the owner loads another one. */
	mock_reroute(e[0].qp->qp_num, ALT_SL + 2);
	for (i = 0; i < 2; i++)
		load(i, &to[i][0]);
	goes_by(0, ALT_SL + 2);
	no_event(0);
	CHECK_EQ(mock_cut("mock0"), 1);
	goes_by(0, 0);
	for (i = 0; i < 2; i++)
		event(i, IBV_EVENT_PATH_MIG);
	close_pair();
}

/* It has migrated, and its owner loads the other path without having asked which one it has. */
static void loaded_unseen(void)
{
	int i;

	open_armed(IBV_QPT_RC, 2, NULL);
	goes_by(0, 0);
	CHECK_EQ(mock_cut("mock0"), 1);
	goes_by(0, ALT_SL);
	for (i = 0; i < 2; i++)
		load(i, &to[i][0]);
	goes_by(0, ALT_SL);
	move("mock0");
	goes_by(1, ALT_SL);
	for (i = 0; i < 2; i++)
		is_armed(i, &to[i][1], &to[i][0]);
	close_pair();
}

/* Another device has no such port, and the peer's path leads nowhere; or it can not migrate. */
static void lacking(struct mock_plug how)
{
	open_armed(IBV_QPT_RC, 2, NULL);
	goes_by(0, 0);
	move_to("mock0", how);
	goes_by(0, 0);
	goes_by(1, 0);
	has_none(0);
	CHECK_EQ(mock_cut("mock0"), 0);
	if (how.ports)
		has_none(1);
	/* It does not come back by itself, and can be loaded anew. */
	move("mock0");
	goes_by(0, 0);
	has_none(0);
	load(0, &to[0][1]);
	if (how.ports) {
		to[1][1] = way_to(&e[0], 2, ALT_SL);
		load(1, &to[1][1]);
	}
	goes_by(0, 0);
	is_armed(0, &to[0][0], &to[0][1]);
	close_pair();
}

/* A peer that does not say where its other port is; one that has stayed where it was need not. */
static void not_told(void)
{
	static const struct mock_plug same = { .lid = 0x7000 };

	CHECK_EQ(mock_unplug("mock1"), 0);
	plug("mock1", same);
	open_armed(IBV_QPT_RC, 2, NULL);
	goes_by(0, 0);
	fake_peer_lid(0x7100);
	move_away("mock1");
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock1" }), 0);
	CHECK_EQ(fake_resume("mock1", NULL), 0);
	CHECK_EQ(fake_settled(), 0);
	goes_by(0, 0);
	goes_by(1, 0);
	has_none(0);	/* not known where it leads */
	has_none(1);	/* no such port */
	close_pair();
	fake_peer_lid(0);
	plug_both();
}

/* Its P_Key is elsewhere in the new device's table, or not there for that port. */
static void partition(void)
{
	const struct pair_how second = { .pkey_index = 1 };

	open_armed(IBV_QPT_RC, 2, &second);
	goes_by(0, 0);
	move_to("mock0", (struct mock_plug){ .pkeys = { 0xffff, 0x8002, 0x8001 } });
	goes_by(0, 0);
	is_armed(0, &to[0][0], &to[0][1]);
	CHECK_EQ(mock_cut("mock0"), 1);
	goes_by(0, ALT_SL);
	goes_by(1, ALT_SL);
	has_migrated(0, &to[0][1]);
	close_pair();
	plug_both();
}

/* Loaded with RTR, and the owner goes on when his device has been exchanged. */
static void not_yet_sending(bool lacks)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS, .sq_psn = 101, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 4, .path_mig_state = IBV_MIG_REARM,
	};
	struct mock_plug how = { .no_apm = lacks };
	struct ibv_qp_attr now;

	open_pair(IBV_QPT_RC, 2, true, NULL);
	qp_to_rts(e[0].qp, 100);
	load(0, &to[0][1]);
	move_to("mock1", how);
	if (lacks) {
		has_none(1);
		close_pair();
		plug_both();
		return;
	}
	now = query(&e[1]);
	same_av(&now.alt_ah_attr, &to[1][1]);
	CHECK_EQ(ibv_modify_qp(e[1].qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
			       IBV_QP_PATH_MIG_STATE), 0);
	goes_by(0, 0);
	is_armed(0, &to[0][0], &to[0][1]);
	is_armed(1, &to[1][0], &to[1][1]);
	close_pair();
}

/* Loaded and never armed; or given back by a RESET. */
static void as_it_was(void)
{
	struct ibv_qp_attr a = { .path_mig_state = IBV_MIG_MIGRATED };

	open_armed(IBV_QPT_RC, 2, NULL);
	CHECK_EQ(ibv_modify_qp(e[0].qp, &a, IBV_QP_PATH_MIG_STATE), 0);
	move("mock0");
	goes_by(0, 0);
	CHECK_EQ(query(&e[0]).path_mig_state, IBV_MIG_MIGRATED);
	CHECK_EQ(query(&e[0]).alt_port_num, 2);
	CHECK_EQ(mock_cut("mock0"), 0);
	a.path_mig_state = IBV_MIG_REARM;
	CHECK_EQ(ibv_modify_qp(e[0].qp, &a, IBV_QP_PATH_MIG_STATE), 0);
	goes_by(0, 0);
	is_armed(0, &to[0][0], &to[0][1]);
	qp_to(e[0].qp, IBV_QPS_RESET);
	move("mock0");
	CHECK_EQ(query(&e[0]).alt_port_num, 0);
	close_pair();
}

static void limit(uint32_t rate, uint32_t burst)
{
	struct ibv_qp_rate_limit_attr a = { .rate_limit = rate, .max_burst_sz = burst };

	CHECK_EQ(ibv_modify_qp_rate_limit(e[0].qp, &a), 0);
}

static void paced(enum ibv_qp_type type)
{
	const char *why = "";

	open_pair(type, 2, false, NULL);
	qp_to_rts(e[0].qp, 100);
	qp_to_rts(e[1].qp, 101);
	limit(1000, 5);
	CHECK_EQ(mock_rates("mock0"), 1005);
	move("mock0");
	CHECK_EQ(mock_rates("mock0"), 1005);
	move("mock1");
	CHECK_EQ(mock_rates("mock0"), 1005);
	CHECK_EQ(mock_rates("mock1"), 0);
	goes_by(0, 0);
	/* One that has no such verb is refused; one that has not that rate serves, without. */
	move_away("mock0");
	plug("mock0", (struct mock_plug){ .without = MOCK_WITHOUT(modify_qp_rate_limit) });
	CHECK_EQ(fake_resume("mock0", &why), EOPNOTSUPP);
	CHECK(strstr(why, "mock0 has no ibv_modify_qp_rate_limit()"), "%s", why);
	CHECK_EQ(mock_unplug("mock0"), 0);
	back_with("mock0", (struct mock_plug){ .max_rate = 999 });
	CHECK_EQ(mock_rates("mock0"), 0);
	goes_by(0, 0);
	move("mock0");
	CHECK_EQ(mock_rates("mock0"), 1005);
	limit(0, 0);
	move_to("mock0", (struct mock_plug){ .without = MOCK_WITHOUT(modify_qp_rate_limit) });
	goes_by(0, 0);
	move("mock0");
	CHECK_EQ(mock_rates("mock0"), 0);
	limit(7, 0);
	qp_to(e[0].qp, IBV_QPS_RESET);
	move("mock0");
	CHECK_EQ(mock_rates("mock0"), 0);
	close_pair();
}

/* The owner sets its path again in SQD, with another service level: to where the peer is that he knows by its old place. */
static void path_again(const char *dev)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD }, is;

	open_armed(IBV_QPT_RC, 2, NULL);
	move(dev);
	qp_to(e[0].qp, IBV_QPS_SQD);
	a.ah_attr = to[0][0];
	a.ah_attr.sl = 5;
	CHECK_EQ(ibv_modify_qp(e[0].qp, &a, IBV_QP_STATE | IBV_QP_AV), 0);
	qp_to(e[0].qp, IBV_QPS_RTS);
	goes_by(0, 5);
	is = query(&e[0]);
	same_av(&is.ah_attr, &a.ah_attr);
	move(dev);
	goes_by(0, 5);
	close_pair();
}

int main(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };
	int i;

	alarm(HANGS);
	plug_both();
	for (i = 0; i < 4; i++)
		armed(types[i / 2], 1 + i % 2, i % 2);
	armed(IBV_QPT_RC, 2, 0);
	many_regions();
	migrated_unseen("mock0", false);
	migrated_unseen("mock1", false);
	migrated_unseen("mock0", true);
	loaded_unseen();
	ours_after_owners();
	lacking((struct mock_plug){ .ports = 1 });
	lacking((struct mock_plug){ .no_apm = true });
	not_told();
	partition();
	not_yet_sending(false);
	not_yet_sending(true);
	as_it_was();
	path_again("mock0");
	path_again("mock1");
	paced(IBV_QPT_RC);
	paced(IBV_QPT_UC);
	return 0;
}
