// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections that are made after a move, by the numbers and with the keys that were told before it;
 * and keys that are told, taken back, or wrong.
 */
#include <pthread.h>

#include "../../libshim/shim.h"
#include "check.h"
#include "move_cycle.h"
#include "pair.h"

static void back(const char *dev, uint32_t first_qpn, uint32_t first_key)
{
	const char *why = "";
	int ret;

	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = dev, .first_qpn = first_qpn,
						.first_key = first_key }), 0);
	ret = fake_resume(dev, &why);
	CHECK(!ret, "%d, %s", ret, why);
	CHECK_EQ(fake_settled(), 0);
}

/* @e[0].qp and a queue pair of @far, connected anew by the numbers that the application has. */
static void connect_by(struct end *near, struct ibv_qp *qn, struct end *far, struct ibv_qp *qf)
{
	qp_to_init(near, qn);
	qp_to_init(far, qf);
	qp_to_rtr(near, qn, qf->qp_num, 200);
	qp_to_rtr(far, qf, qn->qp_num, 100);
	qp_to_rts(qn, 100);
	qp_to_rts(qf, 200);
}

static void write_and_read_back(struct end *from, struct end *to, const char *text)
{
	strcpy(from->buf + 512, text);
	memset(to->buf + 512, 0, 32);
	CHECK_EQ(post(from, to, IBV_WR_RDMA_WRITE, 7, IBV_SEND_SIGNALED, 512, 32), 0);
	expect(from, 7, IBV_WC_SUCCESS);
	CHECK(!strcmp(to->buf + 512, text), "%s", to->buf + 512);
}

/*
 * Made before the move and connected after it; made after it; by who knew the moved one, and by a
 * third who did not. The third has the key from the second, who was told it before the move.
 */
