// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Questions about a device and its ports: answered by the device that is there now. */
#include <string.h>

#include "objects.h"

/* What comes behind it is told of the device that was asked: a move may change the maps once it is left. */
#define QUERY_BEGIN(context, call, none)				\
	struct rp_context *ctx = to_rp_context(context);		\
	__typeof__(RP_REAL(call)) ret;					\
	ret = rp_verbs_enter(ctx) ? RP_REAL(call) : (none)

#define QUERY(context, call)						\
	QUERY_BEGIN(context, call, ENODEV);				\
	rp_verbs_leave(ctx)

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (RP_PASSING)
		return rp_real.ibv_query_device(context, attr);
	QUERY(context, rp_real.ibv_query_device(ctx->real, attr));
	return ret;
}

int rp_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t size)
{
	QUERY(context, RP_HAS_SLOT(ctx, query_device_ex) ?
	      RP_SLOT(ctx, query_device_ex)(ctx->real, input, attr, size) : EOPNOTSUPP);
	return ret;
}

int rp_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct rp_context *ctx = to_rp_context(context);
	int ret;

	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	ret = RP_REAL(RP_HAS_SLOT(ctx, query_rt_values) ?
		      RP_SLOT(ctx, query_rt_values)(ctx->real, values) : EOPNOTSUPP);
	/* Its raw clock is where the stamps of completions are: of this device, which may be left next. */
	if (!ret && values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK && !values->raw_clock.tv_sec)
		values->raw_clock.tv_nsec =
			(long)rp_clock_real_to_virtual(ctx, values->raw_clock.tv_nsec);
	rp_verbs_leave(ctx);
	return ret;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	if (RP_PASSING)
		return rp_real.ibv_query_port(context, port, attr);
	QUERY(context, rp_real.ibv_query_port(ctx->real, port, attr));
	return ret;
}

int rp_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		  size_t len)
{
	/* Without it, as ibv_query_port() does of a device that never had it: what has no place is 0. */
	struct ibv_port_attr a = { 0 };
	QUERY(context, RP_HAS_SLOT(ctx, query_port) ?
	      RP_SLOT(ctx, query_port)(ctx->real, port, &a, sizeof(a)) :
	      rp_real.ibv_query_port(ctx->real, port, (void *)&a));

	if (!ret)
		memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
	return ret;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	if (RP_PASSING)
		return rp_real.ibv_query_gid(context, port, index, gid);
	QUERY(context, rp_real.ibv_query_gid(ctx->real, port, rp_real_sgid(ctx, port, index),
					     gid));
	return ret;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	if (RP_PASSING)
		return rp_real.ibv_query_gid_type(context, port, index, type);
	QUERY(context, rp_real.ibv_query_gid_type(ctx->real, port, rp_real_sgid(ctx, port, index),
						  type));
	return ret;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	if (RP_PASSING)
		return rp_real._ibv_query_gid_ex(context, port, index, entry, flags, size);
	QUERY(context, rp_real._ibv_query_gid_ex(ctx->real, port, rp_real_sgid(ctx, port, index),
						 entry, flags, size));
	if (!ret)
		entry->gid_index = index;
	return ret;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max, uint32_t flags, size_t size)
{
	ssize_t i;

	if (RP_PASSING)
		return rp_real._ibv_query_gid_table(context, entries, max, flags, size);
	QUERY_BEGIN(context, rp_real._ibv_query_gid_table(ctx->real, entries, max, flags, size), -ENODEV);
	for (i = 0; i < ret; i++) {
		struct ibv_gid_entry *e = (void *)((char *)entries + i * size);

		e->gid_index = rp_virtual_sgid(ctx, e->port_num, e->gid_index);
	}
	rp_verbs_leave(ctx);
	return ret;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (RP_PASSING)
		return rp_real.ibv_query_pkey(context, port, index, pkey);
	QUERY(context, rp_real.ibv_query_pkey(ctx->real, port, rp_real_pkey(ctx, port, index), pkey));
	return ret;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (RP_PASSING)
		return rp_real.ibv_get_pkey_index(context, port, pkey);
	QUERY_BEGIN(context, rp_real.ibv_get_pkey_index(ctx->real, port, pkey), -1);
	if (ret >= 0)
		ret = rp_virtual_pkey(ctx, port, ret);
	rp_verbs_leave(ctx);
	return ret;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	struct rp_context *ctx = to_rp_context(context);
	struct ibv_ah_attr real = *attr;
	int ret;

	if (RP_PASSING)
		return rp_real.ibv_resolve_eth_l2_from_gid(context, attr, mac, vid);
	if (!rp_verbs_enter(ctx))
		return rp_verbs_refuse(ctx);
	real.grh.sgid_index = rp_real_sgid(ctx, attr->port_num, attr->grh.sgid_index);
	ret = RP_REAL(rp_real.ibv_resolve_eth_l2_from_gid(ctx->real, &real, mac, vid));
	rp_verbs_leave(ctx);
	return ret;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	if (RP_PASSING)
		return rp_real.ibv_init_ah_from_wc(context, port, wc, grh, attr);
	QUERY_BEGIN(context, rp_real.ibv_init_ah_from_wc(ctx->real, port, wc, grh, attr), -1);
	if (!ret && attr->is_global)
		attr->grh.sgid_index = rp_virtual_sgid(ctx, port, attr->grh.sgid_index);
	rp_verbs_leave(ctx);
	return ret;
}
