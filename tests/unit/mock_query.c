// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <endian.h>

#include "mock_state.h"

static struct mock_device *device_of(struct ibv_context *c)
{
	return mock_context(c)->device;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	struct mock_device *d = device_of(c);

	memset(attr, 0, sizeof(*attr));
	strcpy(attr->fw_ver, "1.0");
	attr->node_guid = ibv_get_device_guid(&d->dev);
	attr->sys_image_guid = attr->node_guid;
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap = 4096;
	attr->max_qp = 65536;
	attr->max_qp_wr = d->max_qp_wr;
	attr->max_sge = MOCK_SGE;
	attr->max_cq = 65536;
	attr->max_cqe = d->max_cqe;
	attr->max_mr = 65536;
	attr->max_pd = 65536;
	attr->max_qp_rd_atom = 128;
	attr->max_qp_init_rd_atom = 128;
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->max_srq = 1024;
	attr->max_srq_wr = 4096;
	attr->max_srq_sge = MOCK_SGE;
	attr->max_pkeys = MOCK_PKEYS;
	attr->phys_port_cnt = d->ports;
#define GIVEN(field) do { if (d->limits.field) attr->field = d->limits.field; } while (0)
	GIVEN(max_mr_size);
	GIVEN(max_qp);
	GIVEN(max_sge);
	GIVEN(max_cq);
	GIVEN(max_mr);
	GIVEN(max_pd);
	GIVEN(max_qp_rd_atom);
	GIVEN(max_qp_init_rd_atom);
	GIVEN(max_srq);
	GIVEN(max_srq_wr);
	GIVEN(max_srq_sge);
#undef GIVEN
	return 0;
}

int mock_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *in,
			 struct ibv_device_attr_ex *attr, size_t len)
{
	if (in && in->comp_mask)
		return EINVAL;
	if (len < sizeof(attr->orig_attr))
		return EINVAL;
	memset(attr, 0, len);
	if (len >= offsetof(struct ibv_device_attr_ex, hca_core_clock) + sizeof(uint64_t)) {
		attr->completion_timestamp_mask = MOCK_CLOCK_MASK;
		attr->hca_core_clock = device_of(c)->clock_khz;
	}
	return ibv_query_device(c, &attr->orig_attr);
}

int mock_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	struct ibv_port_attr a = {
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_1024,
		.gid_tbl_len = MOCK_GIDS,
		.max_msg_sz = 1u << 31,
		.pkey_tbl_len = MOCK_PKEYS,
		.active_width = 1,
		.active_speed = 1,
		.phys_state = 5,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};

	if (port < 1 || port > device_of(c)->ports)
		return EINVAL;
	mock_lock();
	a.state = device_of(c)->port;
	if (device_of(c)->lid)
		a.lid = device_of(c)->lid + 16 * (port - 1);
	a.lmc = mock.lmc;
	mock_unlock();
	memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
	return 0;
}

/* The symbol serves old programs, whose struct ends earlier than ours. */
int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return mock_query_port(c, port, (void *)attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

static const struct ibv_gid_entry *find_gid(struct ibv_context *c, unsigned int port, int index)
{
	struct mock_device *d = device_of(c);
	int i;

	for (i = 0; i < d->ngids; i++)
		if (d->gids[i].port_num == port && (int)d->gids[i].gid_index == index)
			return &d->gids[i];
	return NULL;
}

int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	const struct ibv_gid_entry *e;

	if (port < 1 || port > device_of(c)->ports || index < 0 || index >= MOCK_GIDS) {
		errno = EINVAL;
		return -1;
	}
	memset(gid, 0, sizeof(*gid));
	mock_lock();
	e = find_gid(c, port, index);
	if (e)
		*gid = e->gid;
	mock_unlock();
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t len)
{
	const struct ibv_gid_entry *e;

	if (flags || len < sizeof(*entry))
		return EINVAL;
	mock_lock();
	e = find_gid(c, port, index);
	if (e)
		*entry = *e;
	mock_unlock();
	return e ? 0 : ENODATA;
}

ssize_t _ibv_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t len)
{
	struct mock_device *d = device_of(c);
	size_t i, n;

	if (flags || len < sizeof(*entries))
		return -EINVAL;
	mock_lock();
	n = (size_t)d->ngids < max ? (size_t)d->ngids : max;
	for (i = 0; i < n; i++)
		entries[i] = d->gids[i];
	mock_unlock();
	return n;
}

int ibv_query_gid_type(struct ibv_context *c, uint8_t port, unsigned int index, int *type);
int ibv_query_gid_type(struct ibv_context *c, uint8_t port, unsigned int index, int *type)
{
	const struct ibv_gid_entry *e;

	mock_lock();
	e = find_gid(c, port, index);
	if (e)
		*type = 1;
	mock_unlock();
	if (!e)
		errno = ENODATA;
	return e ? 0 : -1;
}

int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey)
{
	if (port < 1 || port > device_of(c)->ports || index < 0 || index >= MOCK_PKEYS) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(device_of(c)->pkeys[index]);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *c, uint8_t port, __be16 pkey)
{
	int i;

	for (i = 0; port == 1 && i < MOCK_PKEYS; i++)
		if (htobe16(device_of(c)->pkeys[i]) == pkey)
			return i;
	errno = EINVAL;
	return -1;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *c, struct ibv_ah_attr *attr, uint8_t mac[6],
				uint16_t *vid)
{
	bool there;

	mock_lock();
	there = find_gid(c, attr->port_num, attr->grh.sgid_index);
	mock_unlock();
	memset(mac, 2, 6);
	*vid = 0xffff;
	return there ? 0 : ENODATA;
}
