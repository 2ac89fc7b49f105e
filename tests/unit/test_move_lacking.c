// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A provider that lacks a verb keeps lacking it. A new device that lacks one is refused by name where the
 * verb is in use, before anything is made on it; where it is not, the verb says EOPNOTSUPP from there on.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "move_cycle.h"
#include "traffic.h"

#define NAME(name) #name,
static const char *const names[] = { MOCK_SLOTS(NAME) MOCK_OPS(NAME) };

static uint64_t verbs_of(struct ibv_context *ctx)
{
	uint64_t has = 0;

#define HAS(name) has |= verbs_get_ctx_op(ctx, name) ? MOCK_WITHOUT(name) : 0;
	MOCK_SLOTS(HAS)
#undef HAS
#define HAS(name) has |= ctx->ops.name ? MOCK_WITHOUT(name) : 0;
	MOCK_OPS(HAS)
#undef HAS
	return has;
}

static void plug(uint64_t without)
{
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = "mock0", .without = without }), 0);
}

static void slots(void)
{
	const uint64_t all = (1ull << MOCK_VERBS) - 1;
	struct ibv_context *ctx;
	unsigned int i;

	for (i = 0; i < MOCK_VERBS; i++) {
		CHECK_EQ(mock_unplug("mock0"), 0);
		plug(1ull << i);
		ctx = open_named("mock0");
		CHECK(verbs_of(ctx) == (all & ~(1ull << i)), "without %s: 0x%llx", names[i],
		      (unsigned long long)verbs_of(ctx));
		/* Not of the mock at all */
		CHECK(!verbs_get_ctx_op(ctx, post_srq_ops));
		CHECK_EQ(ibv_close_device(ctx), 0);
	}
	CHECK_EQ(mock_unplug("mock0"), 0);
	plug(0);
}

/* What is made of each; all at once. */
static struct {
	struct ibv_td *td;
	struct ibv_pd *domain;
	struct ibv_mr *null;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq[2];
	struct ibv_qp *qp;
	struct ibv_mw *mw;
} made;

static void make(struct end *e)
{
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 4, .max_sge = 1 }, .pd = e->pd, .cq = e->cq,
		/* Without a CQ it would be a plain one for ibv_create_srq_ex(). */
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 4, .channel = e->channel, .wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct ibv_srq_init_attr plain = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_parent_domain_init_attr domain = { .pd = e->pd };
	struct ibv_td_init_attr td = { 0 };

	made.td = ibv_alloc_td(e->ctx, &td);
	domain.td = made.td;
	made.domain = ibv_alloc_parent_domain(e->ctx, &domain);
	made.null = ibv_alloc_null_mr(e->pd);
	made.cq = ibv_create_cq_ex(e->ctx, &cq);
	made.srq[0] = ibv_create_srq_ex(e->ctx, &srq);
	made.srq[1] = ibv_create_srq(e->pd, &plain);
	made.qp = end_create_qp(e, &(struct pair_how){ .ex_qp = true });
	made.mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);
	CHECK(made.td && made.domain && made.null && made.cq && made.srq[0] && made.srq[1] &&
	      made.qp && made.mw, "%s", strerror(errno));
	CHECK_EQ(ibv_req_notify_cq(ibv_cq_ex_to_cq(made.cq), 0), 0);
	CHECK_EQ(ibv_modify_qp_rate_limit(e->qp, &(struct ibv_qp_rate_limit_attr){ .rate_limit = 9 }), 0);
}

static void unmake(void)
{
	CHECK_EQ(ibv_dealloc_mw(made.mw), 0);
	CHECK_EQ(ibv_destroy_qp(made.qp), 0);
	CHECK_EQ(ibv_destroy_srq(made.srq[0]), 0);
	CHECK_EQ(ibv_destroy_srq(made.srq[1]), 0);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(made.cq)), 0);
	CHECK_EQ(ibv_dereg_mr(made.null), 0);
	CHECK_EQ(ibv_dealloc_pd(made.domain), 0);
	CHECK_EQ(ibv_dealloc_td(made.td), 0);
}

#define NEEDED(X)								\
	X(alloc_td) X(dealloc_td) X(alloc_parent_domain) X(alloc_null_mr) X(create_cq_ex)	\
	X(create_srq_ex) X(create_qp_ex) X(req_notify_cq) X(post_srq_recv) X(alloc_mw)		\
	X(dealloc_mw) X(bind_mw) X(modify_qp_rate_limit)

static void refused(uint64_t without, const char *verb)
{
	unsigned int live = mock_live_total();
	const char *why = "";
	char said[64];

	plug(without);
	CHECK(fake_resume("mock0", &why) == EOPNOTSUPP, "%s: says: %s", verb, why);
	snprintf(said, sizeof(said), "mock0 has no ibv_%s()", verb);
	CHECK(strstr(why, said) && strstr(why, "resume on"), "%s: says: %s", verb, why);
	CHECK_EQ(mock_live_total(), live);
	CHECK_EQ(mock_unplug("mock0"), 0);	/* it is not held */
}

