/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What surrounds a port and its subnet manager, for suites: a device that is only a struct, ib_mad that
 * keeps what is sent until the case answers it, and counters where queue pairs would be moved.
 */
#ifndef REPATH_TESTS_SA_FAKES_H
#define REPATH_TESTS_SA_FAKES_H

#include <kunit/test.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sa.h>
#include <repath_sm.h>

#include "../device.h"
#include "../event.h"
#include "../netlink.h"
#include "../reroute.h"
#include "../reroute_shim.h"
#include "../sa.h"
#include "../sa_ask.h"
#include "../track.h"

#define SM_LID 7
#define OWN_LID 12
#define SENT_MAX 64

static struct {
	struct ib_device ibdev;
	struct ib_port_data port_data[2];
	struct repath_device dev;
	struct ib_qp qp1;
	struct ib_mad_agent agent;
	struct ib_port_attr attr;
	spinlock_t lock;
	struct ib_mad_send_buf *sent[SENT_MAX];	/* not over yet */
	bool cancelled[SENT_MAX];
	int responses;			/* ReportResp */
	int looks, ahs;
	struct rdma_ah_attr ah;		/* the last one that was made */
	struct ib_event_handler ipoib, other;
	int events, others_events;	/* to them */
	struct repath_new_path given, late;
	int ngiven, nlate, nprepared, nunpaths;
	int give_err;
	int handed;			/* events to hypervisors' tools */
	struct repath_path qp_path;	/* of the only queue pair */
	struct repath_alt_path qp_alt;
	bool has_qp;
	bool under_way;			/* ... is, to somewhere */
	bool datagrams;			/* sent by a process with a shim */
	bool moving;			/* shims connect the queue pair anew */
} fake;

/* --- ib_core --- */

int ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	fake.looks++;
	*attr = fake.attr;
	return 0;
}

int rdma_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	memset(gid, 1, sizeof(*gid));
	return 0;
}

int ib_find_pkey(struct ib_device *ibdev, u32 port, u16 pkey, u16 *index)
{
	*index = 0;
	return 0;
}

int ib_get_cached_port_state(struct ib_device *ibdev, u32 port, enum ib_port_state *state)
{
	*state = fake.attr.state;
	return 0;
}

void ib_register_event_handler(struct ib_event_handler *handler)
{
}

void ib_unregister_event_handler(struct ib_event_handler *handler)
{
}

/* IPoIB's is known by its name. */
static void ipoib_event(struct ib_event_handler *handler, struct ib_event *event)
{
	fake.events += event->event == IB_EVENT_CLIENT_REREGISTER && event->element.port_num == 1;
}

static void others_event(struct ib_event_handler *handler, struct ib_event *event)
{
	fake.others_events++;
}

struct ib_ah *rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *attr, u32 flags)
{
	fake.ahs++;
	fake.ah = *attr;
	return kzalloc(sizeof(struct ib_ah), GFP_KERNEL) ?: ERR_PTR(-ENOMEM);
}

int rdma_destroy_ah_user(struct ib_ah *ah, u32 flags, struct ib_udata *udata)
{
	fake.ahs--;
	kfree(ah);
	return 0;
}

/* --- ib_mad --- */

struct ib_mad_agent *ib_register_mad_agent(struct ib_device *ibdev, u32 port, enum ib_qp_type type,
					   struct ib_mad_reg_req *req, u8 rmpp_version,
					   ib_mad_send_handler sent, ib_mad_recv_handler received,
					   void *context, u32 flags)
{
	fake.agent.device = ibdev;
	fake.agent.qp = &fake.qp1;
	fake.agent.send_handler = sent;
	fake.agent.recv_handler = received;
	fake.agent.context = context;
	fake.agent.hi_tid = 5;
	return &fake.agent;
}

struct ib_mad_send_buf *ib_create_send_mad(struct ib_mad_agent *agent, u32 qpn, u16 pkey_index,
					   int rmpp, int hdr_len, int data_len, gfp_t gfp,
					   u8 base_version)
{
	struct ib_mad_send_buf *buf = kzalloc(sizeof(*buf) + sizeof(struct ib_mad), gfp);

	if (!buf)
		return ERR_PTR(-ENOMEM);
	buf->mad = buf + 1;
	buf->mad_agent = agent;
	return buf;
}

void ib_free_send_mad(struct ib_mad_send_buf *buf)
{
	kfree(buf);
}

void ib_free_recv_mad(struct ib_mad_recv_wc *wc)
{
	kvfree(wc);
}

