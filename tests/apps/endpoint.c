// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <err.h>
#include <string.h>

#include "endpoint.h"

static const struct rc_limits default_limits = {
	.rd_atomic = 4, .timeout = 16, .retry = 7, .min_rnr_timer = 12,
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	int i, n;

	list = ibv_get_device_list(&n);
	if (!list || !n)
		errx(2, "no RDMA device");
	for (i = 0; i < n; i++) {
		if (name && strcmp(ibv_get_device_name(list[i]), name))
			continue;
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			err(2, "open %s", ibv_get_device_name(list[i]));
		break;
	}
	if (!ctx)
		errx(2, "no RDMA device %s", name);
	ibv_free_device_list(list);
	return ctx;
}

static int choose_gid(const struct endpoint *ep, const struct ibv_port_attr *attr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	union ibv_gid gid;
	int i;

	for (i = 0; attr->link_layer == IBV_LINK_LAYER_ETHERNET && i < attr->gid_tbl_len; i++)
		if (!ibv_query_gid(ep->ctx, ep->port, i, &gid) &&
		    !memcmp(gid.raw, mapped, sizeof(mapped)))
			return i;
	return 0;
}

void endpoint_open(struct endpoint *ep, const char *device, int gid_index)
{
	struct ibv_port_attr attr;

	memset(ep, 0, sizeof(*ep));
	ep->port = 1;
	ep->ctx = open_device(device);
	if (ibv_query_port(ep->ctx, ep->port, &attr))
		err(2, "query port %u", ep->port);
	ep->lid = attr.lid;
	ep->mtu = attr.active_mtu;
	ep->gid_index = gid_index < 0 ? choose_gid(ep, &attr) : gid_index;
	if (ibv_query_gid(ep->ctx, ep->port, ep->gid_index, &ep->gid))
		err(2, "query GID %d", ep->gid_index);
}

struct rc_address endpoint_address(const struct endpoint *ep, const struct ibv_qp *qp,
				   uint32_t psn)
{
	struct rc_address a = { .qpn = qp->qp_num, .psn = psn, .lid = ep->lid, .mtu = ep->mtu };

	memcpy(a.gid, ep->gid.raw, sizeof(a.gid));
	return a;
}

int rc_init(struct ibv_qp *qp, const struct endpoint *ep)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = ep->port,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS);
}

struct ibv_ah_attr endpoint_path(const struct endpoint *ep, const struct rc_address *to)
{
	static const uint8_t none[sizeof(to->gid)];
	struct ibv_ah_attr path = { .dlid = to->lid, .port_num = ep->port, .sl = ep->sl };

	if (!memcmp(to->gid, none, sizeof(none)))
		return path;
	path.is_global = 1;
	path.grh.sgid_index = ep->gid_index;
	path.grh.hop_limit = 64;
	memcpy(path.grh.dgid.raw, to->gid, sizeof(to->gid));
	return path;
}

int rc_connect(struct ibv_qp *qp, const struct endpoint *ep, const struct rc_address *local,
	       const struct rc_address *remote, const struct rc_limits *limits)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = remote->mtu < ep->mtu ? remote->mtu : ep->mtu,
		.dest_qp_num = remote->qpn,
		.rq_psn = remote->psn,
		.ah_attr = endpoint_path(ep, remote),
	};
	int rc;

	if (!limits)
		limits = &default_limits;
	attr.max_dest_rd_atomic = limits->rd_atomic;
	attr.min_rnr_timer = limits->min_rnr_timer;
	rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			   IBV_QP_MIN_RNR_TIMER);
	if (rc)
		return rc;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = limits->timeout;
	attr.retry_cnt = limits->retry;
	attr.rnr_retry = 7;
	attr.sq_psn = local->psn;
	attr.max_rd_atomic = limits->rd_atomic;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

const char *gid_text(const void *gid)
{
	static char text[INET6_ADDRSTRLEN];

	return inet_ntop(AF_INET6, gid, text, sizeof(text));
}
