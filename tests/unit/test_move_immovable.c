// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each kind of object that can not be moved works, is refused with its number, its name and what can
 * be done about it while everything goes on, also when it is made after the check, and is forgotten
 * when it has gone.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

/* Of fake_rdmacm.c, in a library of its own. */
struct ibv_qp *fake_rdma_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

static struct ibv_qp_init_attr qp_attr(struct end *e, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
}

static struct ibv_qp *made_qp;

static struct ibv_qp *make_qp(struct end *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a = qp_attr(e, type);
	struct ibv_qp *qp = ibv_create_qp(e->pd, &a);

	CHECK(qp, "%s", strerror(errno));
	return qp;
}

static void destroy_made(void)
{
	CHECK_EQ(ibv_destroy_qp(made_qp), 0);
}

static void raw_packets(struct end *e)
{
	made_qp = make_qp(e, IBV_QPT_RAW_PACKET);
}

static void direct_verbs(struct end *e)
{
	made_qp = make_qp(e, IBV_QPT_DRIVER);
}

static void enhanced(struct end *e)
{
	struct ibv_ece ece = { .vendor_id = 1, .options = 2 };
	struct ibv_qp *none = make_qp(e, IBV_QPT_RC);

	made_qp = make_qp(e, IBV_QPT_RC);
	CHECK_EQ(ibv_set_ece(made_qp, &ece), 0);
	CHECK_EQ(ibv_set_ece(made_qp, &ece), 0);
	CHECK_EQ(ibv_set_ece(none, &ece), 0);
	ece.options = 0;
	CHECK_EQ(ibv_set_ece(none, &ece), 0);
	CHECK_EQ(ibv_destroy_qp(none), 0);
}

static struct ibv_qp *cm_qp[2];

static void rdmacm(struct end *e)
{
	struct ibv_qp_init_attr a;
	int i;

	for (i = 0; i < 2; i++) {
		a = qp_attr(e, IBV_QPT_RC);
		cm_qp[i] = fake_rdma_create_qp(e->pd, &a);
		CHECK(cm_qp[i], "%s", strerror(errno));
	}
}

static void rdmacm_gone(void)
{
	CHECK_EQ(ibv_destroy_qp(cm_qp[0]), 0);
	CHECK_EQ(ibv_destroy_qp(cm_qp[1]), 0);
}

/* A domain, an SRQ, both kinds of queue pairs, and one that is opened by its number. */
static struct {
	struct ibv_xrcd *domain;
	struct ibv_srq *srq;
	struct ibv_qp *send, *recv, *opened;
} xrc;

static void xrc_objects(struct end *e)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = e->pd, .cq = e->cq,
	};
	struct ibv_qp_init_attr_ex send = {
		.send_cq = e->cq, .qp_type = IBV_QPT_XRC_SEND, .pd = e->pd,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct ibv_qp_init_attr_ex recv = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_type = IBV_QPT_XRC_RECV, .qp_context = &xrc,
	};
	uint32_t number;

	xrc.domain = ibv_open_xrcd(e->ctx, &domain);
	CHECK(xrc.domain, "%s", strerror(errno));
	srq.xrcd = recv.xrcd = open.xrcd = xrc.domain;
	xrc.srq = ibv_create_srq_ex(e->ctx, &srq);
	CHECK(xrc.srq, "%s", strerror(errno));
	CHECK_EQ(ibv_get_srq_num(xrc.srq, &number), 0);
	xrc.send = ibv_create_qp_ex(e->ctx, &send);
	CHECK(xrc.send, "%s", strerror(errno));
	xrc.recv = ibv_create_qp_ex(e->ctx, &recv);
	CHECK(xrc.recv, "%s", strerror(errno));
	open.qp_num = xrc.recv->qp_num;
	xrc.opened = ibv_open_qp(e->ctx, &open);
	CHECK(xrc.opened, "%s", strerror(errno));
	CHECK_EQ(xrc.opened->qp_num, xrc.recv->qp_num);
	CHECK(xrc.opened->qp_context == &xrc);
	CHECK_EQ(ibv_close_xrcd(xrc.domain), EBUSY);
}