static void bad_calls(struct end *e)
{
	struct ibv_modify_cq_attr slower = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 4, 8 } };
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 9 };
	struct ibv_counters_init_attr counters = { 0 };
	struct ibv_wq *none = NULL;
	struct ibv_rwq_ind_table_init_attr table = { .ind_tbl = &none };
	struct ibv_flow_action_esp_attr esp = { 0 };
	struct ibv_alloc_dm_attr dm = { .length = 64 };
	struct ibv_parent_domain_init_attr domain = { .pd = e->pd };
	struct ibv_cq_init_attr_ex cq = { .cqe = 4 };
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 4, .max_sge = 1 }, .pd = e->pd, .cq = e->cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_qp_init_attr_ex qp = {
		.send_cq = e->cq, .recv_cq = e->cq, .pd = e->pd, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = e->pd,
				       .cq = e->cq };
	struct ibv_flow_attr flow = { .size = sizeof(flow), .port = 1 };
	struct ibv_xrcd_init_attr xrcd = { 0 };
	struct ibv_qp_open_attr open = { 0 };
	struct ibv_td_init_attr td = { 0 };
	struct ibv_device_attr_ex device;
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_port_attr port;

	CHECK_EQ(ibv_modify_cq(e->cq, &slower), EOPNOTSUPP);
	CHECK_EQ(ibv_advise_mr(e->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0), EOPNOTSUPP);
	CHECK_EQ(ibv_modify_qp_rate_limit(e->qp, &rate), EOPNOTSUPP);
	CHECK_EQ(ibv_query_rt_values_ex(e->ctx, &values), EOPNOTSUPP);
	CHECK_EQ(ibv_req_notify_cq(e->cq, 0), EOPNOTSUPP);
	/* As libibverbs does of a provider that never had it. */
	CHECK_EQ(ibv_query_device_ex(e->ctx, NULL, &device), 0);
	CHECK_EQ(device.orig_attr.phys_port_cnt, 1);
	CHECK_EQ(ibv_query_port(e->ctx, 1, &port), 0);
	CHECK_EQ(port.state, IBV_PORT_ACTIVE);
#define NOT(call) do {							\
		errno = 0;						\
		CHECK(!(call));						\
		CHECK_EQ(errno, EOPNOTSUPP);				\
	} while (0)
	NOT(ibv_alloc_td(e->ctx, &td));
	NOT(ibv_alloc_parent_domain(e->ctx, &domain));
	NOT(ibv_alloc_null_mr(e->pd));
	NOT(ibv_alloc_dm(e->ctx, &dm));
	NOT(ibv_create_counters(e->ctx, &counters));
	NOT(ibv_create_rwq_ind_table(e->ctx, &table));
	NOT(ibv_create_flow_action_esp(e->ctx, &esp));
	NOT(ibv_create_flow(e->qp, &flow));
	NOT(ibv_create_wq(e->ctx, &wq));
	NOT(ibv_open_xrcd(e->ctx, &xrcd));
	NOT(ibv_open_qp(e->ctx, &open));
	NOT(ibv_create_cq_ex(e->ctx, &cq));
	NOT(ibv_create_srq_ex(e->ctx, &srq));
	NOT(ibv_create_qp_ex(e->ctx, &qp));
	NOT(ibv_alloc_mw(e->pd, IBV_MW_TYPE_1));
#undef NOT
}

static char log_file[] = "/tmp/test_move_lacking.XXXXXX";

static bool logged(const char *words)
{
	char line[1024];
	bool found = false;
	FILE *f = fopen(log_file, "r");

	CHECK(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, words);
	fclose(f);
	return found;
}

/* A completion queue without moderation is as good, but it is said; back where it can be, it is as it was. */
static void moderated(void)
{
	struct ibv_modify_cq_attr slower = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 3, 11 } };
	unsigned int count = 0, period = 0;
	struct end e[2];

	pair_open(e, &(struct pair_how){ 0 });
	CHECK_EQ(ibv_modify_cq(e[0].cq, &slower), 0);
	move_away("mock0");
	move_back("mock0");
	CHECK(!logged("moderation"));
	move_away("mock0");
	plug(MOCK_WITHOUT(modify_cq));
	CHECK_EQ(fake_resume("mock0", NULL), 0);
	CHECK_EQ(fake_settled(), 0);
	CHECK(logged("mock0: a completion queue has lost its moderation"));
	CHECK_EQ(ibv_modify_cq(e[0].cq, &slower), EOPNOTSUPP);
	/* Another one's, so that it is seen who was moderated last. */
	slower.moderate.cq_count = 5;
	CHECK_EQ(ibv_modify_cq(e[1].cq, &slower), 0);
	move_away("mock0");
	move_back("mock0");
	mock_last_moderation(&count, &period);
	CHECK_EQ(count, 3);
	CHECK_EQ(period, 11);
	pair_close(e);
}

int main(void)
{
	const uint64_t plain = MOCK_WITHOUT(poll_cq) | MOCK_WITHOUT(post_send) | MOCK_WITHOUT(post_recv);
	struct traffic *t;
	struct end e[2];
	char say[64];

	alarm(HANGS);
	CHECK_EQ(close(mkstemp(log_file)), 0);
	snprintf(say, sizeof(say), "info:%s", log_file);
	setenv("REPATH_LOG", say, 1);
	slots();
	moderated();
	unlink(log_file);
	pair_open(e, &(struct pair_how){ .events = true });
	make(&e[0]);
	t = traffic_start(e, &(struct traffic_how){ .seed = 9 });
	traffic_flows(t, 50);
	move_away("mock0");
#define REFUSED(name) refused(MOCK_WITHOUT(name), #name);
	NEEDED(REFUSED)
	/* The old one. */
	move_back("mock0");
	traffic_flows(t, 50);
	traffic_stop(t);
	unmake();
	pair_close(e);

	/* All that is not in use is lacking. */
	pair_open(e, &(struct pair_how){ 0 });
	t = traffic_start(e, &(struct traffic_how){ .seed = 10 });
	traffic_flows(t, 50);
	move_away("mock0");
	plug(~plain);
	CHECK_EQ(fake_resume("mock0", NULL), 0);
	CHECK_EQ(fake_settled(), 0);
	traffic_flows(t, 50);
	bad_calls(&e[0]);
	move_away("mock0");
	move_back("mock0");
	traffic_flows(t, 50);
	traffic_stop(t);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