int ib_post_send_mad(struct ib_mad_send_buf *buf, struct ib_mad_send_buf **bad)
{
	struct ib_mad_send_wc wc = { .send_buf = buf, .status = IB_WC_SUCCESS };
	struct ib_mad_hdr *hdr = buf->mad;
	int i;

	if (hdr->method == IB_MGMT_METHOD_REPORT_RESP) {
		fake.responses++;
		fake.agent.send_handler(&fake.agent, &wc);
		return 0;
	}
	spin_lock_irq(&fake.lock);
	for (i = 0; i < SENT_MAX; i++) {
		if (!fake.sent[i]) {
			fake.sent[i] = buf;
			fake.cancelled[i] = false;
			break;
		}
	}
	spin_unlock_irq(&fake.lock);
	return i < SENT_MAX ? 0 : -ENOMEM;
}

int ib_modify_mad(struct ib_mad_send_buf *buf, u32 timeout_ms)
{
	int i;

	for (i = 0; i < SENT_MAX; i++)
		if (fake.sent[i] == buf)
			fake.cancelled[i] = true;
	return 0;
}

static void fake_over(int i, enum ib_wc_status status)
{
	struct ib_mad_send_wc wc = { .send_buf = fake.sent[i], .status = status };

	fake.sent[i] = NULL;
	fake.agent.send_handler(&fake.agent, &wc);
}

void ib_unregister_mad_agent(struct ib_mad_agent *agent)
{
	int i;

	for (i = 0; i < SENT_MAX; i++)
		if (fake.sent[i])
			fake_over(i, IB_WC_WR_FLUSH_ERR);
}

/* --- the module --- */

int repath_qp_for_each(struct repath_device *dev, repath_qp_fn fn, void *arg)
{
	static struct repath_qp rqp;

	rqp.path = fake.qp_path;
	rqp.alt = fake.qp_alt;
	rqp.type = IB_QPT_RC;
	return fake.has_qp ? fn(&rqp, arg) : 0;
}

static bool fake_is_on(u32 dlid, const union ib_gid *dgid)
{
	return dlid ? fake.qp_path.dlid == dlid || fake.qp_alt.dlid == dlid :
		      !memcmp(&fake.qp_path.dgid, dgid, sizeof(*dgid));
}

int repath_qp_walk_on_path(struct repath_device *dev, u32 port, u32 dlid,
			   const union ib_gid *dgid, repath_qp_fn fn, void *arg)
{
	return fake_is_on(dlid, dgid) ? repath_qp_for_each(dev, fn, arg) : 0;
}

void repath_qp_look_on_path(struct repath_device *dev, u32 port, u32 dlid, const union ib_gid *dgid,
			    repath_look_fn fn, void *arg)
{
	if (fake.has_qp && fake_is_on(dlid, dgid))
		fn(&fake.qp_path, &fake.qp_alt, arg);
}

void repath_qp_snapshot(struct repath_qp *rqp, u8 *state, struct repath_path *path)
{
	*path = rqp->path;
}

void repath_qp_snapshot_alt(struct repath_qp *rqp, struct repath_alt_path *alt)
{
	*alt = rqp->alt;
}

void repath_event_path(struct repath_device *dev, u32 port, const struct repath_learnt *path,
		       enum repath_ev_action action)
{
}

int repath_reroute_repath(struct repath_device *dev, u32 port, const struct repath_new_path *path)
{
	if (fake.give_err)
		return fake.give_err;
	fake.given = *path;
	fake.ngiven++;
	return 0;
}

int repath_reroute_late(struct repath_device *dev, u32 port, const struct repath_new_path *path,
			u64 since_ns)
{
	if (fake.give_err)
		return fake.give_err;
	fake.late = *path;
	fake.nlate++;
	return 0;
}

bool repath_reroute_is_under_way(const struct repath_device *dev)
{
	return fake.under_way;
}

bool repath_shim_has_datagrams(struct repath_device *dev)
{
	return fake.datagrams;
}

bool repath_shim_is_moving(struct repath_qp *rqp)
{
	return fake.moving;
}

int repath_reroute_prepare(struct repath_device *dev, u32 port, const struct repath_new_path *path)
{
	fake.nprepared++;
	return 0;
}

int repath_reroute_unpath(struct repath_device *dev, u32 port, u32 dlid,
			  enum repath_unpath_why why, bool wait)
{
	fake.nunpaths++;
	return 0;
}

/* Somebody listens, and there is no memory. */
bool repath_nl_has_listeners(struct net *net, enum repath_nl_group group)
{
	fake.handed += group == REPATH_NL_NOTICE;
	return true;
}

struct sk_buff *repath_nl_msg_new(u8 cmd, size_t size, void **hdr)
{
	return NULL;
}

void repath_nl_multicast(struct net *net, enum repath_nl_group group, struct sk_buff *skb,
			 void *hdr)
{
}

struct repath_device *repath_nl_admins_device(struct sk_buff *skb, struct genl_info *info)
{
	return &fake.dev;
}

struct net *repath_device_net(const struct repath_device *dev)
{
	return &init_net;
}

void repath_device_put(struct repath_device *dev)
{
}

void repath_device_name(struct repath_device *dev, char name[IB_DEVICE_NAME_MAX])
{
}

#endif /* REPATH_TESTS_SA_FAKES_H */