static void later(void)
{
	struct end e[2], third;
	struct ibv_qp *idle, *near, *strange, *knew;
	struct ibv_qp *first;

	pair_open(e, &(struct pair_how){ 0 });
	end_open(&third, "mock1", &(struct pair_how){ 0 });
	idle = end_create_qp(&e[0], &(struct pair_how){ 0 });
	move_away("mock0");
	/* All numbers are others' now: the keys', too. */
	back("mock0", e[0].qp->qp_num + 1, e[0].mr->lkey + 0x100);
	CHECK(to_rp_qp(idle)->real->qp_num != idle->qp_num);

	/* A stranger to the one that was there before the move */
	connect_by(&third, third.qp, &e[0], idle);
	write_and_read_back(&third, &e[0], "by a stranger");
	first = e[0].qp;
	e[0].qp = idle;
	write_and_read_back(&e[0], &third, "to a stranger");
	e[0].qp = first;

	/* Who knew it, to one that is new */
	knew = end_create_qp(&e[1], &(struct pair_how){ 0 });
	near = end_create_qp(&e[0], &(struct pair_how){ 0 });
	connect_by(&e[1], knew, &e[0], near);
	first = e[1].qp;
	e[1].qp = knew;
	write_and_read_back(&e[1], &e[0], "by who knew it");
	e[1].qp = first;
	write_and_read_back(&e[1], &e[0], "on the old connection");

	/* Both have moved. */
	move_away("mock1");
	move_back("mock1");
	strange = end_create_qp(&third, &(struct pair_how){ 0 });
	CHECK_EQ(ibv_destroy_qp(near), 0);
	near = end_create_qp(&e[0], &(struct pair_how){ 0 });
	connect_by(&third, strange, &e[0], near);
	first = third.qp;
	third.qp = strange;
	write_and_read_back(&third, &e[0], "both have moved");
	third.qp = first;
	CHECK_EQ(ibv_destroy_qp(strange), 0);
	CHECK_EQ(ibv_destroy_qp(knew), 0);
	CHECK_EQ(ibv_destroy_qp(near), 0);
	CHECK_EQ(ibv_destroy_qp(idle), 0);
	end_close(&third);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* A queue pair is taken to RESET and connected again: the same pair by its old numbers, then the
 * moved one to a third, whose keys are its own, then the peer to one that has not moved. */
static void reconnect(void)
{
	struct end e[2], third;

	pair_open(e, &(struct pair_how){ 0 });
	end_open(&third, "mock1", &(struct pair_how){ 0 });
	move_away("mock0");
	back("mock0", 0, e[0].mr->lkey + 0x100);
	write_and_read_back(&e[1], &e[0], "before");
	qp_to(e[0].qp, IBV_QPS_RESET);
	qp_to(e[1].qp, IBV_QPS_RESET);
	connect_by(&e[0], e[0].qp, &e[1], e[1].qp);
	write_and_read_back(&e[1], &e[0], "the same again");
	write_and_read_back(&e[0], &e[1], "and back");
	qp_to(e[0].qp, IBV_QPS_RESET);
	connect_by(&third, third.qp, &e[0], e[0].qp);
	write_and_read_back(&third, &e[0], "a third");
	qp_to(e[1].qp, IBV_QPS_RESET);
	qp_to(third.qp, IBV_QPS_RESET);
	connect_by(&third, third.qp, &e[1], e[1].qp);
	write_and_read_back(&third, &e[1], "to one that has not moved");
	write_and_read_back(&e[1], &third, "by one that had keys of another");
	end_close(&third);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void flushed_after(struct end *e, uint64_t wr_id, enum ibv_wc_status status)
{
	expect(e, wr_id, status);
	expect(e, wr_id + 1, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(post(e, e, IBV_WR_SEND, wr_id + 2, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(e, wr_id + 2, IBV_WC_WR_FLUSH_ERR);
	expect_none(e, 10);
}

/*
 * The number of a key that is not there is on the device another region's: what uses it is refused
 * as a device would, in its place in the queue, and that region is not touched. @mine: the local key
 * is the wrong one.
 */
static void wrong_key(bool mine)
{
	struct ibv_mr *gone, *planted, *right;
	struct end e[2];
	char *secret = aligned_alloc(4096, 4096);
	uint32_t key;

	CHECK(secret);
	pair_open(e, &(struct pair_how){ 0 });
	gone = ibv_reg_mr(e[0].pd, e[0].buf, 4096, ALL_ACCESS);
	planted = ibv_reg_mr(e[0].pd, secret, 4096, ALL_ACCESS);
	CHECK(gone && planted);
	key = gone->rkey;
	memset(secret, 0x55, 4096);
	move_away("mock0");
	/* The numbers begin so that the planted region gets the ones of the one that goes. */
	back("mock0", 0, gone->lkey - 4 * 0x100);
	CHECK_EQ(to_rp_mr(planted)->real->rkey, key);
	CHECK_EQ(to_rp_mr(planted)->real->lkey, gone->lkey);
	CHECK_EQ(ibv_dereg_mr(gone), 0);

	right = e[0].mr;
	strcpy(e[1].buf, "before it");
	CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 1, 0, 0, 16), 0);
	if (mine) {
		struct ibv_mr wrong = *e[0].mr;

		wrong.lkey = key - 0x100;	/* gone's */
		e[0].mr = &wrong;
		CHECK_EQ(post_recv(&e[1], 50, 0, 64), 0);
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_SEND, 10, 0, 0, 16), 0);
		e[0].mr = right;
		CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 11, 0, 0, 16), 0);
		flushed_after(&e[0], 10, IBV_WC_LOC_PROT_ERR);
	} else {
		struct ibv_mr wrong = *e[0].mr;

		wrong.rkey = key;
		e[0].mr = &wrong;
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 10, 0, 0, 16), 0);
		e[0].mr = right;
		CHECK_EQ(post(&e[1], &e[0], IBV_WR_RDMA_WRITE, 11, 0, 0, 16), 0);
		flushed_after(&e[1], 10, IBV_WC_REM_ACCESS_ERR);
	}
	CHECK(!strcmp(e[0].buf, "before it"));
	for (key = 0; key < 4096; key++)
		CHECK_EQ(secret[key], 0x55);
	CHECK_EQ(ibv_dereg_mr(planted), 0);
	pair_close(e);
	free(secret);
	CHECK_EQ(mock_live_total(), 0);
}

