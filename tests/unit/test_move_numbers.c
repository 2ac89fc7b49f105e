// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The numbers that an application sees never change, also where the new device's numbers collide
 * with those that other objects are known by, and the GIDs and P_Keys are at other indexes.
 */
#include <dlfcn.h>
#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../../libshim/shim.h"
#include "../../libshim/ud.h"
#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

static void back(const struct mock_plug *how)
{
	const char *why = "";
	int ret;

	CHECK_EQ(mock_plug(how), 0);
	ret = fake_resume(how->name, &why);
	CHECK(!ret, "%d, %s", ret, why);
	CHECK_EQ(fake_settled(), 0);
}

static void plug_anew(const char *dev)
{
	CHECK_EQ(mock_unplug(dev), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = dev }), 0);
}

static void collide(void)
{
	struct ibv_mr *more[4];
	struct ibv_qp *idle[4];
	struct traffic *t;
	struct end e[2];
	uint32_t qpn, lkey, rkey;
	unsigned int i, j;

	pair_open(e, &(struct pair_how){ 0 });
	for (i = 0; i < 4; i++) {
		more[i] = ibv_reg_mr(e[0].pd, e[0].buf + 4096 * i, 4096, ALL_ACCESS);
		idle[i] = end_create_qp(&e[0], &(struct pair_how){ 0 });
		CHECK(more[i] && idle[i]);
	}
	qpn = e[0].qp->qp_num;
	lkey = e[0].mr->lkey;
	rkey = e[0].mr->rkey;
	t = traffic_start(e, &(struct traffic_how){ .seed = 4 });
	for (i = 0; i < 4; i++) {
		traffic_flows(t, 20);
		move_away("mock0");
		/* From one object behind: each new number was its neighbour's */
		back(&(struct mock_plug){ .name = "mock0", .first_qpn = qpn + i,
					  .first_key = lkey + 0x100 * i });
		traffic_flows(t, 20);
		CHECK_EQ(e[0].qp->qp_num, qpn);
		CHECK_EQ(e[0].mr->lkey, lkey);
		CHECK_EQ(e[0].mr->rkey, rkey);
		/* Who was told the number of one that is not connected yet meets no stranger. */
		for (j = 0; j < 4; j++) {
			unsigned int k;

			CHECK(to_rp_qp(e[0].qp)->real->qp_num != idle[j]->qp_num);
			for (k = 0; k < 4; k++)
				CHECK(j == k || to_rp_qp(idle[k])->real->qp_num != idle[j]->qp_num);
		}
	}
	/* New ones have numbers that nobody else is known by. */
	for (i = 0; i < 4; i++) {
		struct ibv_mr *mr = ibv_reg_mr(e[0].pd, e[0].buf, 4096, ALL_ACCESS);
		struct ibv_qp *qp = end_create_qp(&e[0], &(struct pair_how){ 0 });

		CHECK(mr && qp);
		CHECK(qp->qp_num != qpn && mr->lkey != lkey && mr->rkey != rkey);
		for (j = 0; j < 4; j++) {
			CHECK(mr->lkey != more[j]->lkey && mr->rkey != more[j]->rkey);
			CHECK(qp->qp_num != idle[j]->qp_num);
		}
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK_EQ(ibv_destroy_qp(qp), 0);
	}
	traffic_stop(t);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(ibv_dereg_mr(more[i]), 0);
		CHECK_EQ(ibv_destroy_qp(idle[i]), 0);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* A key that is made after the move can be used by the peer at once. */
static void new_keys(void)
{
	struct end e[2];
	struct ibv_mr *mr, *old;
	char *fresh = aligned_alloc(4096, 4096);
	int i;

	CHECK(fresh);
	pair_open(e, &(struct pair_how){ 0 });
	move_away("mock0");
	back(&(struct mock_plug){ .name = "mock0" });
	for (i = 0; i < 3; i++) {
		mr = ibv_reg_mr(e[0].pd, fresh, 4096, ALL_ACCESS);
		CHECK(mr);
		/* The peer writes there, and this end sends from there. */
		old = e[0].mr;
		e[0].mr = mr;
		strcpy(e[1].buf, "to a new region");
		{
			char *buf = e[0].buf;

			e[0].buf = fresh;
			memset(fresh, 0, 4096);
			CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 32), 0);
			expect(&e[1], 1, IBV_WC_SUCCESS);
			CHECK(!strcmp(fresh, "to a new region"));
			CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 2, IBV_SEND_SIGNALED, 0, 32), 0);
			expect(&e[0], 2, IBV_WC_SUCCESS);
			e[0].buf = buf;
		}
		e[0].mr = old;
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		if (i == 1) {
			move_away("mock1");
			move_back("mock1");
		}
	}
	pair_close(e);
	free(fresh);
	CHECK_EQ(mock_live_total(), 0);
}

