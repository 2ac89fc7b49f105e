/* SPDX-License-Identifier: GPL-2.0 */
/* An RDMA device with one port and one GID that is registered, and can do nothing. */
#ifndef REPATH_TESTS_FAKE_IBDEV_H
#define REPATH_TESTS_FAKE_IBDEV_H

#include <linux/module.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

struct fake_ibdev {
	struct ib_device ibdev;
};

/* What its port is, and how often it was asked. */
static struct {
	u32 core_cap_flags;
	u16 lid;
	atomic_t asked;
} fake_port;

static int fake_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = 0xfe;
	gid->raw[15] = 1;
	return 0;
}

static int fake_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *im)
{
	im->core_cap_flags = fake_port.core_cap_flags;
	im->gid_tbl_len = 1;
	im->pkey_tbl_len = 1;
	return 0;
}

static int fake_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	atomic_inc(&fake_port.asked);
	attr->state = IB_PORT_ACTIVE;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	attr->active_mtu = IB_MTU_1024;
	attr->lid = READ_ONCE(fake_port.lid);
	return 0;
}

static int fake_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}

static int fake_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	return 0;
}

static const struct ib_device_ops fake_ibdev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,
	.query_device = fake_query_device,
	.query_port = fake_query_port,
	.query_pkey = fake_query_pkey,
	.query_gid = fake_query_gid,
	.get_port_immutable = fake_immutable,
};

/* @name: with %d; @core_cap_flags: RDMA_CORE_* of its port. NULL: not registered. */
static struct ib_device *fake_ibdev_add(const char *name, u32 core_cap_flags)
{
	struct fake_ibdev *fake = ib_alloc_device(fake_ibdev, ibdev);
	struct ib_device *ibdev;

	if (!fake)
		return NULL;
	memset(&fake_port, 0, sizeof(fake_port));
	fake_port.core_cap_flags = core_cap_flags;
	ibdev = &fake->ibdev;
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ib_set_device_ops(ibdev, &fake_ibdev_ops);
	if (!ib_register_device(ibdev, name, NULL))
		return ibdev;
	ib_dealloc_device(ibdev);
	return NULL;
}

static void fake_ibdev_del(struct ib_device *ibdev)
{
	ib_unregister_device(ibdev);
	ib_dealloc_device(ibdev);
}

#endif /* REPATH_TESTS_FAKE_IBDEV_H */