/* Keys come and go, and peers know each at once; the tables do not only grow. */
static void come_and_go(void)
{
	struct ibv_mr *mr, *old;
	struct end e[2];
	int i;

	pair_open(e, &(struct pair_how){ 0 });
	move_away("mock0");
	move_back("mock0");
	fake_faults_set(&(struct fake_faults){ .seed = 6, .late_us = 2000, .twice = 30, .lost = 20 });
	for (i = 0; i < TIMES(60); i++) {
		mr = ibv_reg_mr(e[0].pd, e[0].buf, e[0].bytes, ALL_ACCESS);
		CHECK(mr);
		old = e[0].mr;
		e[0].mr = mr;
		write_and_read_back(&e[1], &e[0], i % 2 ? "odd" : "even");
		e[0].mr = old;
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		if (i == 30) {
			fake_faults_set(&(struct fake_faults){ .seed = 6 });
			move_away("mock0");
			move_back("mock0");
			fake_faults_set(&(struct fake_faults){ .seed = 7, .late_us = 2000,
							       .twice = 30, .lost = 20 });
		}
	}
	fake_faults_set(&(struct fake_faults){ .seed = 1 });
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

/* What the module refuses is not connected; a number that others know another's by is not kept. */
static void refused(void)
{
	static const int errors[] = { EADDRNOTAVAIL, ENOTUNIQ, EADDRINUSE, EAGAIN };
	struct ibv_qp *qp, *next;
	struct end e[2];
	unsigned int i;

	pair_open(e, &(struct pair_how){ 0 });
	qp = end_create_qp(&e[0], &(struct pair_how){ 0 });
	qp_to_init(&e[0], qp);
	for (i = 0; i < 4; i++) {
		/* Who is between two devices is asked for once more. */
		int err = errors[i] == EAGAIN ? 0 : errors[i];
		struct ibv_qp_attr a = {
			.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = e[1].qp->qp_num,
			.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 1 } },
		};

		CHECK_EQ(ibv_query_gid(e[0].ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
		fake_refuse(errors[i]);
		CHECK_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 err);
		CHECK_EQ(qp->state, err ? IBV_QPS_INIT : IBV_QPS_RTR);
	}
	fake_number_known(qp->qp_num + 1);
	next = end_create_qp(&e[0], &(struct pair_how){ 0 });
	CHECK_EQ(next->qp_num, qp->qp_num + 2);
	fake_number_known(0);
	CHECK_EQ(ibv_destroy_qp(next), 0);
	/* Where all are of somebody who is away, a queue pair has one of them rather than none. */
	fake_numbers_away(true);
	next = end_create_qp(&e[0], &(struct pair_how){ 0 });
	CHECK(next);
	fake_numbers_away(false);
	CHECK_EQ(ibv_destroy_qp(next), 0);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

static void *unloads(void *arg)
{
	usleep(200000);
	fake_unload();
	return arg;
}

/* The own module goes, or has not heard of the device yet: it is asked again, and who has none connects as he is told to. */
static void no_answer(void)
{
	struct ibv_qp *idle, *far;
	pthread_t thread;
	struct end e[2];

	pair_open(e, &(struct pair_how){ 0 });
	idle = end_create_qp(&e[0], &(struct pair_how){ 0 });
	far = end_create_qp(&e[1], &(struct pair_how){ 0 });
	move_away("mock0");
	back("mock0", e[0].qp->qp_num + 1, e[0].mr->lkey + 0x100);
	fake_no_answer(ENODEV, 3);
	connect_by(&e[1], far, &e[0], idle);
	CHECK_EQ(ibv_destroy_qp(e[1].qp), 0);
	e[1].qp = far;
	write_and_read_back(&e[1], &e[0], "asked again");
	CHECK_EQ(ibv_destroy_qp(idle), 0);
	pair_close(e);

	fake_no_answer(ENODEV, UINT32_MAX);
	pair_open(e, &(struct pair_how){ 0 });
	write_and_read_back(&e[1], &e[0], "as given");
	pair_close(e);

	fake_no_answer(0, UINT32_MAX);
	CHECK_EQ(pthread_create(&thread, NULL, unloads, NULL), 0);
	end_open(&e[0], "mock0", &(struct pair_how){ 0 });
	end_open(&e[1], "mock1", &(struct pair_how){ 0 });
	qp_to_init(&e[0], e[0].qp);
	qp_to_rtr(&e[0], e[0].qp, e[1].qp->qp_num, 100);	/* nobody is left who could answer */
	CHECK_EQ(pthread_join(thread, NULL), 0);
	fake_no_answer(0, 0);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
}

int main(void)
{
	alarm(HANGS);
	later();
	reconnect();
	wrong_key(false);
	wrong_key(true);
	come_and_go();
	refused();
	no_answer();
	return 0;
}
