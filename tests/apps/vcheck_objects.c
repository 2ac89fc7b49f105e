// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "vcheck.h"

/*
 * On soft RoCE a datagram to a group gets through IP first, which takes it only where the host is a
 * member. Attaching a queue pair does not make it one in Linux 6.1; of all nodes every host is.
 */
static const union ibv_gid group = { .raw = { 0xff, 0x02, [15] = 0x01 } };

static struct ibv_qp *make_qp(struct vcheck *v, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = v->cq, .recv_cq = v->cq, .qp_type = type,
		.cap = { .max_send_wr = 16, .max_recv_wr = RECV_DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;

	if (type == IBV_QPT_RC) {
		attr.send_cq = attr.recv_cq = v->rc_cq;
		attr.srq = v->srq;
	}
	qp = ibv_create_qp(v->pd, &attr);
	if (!qp)
		err(2, "queue pair of type %d", type);
	return qp;
}

void objects_make(struct vcheck *v, const char *device)
{
	struct ibv_srq_init_attr_ex sa = {
		.attr = { .max_wr = SRQ_DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
	};
	struct ibv_cq_init_attr_ex ca = { .cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS };
	int i;

	endpoint_open(&v->ep, device, -1);
	v->pd = ibv_alloc_pd(v->ep.ctx);
	v->memory = aligned_alloc(4096, (MEMORY + 4095) / 4096 * 4096);
	if (!v->pd || !v->memory)
		err(2, "protection domain");
	memset(v->memory, 0, MEMORY);
	v->mr = ibv_reg_mr(v->pd, v->memory, MEMORY, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
	sa.pd = v->pd;
	v->srq = ibv_create_srq_ex(v->ep.ctx, &sa);
	errno = 0;
	v->cqx = ibv_create_cq_ex(v->ep.ctx, &ca);
	v->rc_cq = v->cqx ? ibv_cq_ex_to_cq(v->cqx) :
		errno == EOPNOTSUPP ? ibv_create_cq(v->ep.ctx, ca.cqe, NULL, NULL, 0) : NULL;
	v->cq = ibv_create_cq(v->ep.ctx, CQ_DEPTH, NULL, NULL, 0);
	if (!v->mr || !v->srq || !v->rc_cq || !v->cq)
		err(2, "memory region or queues");
	v->qp[RC] = make_qp(v, IBV_QPT_RC);
	v->qp[UC] = make_qp(v, IBV_QPT_UC);
	v->qp[UD] = make_qp(v, IBV_QPT_UD);
	for (i = 0; i < 2; i++) {
		errno = 0;
		v->mw[i] = ibv_alloc_mw(v->pd, i ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
		if (!v->mw[i] && (errno != EOPNOTSUPP || v->mw[0]))
			err(2, "memory window of type %d", i + 1);
	}
	fcntl(v->ep.ctx->async_fd, F_SETFL, fcntl(v->ep.ctx->async_fd, F_GETFL) | O_NONBLOCK);

	v->own.rc = endpoint_address(&v->ep, v->qp[RC], 1000);
	v->own.uc = endpoint_address(&v->ep, v->qp[UC], 2000);
	v->own.ud = endpoint_address(&v->ep, v->qp[UD], 3000);
	v->own.memory = (uintptr_t)v->memory;
	v->own.rkey = v->mr->rkey;
}

static void to_rts(struct vcheck *v, int kind, const struct rc_address *own,
		   const struct rc_address *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = v->ep.mtu, .dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.ah_attr = {
			.dlid = peer->lid, .port_num = v->ep.port, .is_global = 1,
			.grh = { .sgid_index = v->ep.gid_index, .hop_limit = 64 },
		},
	};
	int rc = rc_init(v->qp[kind], &v->ep);

	if (!rc && kind == RC) {
		rc = rc_connect(v->qp[kind], &v->ep, own, peer, NULL);
	} else if (!rc) {
		memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
		rc = ibv_modify_qp(v->qp[kind], &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
		attr.qp_state = IBV_QPS_RTS;
		attr.sq_psn = own->psn;
		if (!rc)
			rc = ibv_modify_qp(v->qp[kind], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	}
	if (rc)
		errx(2, "connect queue pair %d: %s", kind, strerror(rc));
}

/* On InfiniBand there is none before a subnet manager has made it. */
static bool has_group(const struct vcheck *v)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(v->ep.ctx, v->ep.port, &attr))
		err(2, "query port");
	return attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

static void datagrams_to_rts(struct vcheck *v)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = v->ep.port, .qkey = QKEY,
	};
	int rc = ibv_modify_qp(v->qp[UD], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			       IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!rc)
		rc = ibv_modify_qp(v->qp[UD], &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 1;
	if (!rc)
		rc = ibv_modify_qp(v->qp[UD], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (!rc && has_group(v))
		rc = ibv_attach_mcast(v->qp[UD], &group, 0);
	if (rc)
		errx(2, "UD queue pair: %s", strerror(rc));
}

static struct ibv_ah *address(struct vcheck *v, const void *gid, uint16_t lid, int gid_index)
{
	struct ibv_ah_attr attr = {
		.dlid = lid, .port_num = v->ep.port, .is_global = 1,
		.grh = { .sgid_index = gid_index, .hop_limit = 64 },
	};
	struct ibv_ah *ah;

	memcpy(attr.grh.dgid.raw, gid, 16);
	ah = ibv_create_ah(v->pd, &attr);
	if (!ah)
		err(2, "address handle for %s", gid_text(gid));
	return ah;
}

void objects_connect(struct vcheck *v)
{
	to_rts(v, RC, &v->own.rc, &v->peer.rc);
	to_rts(v, UC, &v->own.uc, &v->peer.uc);
	datagrams_to_rts(v);
	v->ah = address(v, v->peer.ud.gid, v->peer.ud.lid, v->ep.gid_index);
	/* An IPv6 group, so from the link-local address. */
	if (has_group(v))
		v->group = address(v, group.raw, 0, 0);
}

void objects_release(struct vcheck *v)
{
	int rc = 0, i;

	rc |= ibv_destroy_ah(v->ah);
	if (v->group)
		rc |= ibv_destroy_ah(v->group) | ibv_detach_mcast(v->qp[UD], &group, 0);
	if (v->mw[0])
		rc |= ibv_dealloc_mw(v->mw[0]) | ibv_dealloc_mw(v->mw[1]);
	for (i = 0; i < KINDS; i++)
		rc |= ibv_destroy_qp(v->qp[i]);
	rc |= ibv_destroy_srq(v->srq);
	rc |= ibv_destroy_cq(v->rc_cq) | ibv_destroy_cq(v->cq);
	rc |= ibv_dereg_mr(v->mr) | ibv_dealloc_pd(v->pd);
	rc |= ibv_close_device(v->ep.ctx);
	if (rc)
		errx(1, "something can not be destroyed");
	free(v->memory);
}