static void gids(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct traffic *t;
	struct end e[2];
	unsigned int i;

	/* The IPv4 GID */
	pair_open(e, &(struct pair_how){ .sgid_index = 1 });
	t = traffic_start(e, &(struct traffic_how){ .seed = 5 });
	for (i = 3; i; i--) {
		traffic_flows(t, 20);
		move_away("mock0");
		back(&(struct mock_plug){ .name = "mock0", .gid_shift = i });
		traffic_flows(t, 20);
		CHECK_EQ(mock_last_grh("mock0").sgid_index, i + 1);
		CHECK_EQ(ibv_query_qp(e[0].qp, &attr, IBV_QP_AV, &init), 0);
		CHECK_EQ(attr.ah_attr.grh.sgid_index, 1);
	}
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* All that ibv_query_qp() tells, at the end that moves and at the other one. */
struct told {
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
};

static void ask(const struct end *e, struct told *t)
{
	memset(t, 0, sizeof(*t));
	CHECK_EQ(ibv_query_qp(e->qp, &t->attr, (IBV_QP_RATE_LIMIT << 1) - 1, &t->init), 0);
}

static void same_path(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b)
{
	CHECK(!memcmp(&a->grh.dgid, &b->grh.dgid, sizeof(a->grh.dgid)));
	CHECK_EQ(a->grh.sgid_index, b->grh.sgid_index);
	CHECK_EQ(a->grh.hop_limit, b->grh.hop_limit);
	CHECK_EQ(a->grh.flow_label, b->grh.flow_label);
	CHECK_EQ(a->grh.traffic_class, b->grh.traffic_class);
	CHECK_EQ(a->dlid, b->dlid);
	CHECK_EQ(a->sl, b->sl);
	CHECK_EQ(a->src_path_bits, b->src_path_bits);
	CHECK_EQ(a->static_rate, b->static_rate);
	CHECK_EQ(a->is_global, b->is_global);
	CHECK_EQ(a->port_num, b->port_num);
}

static void same_answer(const struct told *a, const struct told *b)
{
#define SAME(field) CHECK_EQ(b->field, a->field)
	SAME(attr.qp_state);
	SAME(attr.cur_qp_state);
	SAME(attr.path_mtu);
	SAME(attr.path_mig_state);
	SAME(attr.qkey);
	SAME(attr.rq_psn);
	SAME(attr.sq_psn);
	SAME(attr.dest_qp_num);
	SAME(attr.qp_access_flags);
	SAME(attr.pkey_index);
	SAME(attr.alt_pkey_index);
	SAME(attr.en_sqd_async_notify);
	SAME(attr.sq_draining);
	SAME(attr.max_rd_atomic);
	SAME(attr.max_dest_rd_atomic);
	SAME(attr.min_rnr_timer);
	SAME(attr.port_num);
	SAME(attr.timeout);
	SAME(attr.retry_cnt);
	SAME(attr.rnr_retry);
	SAME(attr.alt_port_num);
	SAME(attr.alt_timeout);
	SAME(attr.rate_limit);
	same_path(&a->attr.ah_attr, &b->attr.ah_attr);
	same_path(&a->attr.alt_ah_attr, &b->attr.alt_ah_attr);
	SAME(attr.cap.max_send_wr);
	SAME(attr.cap.max_recv_wr);
	SAME(attr.cap.max_send_sge);
	SAME(attr.cap.max_recv_sge);
	SAME(attr.cap.max_inline_data);
	SAME(init.cap.max_send_wr);
	SAME(init.cap.max_recv_wr);
	SAME(init.cap.max_send_sge);
	SAME(init.cap.max_recv_sge);
	SAME(init.cap.max_inline_data);
	SAME(init.qp_type);
	SAME(init.sq_sig_all);
#undef SAME
	CHECK(a->init.send_cq == b->init.send_cq && a->init.recv_cq == b->init.recv_cq);
	CHECK(a->init.srq == b->init.srq && a->init.qp_context == b->init.qp_context);
}

static void queried(void)
{
	union ibv_gid before;
	struct ibv_port_attr port;
	struct ibv_gid_entry gid;
	struct told was[2], is;
	struct end e[2];
	int i, round;

	plug_anew("mock0");
	pair_open(e, &(struct pair_how){ .sgid_index = 1 });
	for (i = 0; i < 2; i++)
		ask(&e[i], &was[i]);
	for (round = 1; round <= 2; round++) {
		CHECK_EQ(ibv_query_gid(e[0].ctx, 1, 1, &before), 0);
		move_away("mock0");
		back(&(struct mock_plug){ .name = "mock0", .gid_shift = round, .first_qpn = e[0].qp->qp_num + 77 });
		for (i = 0; i < 2; i++) {
			ask(&e[i], &is);
			same_answer(&was[i], &is);
		}
		/* The port is the new device's, its GID at the index where the old one's was. */
		CHECK_EQ(ibv_query_port(e[0].ctx, 1, (void *)&port), 0);	/* of before the macro */
		CHECK_EQ(port.state, IBV_PORT_ACTIVE);
		CHECK_EQ(ibv_query_gid_ex(e[0].ctx, 1, 1, &gid, 0), 0);
		CHECK_EQ(gid.gid_index, 1);
		CHECK_EQ(gid.gid_type, IBV_GID_TYPE_ROCE_V2);
		CHECK_EQ(gid.gid.raw[12], 10);
		CHECK(memcmp(&gid.gid, &before, sizeof(before)), "the old one's");
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* Each entry of the table is what is at its index, and only one is there. */
static void table_is_true(struct ibv_context *ctx)
{
	struct ibv_gid_entry t[16];
	union ibv_gid g;
	int n = ibv_query_gid_table(ctx, t, 16, 0), i, j;

	CHECK(n > 0, "%d", n);
	for (i = 0; i < n; i++) {
		CHECK_EQ(ibv_query_gid(ctx, t[i].port_num, t[i].gid_index, &g), 0);
		CHECK(!memcmp(&g, &t[i].gid, sizeof(g)), "another one is at index %u", t[i].gid_index);
		for (j = 0; j < i; j++)
			CHECK(t[j].port_num != t[i].port_num || t[j].gid_index != t[i].gid_index,
			      "two at index %u", t[i].gid_index);
	}
}

/* A device with more GIDs than the one before, and others at the indexes of its. */
static void gid_table(void)
{
	union ibv_gid now;
	struct end e;

	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock2", .gid_shift = 1, .no_ipv4 = true }), 0);
	end_open(&e, "mock2", &(struct pair_how){ 0 });
	move_away("mock2");
	back(&(struct mock_plug){ .name = "mock2" });
	table_is_true(e.ctx);
	CHECK_EQ(ibv_query_gid(e.ctx, 1, 1, &now), 0);
	CHECK_EQ(now.raw[0], 0xfe);	/* link-local, as it was there */
	CHECK_EQ(ibv_query_gid(e.ctx, 1, 0, &now), 0);
	CHECK_EQ(now.raw[12], 10);
	/* Without it nothing takes its index, and with it that is as it was. */
	move_away("mock2");
	back(&(struct mock_plug){ .name = "mock2", .no_ipv4 = true });
	table_is_true(e.ctx);
	CHECK_EQ(ibv_query_gid(e.ctx, 1, 0, &now), 0);
	CHECK_EQ(now.raw[12], 0);
	CHECK_EQ(now.raw[0], 0);
	CHECK_EQ(ibv_query_gid(e.ctx, 1, 1, &now), 0);
	CHECK_EQ(now.raw[0], 0xfe);
	move_away("mock2");
	back(&(struct mock_plug){ .name = "mock2", .gid_shift = 3, .ports = 2 });
	table_is_true(e.ctx);
	CHECK_EQ(ibv_query_gid(e.ctx, 1, 0, &now), 0);
	CHECK_EQ(now.raw[12], 10);
	end_close(&e);
	CHECK_EQ(mock_unplug("mock2"), 0);
	CHECK_EQ(mock_live_total(), 0);
}

/* A GID that came after the first move, and a queue pair that uses it. */
static void later_gid(unsigned int shift)
{
	struct pair_how how = { 0 };
	struct end e[2];

	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock2", .no_ipv4 = true }), 0);
	end_open(&e[0], "mock2", &how);
	end_open(&e[1], "mock1", &how);
	move_away("mock2");
	back(&(struct mock_plug){ .name = "mock2", .no_ipv4 = true });
	mock_add_ipv4("mock2");
	e[0].sgid_index = e[1].sgid_index = 1;
	pair_connect(e);
	CHECK_EQ(mock_last_grh("mock2").sgid_index, 1);
	move_away("mock2");
	back(&(struct mock_plug){ .name = "mock2", .gid_shift = shift });
	CHECK_EQ(mock_last_grh("mock2").sgid_index, shift + 1);
	table_is_true(e[0].ctx);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 2, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[1], 2, IBV_WC_SUCCESS);
	pair_close(e);
	CHECK_EQ(mock_unplug("mock2"), 0);
	CHECK_EQ(mock_live_total(), 0);
}

/* A queue pair that is connected after a move has the index that it was given, too. */
static void query_after(void)
{
	struct pair_how how = { 0 };
	struct ibv_qp_init_attr init;
	struct ibv_qp *old[2];
	struct ibv_qp_attr attr;
	struct end e[2];
	int i;

	plug_anew("mock0");
	pair_open(e, &how);
	move_away("mock0");
	back(&(struct mock_plug){ .name = "mock0", .gid_shift = 3 });
	for (i = 0; i < 2; i++) {
		old[i] = e[i].qp;
		e[i].qp = end_create_qp(&e[i], &how);
	}
	pair_connect(e);
	CHECK_EQ(mock_last_grh("mock0").sgid_index, 3);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(ibv_query_qp(e[i].qp, &attr, IBV_QP_AV, &init), 0);
		CHECK_EQ(attr.ah_attr.grh.sgid_index, 0);
		CHECK_EQ(ibv_query_qp(old[i], &attr, IBV_QP_AV, &init), 0);
		CHECK_EQ(attr.ah_attr.grh.sgid_index, 0);
		CHECK_EQ(ibv_destroy_qp(old[i]), 0);
	}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/*
 * A GID that stands for none of the application's has an index of its own, where there is one, and not that of one which
 * the device has not: who uses that would be somebody else.
 */
static void spare_index(void)
{
	union ibv_gid now;
	struct end e;

	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock2", .gid_shift = 1 }), 0);
	end_open(&e, "mock2", &(struct pair_how){ 0 });
	CHECK_EQ(ibv_query_gid(e.ctx, 1, 2, &now), 0);
	CHECK_EQ(now.raw[12], 10);
	move_away("mock2");
	back(&(struct mock_plug){ .name = "mock2", .gid_shift = 1, .no_ipv4 = true, .more_local = true });
	table_is_true(e.ctx);
	CHECK_EQ(ibv_query_gid(e.ctx, 1, 1, &now), 0);
	CHECK(now.raw[0] == 0xfe && !now.raw[10]);
	CHECK_EQ(ibv_query_gid(e.ctx, 1, 2, &now), 0);
	CHECK_EQ(now.raw[0], 0);
	CHECK_EQ(ibv_query_gid(e.ctx, 1, 0, &now), 0);
	CHECK(now.raw[0] == 0xfe && now.raw[10] == 1);
	end_close(&e);
	CHECK_EQ(mock_unplug("mock2"), 0);
	CHECK_EQ(mock_live_total(), 0);
}

/* An address by which a datagram came, from the device's index to the application's, and back for the handle. */
static void from_wc(void)
{
	struct ibv_wc wc = { .sl = 3, .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr attr;
	struct ibv_grh grh = { 0 };
	struct ibv_ah *ah = NULL;
	struct end e;
	int i;

	plug_anew("mock0");
	end_open(&e, "mock0", &(struct pair_how){ 0 });
	for (i = 0; i < 4; i++) {
		/* To the IPv4 GID, which is behind the other one of the device. */
		CHECK_EQ(ibv_query_gid(e.ctx, 1, 1, &grh.dgid), 0);
		CHECK_EQ(ibv_init_ah_from_wc(e.ctx, 1, &wc, &grh, &attr), 0);
		CHECK_EQ(attr.grh.sgid_index, 1);
		CHECK_EQ(attr.sl, 3);
		if (!ah)
			ah = ibv_create_ah_from_wc(e.pd, &wc, &grh, 1);
		CHECK(ah);
		CHECK_EQ(((struct rp_ah *)ah)->attr.grh.sgid_index, 1);
		CHECK_EQ(((struct rp_ah *)ah)->own.attr.grh.sgid_index, i ? 5 - i : 1);
		if (i < 2) {	/* each from its own device; then one that follows */
			CHECK_EQ(ibv_destroy_ah(ah), 0);
			ah = NULL;
		}
		move_away("mock0");
		back(&(struct mock_plug){ .name = "mock0", .gid_shift = 3 - i });
	}
	if (ah)
		CHECK_EQ(ibv_destroy_ah(ah), 0);
	end_close(&e);
	CHECK_EQ(mock_live_total(), 0);
}

/* A thread may stop before it has entered a verb, or when it has left it, while a whole move goes on. */
static __thread enum { STOPS_NOT, STOPS_BEFORE, STOPS_BEHIND } stops;
static atomic_bool has_stopped, goes_on;

static void stop(void)
{
	stops = STOPS_NOT;
	has_stopped = true;
	while (!goes_on)
		usleep(100);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	int (*real)(pthread_rwlock_t *l) = dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");

	if (stops == STOPS_BEFORE)
		stop();
	return real(l);
}

int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	int (*real)(pthread_rwlock_t *l) = dlsym(RTLD_NEXT, "pthread_rwlock_unlock");
	int ret = real(l);

	if (stops == STOPS_BEHIND)
		stop();
	return ret;
}

static void *asks_pkey(void *ctx)
{
	stops = STOPS_BEHIND;
	CHECK_EQ(ibv_get_pkey_index(ctx, 1, htobe16(0x8001)), 1);
	return NULL;
}

static void *asks_table(void *ctx)
{
	struct ibv_gid_entry t[16];

	stops = STOPS_BEHIND;
	CHECK_EQ(ibv_query_gid_table(ctx, t, 16, 0), 2);
	CHECK(t[0].gid_index == 0 && t[1].gid_index == 1, "%u, %u", t[0].gid_index, t[1].gid_index);
	return NULL;
}

static void *asks_wc(void *ctx)
{
	struct ibv_ah_attr attr;
	struct ibv_grh grh = { 0 };
	struct ibv_wc wc = { 0 };

	CHECK_EQ(ibv_query_gid(ctx, 1, 1, &grh.dgid), 0);
	stops = STOPS_BEHIND;
	CHECK_EQ(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
	CHECK_EQ(attr.grh.sgid_index, 1);
	return NULL;
}

/* Of the device that is there then. */
static void *asks_mac(void *ctx)
{
	struct ibv_ah_attr av = { .is_global = 1, .port_num = 1 };
	uint8_t mac[6];
	uint16_t vid;

	stops = STOPS_BEFORE;
	CHECK_EQ(ibv_resolve_eth_l2_from_gid(ctx, &av, mac, &vid), 0);
	return NULL;
}

/* Threads that ask for indexes, of which the maps become another device's before they are through. */
static void asked_meanwhile(void)
{
	static const uint16_t pkeys[2][MOCK_PKEYS] = { { 0x8001, 0xffff }, { 0x8002, 0xffff, 0x8001 } };
	static void *(*const asks[])(void *ctx) = { asks_pkey, asks_table, asks_wc, asks_mac };
	unsigned int i, round;
	struct end e[2];
	pthread_t t;

	plug_anew("mock0");
	pair_open(e, &(struct pair_how){ .pkey_index = 1 });
	for (round = 0; round < 3; round++)
		for (i = 0; i < 4; i++) {
			struct mock_plug to = { .name = "mock0", .gid_shift = (round + i) % 3 + 1 };

			memcpy(to.pkeys, pkeys[(round + i) % 2], sizeof(to.pkeys));
			has_stopped = goes_on = false;
			CHECK_EQ(pthread_create(&t, NULL, asks[i], e[0].ctx), 0);
			while (!has_stopped)
				usleep(100);
			move_away("mock0");
			back(&to);
			goes_on = true;
			pthread_join(t, NULL);
		}
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static struct ibv_qp *in_partition(struct end *e, enum ibv_qp_type type, int index)
{
	struct ibv_qp *qp = end_create_qp(e, &(struct pair_how){ .type = type });
	int before = e->pkey_index;

	CHECK(qp);
	e->pkey_index = index;
	qp_to_init(e, qp);
	e->pkey_index = before;
	return qp;
}

/* The application's index, and its device's P_Key. */
static void is_in(struct end *e, struct ibv_qp *qp, int index, uint16_t pkey)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	__be16 found;

	CHECK_EQ(mock_pkey(to_rp_qp(qp)->real->qp_num), pkey);
	CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_PKEY_INDEX, &init), 0);
	CHECK_EQ(attr.pkey_index, index);
	CHECK_EQ(ibv_query_pkey(e->ctx, 1, index, &found), 0);
	CHECK_EQ(be16toh(found), pkey);
	CHECK_EQ(ibv_get_pkey_index(e->ctx, 1, htobe16(pkey)), index);
}

static void not_there(const struct mock_plug *how, const char *pkey)
{
	const char *why = "";

	CHECK_EQ(mock_plug(how), 0);
	CHECK_EQ(fake_resume(how->name, &why), ENETDOWN);
	CHECK(strstr(why, how->name) && strstr(why, pkey), "says: %s", why);
	CHECK_EQ(mock_unplug(how->name), 0);
}

/* The table has another order on the new device; what no queue pair uses may be missing. */
static void pkeys(void)
{
	static const struct mock_plug to[] = {
		{ .name = "mock0", .pkeys = { 0x8001, 0x8003, 0xffff } },
		{ .name = "mock0", .pkeys = { 0x8002, 0xffff, 0x8005, 0x8001 } },
		{ .name = "mock0", .pkeys = { 0xffff, 0x8001, 0x8002 } },
		{ .name = "mock0", .pkeys = { 0x8003, 0, 0x8001 } },
	};
	struct ibv_qp *idle, *ud, *fresh, *later;
	struct traffic *t;
	struct end e[2];
	unsigned int i;

	pair_open(e, &(struct pair_how){ .pkey_index = 1 });
	idle = in_partition(&e[0], IBV_QPT_RC, 1);
	ud = in_partition(&e[0], IBV_QPT_UD, 1);
	t = traffic_start(e, &(struct traffic_how){ .seed = 6 });
	for (i = 0; i < 4; i++) {
		traffic_flows(t, 20);
		move_away("mock0");
		back(&to[i]);
		traffic_flows(t, 20);
		is_in(&e[0], e[0].qp, 1, 0x8001);
		is_in(&e[0], idle, 1, 0x8001);
		is_in(&e[0], ud, 1, 0x8001);
		fresh = in_partition(&e[0], IBV_QPT_RC, 1);
		is_in(&e[0], fresh, 1, 0x8001);
		CHECK_EQ(ibv_destroy_qp(fresh), 0);
	}
	/* One that has come meanwhile, and has a queue pair now. */
	mock_set_pkey("mock0", 1, 0x8004);
	i = ibv_get_pkey_index(e[0].ctx, 1, htobe16(0x8004));
	CHECK(i < MOCK_PKEYS, "%u", i);
	later = in_partition(&e[0], IBV_QPT_RC, i);
	is_in(&e[0], later, i, 0x8004);
	move_away("mock0");
	/* The wrong one is refused, and nothing is lost by that; nor is it forgotten what is needed. */
	not_there(&(struct mock_plug){ .name = "mock0", .pkeys = { 0x8004, 0xffff } },
		  "has no P_Key 0x8001");
	not_there(&(struct mock_plug){ .name = "mock7", .pkeys = { 0xffff, 0x8001, 0x8003 } },
		  "has no P_Key 0x8004");
	back(&(struct mock_plug){ .name = "mock0", .pkeys = { 0x8003, 0x8004, 0x8001 } });
	traffic_flows(t, 20);
	is_in(&e[0], e[0].qp, 1, 0x8001);
	is_in(&e[0], later, i, 0x8004);
	move_away("mock0");
	back(&(struct mock_plug){ .name = "mock0", .pkeys = { 0xffff, 0x8004, 0x8001 } });
	traffic_flows(t, 20);
	is_in(&e[0], e[0].qp, 1, 0x8001);
	is_in(&e[0], later, i, 0x8004);
	traffic_stop(t);
	CHECK_EQ(ibv_destroy_qp(later), 0);
	CHECK_EQ(ibv_destroy_qp(ud), 0);
	CHECK_EQ(ibv_destroy_qp(idle), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	collide();
	new_keys();
	pkeys();
	gids();
	queried();
	gid_table();
	later_gid(1);
	later_gid(2);
	query_after();
	spare_index();
	from_wc();
	asked_meanwhile();
	return 0;
}