static void xrc_gone(void)
{
	CHECK_EQ(ibv_destroy_qp(xrc.opened), 0);
	CHECK_EQ(ibv_destroy_qp(xrc.recv), 0);
	CHECK_EQ(ibv_destroy_qp(xrc.send), 0);
	CHECK_EQ(ibv_destroy_srq(xrc.srq), 0);
	CHECK_EQ(ibv_close_xrcd(xrc.domain), 0);
}

static struct {
	struct ibv_wq *wq[2];
	struct ibv_rwq_ind_table *table;
} wqs;

static void work_queues(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, 64, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_rwq_ind_table_init_attr table = { .log_ind_tbl_size = 1, .ind_tbl = wqs.wq };
	struct ibv_wq_attr ready = {
		.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY,
	};
	int i;

	for (i = 0; i < 2; i++) {
		struct ibv_wq_init_attr a = {
			.wq_context = &wqs, .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1,
			.pd = e->pd, .cq = e->cq,
		};

		wqs.wq[i] = ibv_create_wq(e->ctx, &a);
		CHECK(wqs.wq[i], "%s", strerror(errno));
		CHECK(wqs.wq[i]->pd == e->pd && wqs.wq[i]->cq == e->cq);
		CHECK(wqs.wq[i]->wq_context == &wqs);
		CHECK_EQ(ibv_modify_wq(wqs.wq[i], &ready), 0);
		CHECK_EQ(wqs.wq[i]->state, IBV_WQS_RDY);
		CHECK_EQ(ibv_post_wq_recv(wqs.wq[i], &wr, &bad), 0);
		CHECK_EQ(ibv_post_wq_recv(wqs.wq[i], &wr, &bad), ENOMEM);
		CHECK(bad == &wr);
	}
	wqs.table = ibv_create_rwq_ind_table(e->ctx, &table);
	CHECK(wqs.table, "%s", strerror(errno));
	CHECK_EQ(ibv_destroy_wq(wqs.wq[0]), EBUSY);
}

static void work_queues_gone(void)
{
	CHECK_EQ(ibv_destroy_rwq_ind_table(wqs.table), 0);
	CHECK_EQ(ibv_destroy_wq(wqs.wq[0]), 0);
	CHECK_EQ(ibv_destroy_wq(wqs.wq[1]), 0);
}

static struct {
	struct ibv_qp *ud;
	struct ibv_counters *counters;
	struct ibv_flow_action *action;
	struct ibv_flow *flow;
} rule;

static void counters(struct end *e)
{
	struct ibv_counters_init_attr a = { 0 };
	struct ibv_counter_attach_attr point = { .index = 2 };
	uint64_t values[3];

	rule.counters = ibv_create_counters(e->ctx, &a);
	CHECK(rule.counters, "%s", strerror(errno));
	CHECK_EQ(ibv_attach_counters_point_flow(rule.counters, &point, NULL), 0);
	CHECK_EQ(ibv_read_counters(rule.counters, values, 3, 0), 0);
	CHECK(values[0] == 0 && values[1] == 0 && values[2] == 3);
}

static void counters_gone(void)
{
	CHECK_EQ(ibv_destroy_counters(rule.counters), 0);
}

/* A rule, with an action and counters. */
static void flows(struct end *e)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_action_handle handle;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed, aligned(4))) a = {
		.attr = { .size = sizeof(a), .num_of_specs = 2, .port = 1 },
		.handle = { .type = IBV_FLOW_SPEC_ACTION_HANDLE, .size = sizeof(a.handle) },
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(a.count) },
	};
	struct ibv_flow_action_esp_attr esp = { .esn = 1 };
	struct ibv_counter_attach_attr point = { 0 };

	counters(e);
	rule.ud = make_qp(e, IBV_QPT_UD);
	rule.action = ibv_create_flow_action_esp(e->ctx, &esp);
	CHECK(rule.action, "%s", strerror(errno));
	CHECK_EQ(ibv_modify_flow_action_esp(rule.action, &esp), 0);
	a.handle.action = rule.action;
	a.count.counters = rule.counters;
	rule.flow = ibv_create_flow(rule.ud, &a.attr);
	CHECK(rule.flow, "%s", strerror(errno));
	CHECK(a.handle.action == rule.action && a.count.counters == rule.counters);
	CHECK(rule.flow->context == e->ctx);
	CHECK_EQ(ibv_attach_counters_point_flow(rule.counters, &point, rule.flow), 0);
	CHECK_EQ(ibv_destroy_flow_action(rule.action), EBUSY);
	CHECK_EQ(ibv_destroy_counters(rule.counters), EBUSY);
}

static void flows_gone(void)
{
	CHECK_EQ(ibv_destroy_flow(rule.flow), 0);
	CHECK_EQ(ibv_destroy_flow_action(rule.action), 0);
	CHECK_EQ(ibv_destroy_qp(rule.ud), 0);
	counters_gone();
}

static struct {
	struct ibv_dm *dm[2];
	struct ibv_mr *mr;
} device;

/* Its region is not counted: it can not outlive the memory. */
static void device_memory(struct end *e)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	char text[4] = "";
	int i;

	for (i = 0; i < 2; i++) {
		device.dm[i] = ibv_alloc_dm(e->ctx, &attr);
		CHECK(device.dm[i], "%s", strerror(errno));
	}
	CHECK_EQ(ibv_memcpy_to_dm(device.dm[0], 8, "abc", 4), 0);
	CHECK_EQ(ibv_memcpy_from_dm(text, device.dm[0], 8, 4), 0);
	CHECK(!strcmp(text, "abc"));
	CHECK_EQ(ibv_memcpy_to_dm(device.dm[0], 61, "abc", 4), EFAULT);
	device.mr = ibv_reg_dm_mr(e->pd, device.dm[0], 8, 16, IBV_ACCESS_ZERO_BASED);
	CHECK(device.mr, "%s", strerror(errno));
}

static void device_memory_gone(void)
{
	CHECK_EQ(ibv_dereg_mr(device.mr), 0);
	CHECK_EQ(ibv_free_dm(device.dm[0]), 0);
	CHECK_EQ(ibv_free_dm(device.dm[1]), 0);
}

static struct ibv_mr *dmabuf_mr;

static void dmabuf(struct end *e)
{
	int fd = memfd_create("dmabuf", 0);

	CHECK(fd >= 0 && !ftruncate(fd, 8192));
	CHECK(!ibv_reg_dmabuf_mr(e->pd, 4096, 8192, 4096, fd, IBV_ACCESS_LOCAL_WRITE));
	CHECK_EQ(errno, EINVAL);
	dmabuf_mr = ibv_reg_dmabuf_mr(e->pd, 4096, 4096, 4096, fd, IBV_ACCESS_LOCAL_WRITE);
	CHECK(dmabuf_mr, "%s", strerror(errno));
	CHECK(dmabuf_mr->pd == e->pd);
	close(fd);
}

static void dmabuf_gone(void)
{
	CHECK_EQ(ibv_dereg_mr(dmabuf_mr), 0);
}

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_dm *own, *dm;
} import;

/* As another process does it with descriptor and handles: a device, and three things on it. */
static void imported(struct end *e)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	char text[4] = "";

	import.own = ibv_alloc_dm(e->ctx, &attr);
	CHECK(import.own);
	CHECK_EQ(ibv_memcpy_to_dm(import.own, 0, "abc", 4), 0);
	import.ctx = ibv_import_device(dup(e->ctx->cmd_fd));
	CHECK(import.ctx, "%s", strerror(errno));
	import.pd = ibv_import_pd(import.ctx, e->pd->handle);
	CHECK(import.pd, "%s", strerror(errno));
	CHECK(!ibv_import_pd(import.ctx, 0xffffff));
	import.mr = ibv_import_mr(import.pd, e->mr->handle);
	CHECK(import.mr, "%s", strerror(errno));
	CHECK_EQ(import.mr->lkey, e->mr->lkey);
	CHECK(!ibv_import_mr(import.pd, 0xffffff));
	import.dm = ibv_import_dm(import.ctx, import.own->handle);
	CHECK(import.dm, "%s", strerror(errno));
	CHECK(!ibv_import_dm(import.ctx, 0xffffff));
	CHECK_EQ(ibv_memcpy_from_dm(text, import.dm, 0, 4), 0);
	CHECK(!strcmp(text, "abc"));
	ibv_unimport_dm(import.dm);
	CHECK_EQ(ibv_free_dm(import.own), 0);
}

static void imported_gone(void)
{
	ibv_unimport_mr(import.mr);
	ibv_unimport_pd(import.pd);
	CHECK_EQ(ibv_close_device(import.ctx), 0);
}

/* An imported context that is nothing else than that. */
static void imported_device(struct end *e)
{
	import.ctx = ibv_import_device(dup(e->ctx->cmd_fd));
	CHECK(import.ctx, "%s", strerror(errno));
}

static void imported_device_gone(void)
{
	CHECK_EQ(ibv_close_device(import.ctx), 0);
}

/* Entries that tell of matched tags can not be given back after a move. */
static struct ibv_cq_ex *cqx;

static void extended_cq(struct end *e)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 4, .wc_flags = IBV_WC_EX_WITH_TM_INFO };

	cqx = ibv_create_cq_ex(e->ctx, &a);
	CHECK(cqx, "%s", strerror(errno));
}

static void extended_cq_gone(void)
{
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cqx)), 0);
}

static const struct kind {
	const char *says;
	void (*make)(struct end *e);
	void (*gone)(void);
} kinds[] = {
	{ "1 raw packet queue pair (destroy it first)", raw_packets, destroy_made },
	{ "5 XRC objects (use RC)", xrc_objects, xrc_gone },
	{ "2 device memory areas (use the host's; UCX: UCX_TLS=rc_verbs,ud_verbs)", device_memory,
	  device_memory_gone },
	{ "3 work queues (receive on queue pairs)", work_queues, work_queues_gone },
	{ "2 flow rules (destroy it first), 1 counter set (destroy it first)", flows, flows_gone },
	{ "1 counter set (destroy it first)", counters, counters_gone },
	{ "1 completion queue with tag matching, or time stamps of a clock that can not be read (ask for none)", extended_cq,
	  extended_cq_gone },
	{ "1 dmabuf memory region (use the host's memory)", dmabuf, dmabuf_gone },
	{ "3 imported objects (let each process open the device)", imported, imported_gone },
	{ "1 imported object (let each process open the device)", imported_device,
	  imported_device_gone },
	{ "1 queue pair of direct verbs (use libibverbs; UCX: UCX_TLS=rc_verbs,ud_verbs)",
	  direct_verbs, destroy_made },
	{ "2 queue pairs of librdmacm (connect by a socket)", rdmacm, rdmacm_gone },
	{ "1 queue pair with options of ECE (set none)", enhanced, destroy_made },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void refused(const char *because)
{
	unsigned int live = mock_live_total();
	const char *why = "";

	CHECK_EQ(fake_check("mock0", &why), EOPNOTSUPP);
	CHECK(!strcmp(why, because), "says: %s", why);
	CHECK_EQ(mock_live_total(), live);
	CHECK_EQ(fake_abort(), 0);
}

static void each(struct end *e, struct traffic *t, const struct kind *k)
{
	unsigned int live = mock_live_total(), with;

	k->make(e);
	with = mock_live_total();
	CHECK(with > live);
	refused(k->says);
	traffic_flows(t, 20);
	k->gone();
	CHECK_EQ(mock_live_total(), live);

	/* Made after the check. */
	CHECK_EQ(fake_check("mock0", NULL), 0);
	k->make(e);
	CHECK_EQ(fake_suspend("mock0"), EOPNOTSUPP);
	CHECK_EQ(mock_live_total(), with);
	CHECK_EQ(fake_abort(), 0);
	traffic_flows(t, 20);
	k->gone();
	CHECK_EQ(mock_live_total(), live);
}

/* Given back one by one: those that are left are what is refused. */
static void fewer_imported(struct end *e)
{
	imported(e);
	ibv_unimport_mr(import.mr);
	refused("2 imported objects (let each process open the device)");
	ibv_unimport_pd(import.pd);
	refused("1 imported object (let each process open the device)");
	CHECK_EQ(ibv_close_device(import.ctx), 0);
}

int main(void)
{
	struct traffic *t;
	struct end e[2];
	unsigned int i;

	alarm(HANGS);
	pair_open(e, &(struct pair_how){ 0 });
	t = traffic_start(e, &(struct traffic_how){ .seed = 8 });
	traffic_flows(t, 50);
	for (i = 0; i < KINDS; i++)
		each(&e[0], t, &kinds[i]);
	fewer_imported(&e[0]);
	/* Nothing of them is left. */
	move_away("mock0");
	move_back("mock0");
	traffic_flows(t, 50);
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
