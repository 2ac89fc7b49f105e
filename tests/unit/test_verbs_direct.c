// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Direct verbs. A provider's own library that is asked about what the shim hands out says that it is not its
 * device, even where the device behind it is: the call fails, nothing is read as what it is not. mlx4's and mana's do
 * not look, so the shim says it for them, unless it is switched off. The libraries are the installed ones; what they
 * take of libibverbs beside verbs is in libprivate-fake.so.
 */
#include <dlfcn.h>
#include <infiniband/efadv.h>
#include <infiniband/manadv.h>
#include <infiniband/mlx4dv.h>
#include <infiniband/mlx5dv.h>
#include <sys/wait.h>

#include "../../libshim/shim.h"
#include "check.h"
#include "mock.h"
#include "pair.h"

static struct end e[2];

static void *load(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW);

	CHECK(handle, "%s (scripts/setup installs it: ibverbs-providers)", dlerror());
	return handle;
}

#define CALL(handle, name)	((__typeof__(&(name)))entry(handle, #name))

static void *entry(void *handle, const char *name)
{
	void *p = dlsym(handle, name);

	CHECK(p, "%s", dlerror());
	return p;
}

/* A provider's struct begins with its name. */
static const void *driver(const char *name)
{
	const void **drivers = dlsym(RTLD_DEFAULT, "fake_drivers");
	int i;

	CHECK(drivers);
	for (i = 0; drivers[i]; i++)
		if (!strcmp(*(const char *const *)drivers[i], name))
			return drivers[i];
	CHECK(0, "%s has not registered", name);
	return NULL;
}

static void plug(const char *name, const char *owner)
{
	CHECK_EQ(mock_unplug(name), 0);
	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = name, .driver = driver(owner) }), 0);
}

static void mlx5(void *lib)
{
	__typeof__(&mlx5dv_init_obj) init_obj = CALL(lib, mlx5dv_init_obj);
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_wq_init_attr wq_attr = { .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1 };
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1 };
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_qp_init_attr_ex qp_attr = {
		.qp_type = IBV_QPT_RC, .comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_device *dev = e[0].ctx->device;
	struct mlx5dv_context attr = { 0 };
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_wq *wq;
	struct ibv_dm *dm;
	union {
		struct mlx5dv_qp qp;
		struct mlx5dv_cq cq;
		struct mlx5dv_srq srq;
		struct mlx5dv_rwq wq;
		struct mlx5dv_dm dm;
		struct mlx5dv_ah ah;
		struct mlx5dv_pd pd;
		char bytes[1024];
	} out;
	struct mlx5dv_obj obj;
	unsigned int type;
	size_t i;

	/* The mock's device is mlx5's, by what mlx5 looks at. */
	CHECK(CALL(lib, mlx5dv_is_supported)(((struct rp_device *)dev)->real));
	CHECK(!CALL(lib, mlx5dv_is_supported)(dev));

	CHECK_EQ(ibv_query_gid(e[1].ctx, 1, 0, &ah_attr.grh.dgid), 0);
	wq_attr.pd = e[0].pd;
	wq_attr.cq = e[0].cq;
	srq = ibv_create_srq(e[0].pd, &srq_attr);
	ah = ibv_create_ah(e[0].pd, &ah_attr);
	wq = ibv_create_wq(e[0].ctx, &wq_attr);
	dm = ibv_alloc_dm(e[0].ctx, &dm_attr);
	CHECK(srq && ah && wq && dm, "%s", strerror(errno));
	obj = (struct mlx5dv_obj){
		.qp = { e[0].qp, &out.qp }, .cq = { e[0].cq, &out.cq }, .srq = { srq, &out.srq },
		.rwq = { wq, &out.wq }, .dm = { dm, &out.dm }, .ah = { ah, &out.ah },
		.pd = { e[0].pd, &out.pd },
	};
	memset(&out, 0x5a, sizeof(out));
	for (type = MLX5DV_OBJ_QP; type <= MLX5DV_OBJ_PD; type <<= 1)
		CHECK_EQ(init_obj(&obj, type), EOPNOTSUPP);
	CHECK_EQ(init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ), EOPNOTSUPP);
	for (i = 0; i < sizeof(out); i++)
		CHECK_EQ(out.bytes[i], 0x5a);

	CHECK_EQ(CALL(lib, mlx5dv_query_device)(e[0].ctx, &attr), EOPNOTSUPP);
	errno = 0;
	CHECK(!CALL(lib, mlx5dv_create_cq)(e[0].ctx, &cq_attr, NULL));
	CHECK_EQ(errno, EOPNOTSUPP);
	qp_attr.pd = e[0].pd;
	qp_attr.send_cq = qp_attr.recv_cq = e[0].cq;
	errno = 0;
	CHECK(!CALL(lib, mlx5dv_create_qp)(e[0].ctx, &qp_attr, NULL));
	CHECK_EQ(errno, EOPNOTSUPP);
	errno = 0;
	CHECK(!CALL(lib, mlx5dv_devx_umem_reg)(e[0].ctx, e[0].buf, 4096, 0));
	CHECK_EQ(errno, EOPNOTSUPP);

	CHECK_EQ(ibv_free_dm(dm), 0);
	CHECK_EQ(ibv_destroy_wq(wq), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
}

static void efa(void *lib)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_type = IBV_QPT_UD, .comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1 };
	struct efadv_cq_init_attr efa_cq = { 0 };
	struct efadv_qp_init_attr efa_qp = { 0 };
	struct efadv_device_attr device = { 0 };
	struct efadv_ah_attr address = { 0 };
	struct ibv_ah *ah;

	ex.pd = e[1].pd;
	ex.send_cq = ex.recv_cq = e[1].cq;
	CHECK_EQ(ibv_query_gid(e[0].ctx, 1, 0, &ah_attr.grh.dgid), 0);
	ah = ibv_create_ah(e[1].pd, &ah_attr);
	CHECK(ah, "%s", strerror(errno));
	CHECK_EQ(CALL(lib, efadv_query_device)(e[1].ctx, &device, sizeof(device)), EOPNOTSUPP);
	CHECK_EQ(CALL(lib, efadv_query_ah)(ah, &address, sizeof(address)), EOPNOTSUPP);
	errno = 0;
	CHECK(!CALL(lib, efadv_create_cq)(e[1].ctx, &cq_attr, &efa_cq, sizeof(efa_cq)));
	CHECK_EQ(errno, EOPNOTSUPP);
	errno = 0;
	CHECK(!CALL(lib, efadv_create_qp_ex)(e[1].ctx, &ex, &efa_qp, sizeof(efa_qp)));
	CHECK_EQ(errno, EOPNOTSUPP);
	errno = 0;
	CHECK(!CALL(lib, efadv_create_driver_qp)(e[1].pd, (struct ibv_qp_init_attr *)&ex,
						 EFADV_QP_DRIVER_TYPE_SRD));
	CHECK_EQ(errno, EOPNOTSUPP);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
}

/* However it is found: by a program that is linked to the provider, or that asks its handle. */
static void is_ours(void *lib, const char *name, const char *node)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	CHECK(found);
	CHECK(entry(lib, name) == found);
	CHECK(dlvsym(lib, name, node) == found);
	CHECK(dlvsym(RTLD_DEFAULT, name, node) == found);
}

static void mlx4(void *lib)
{
	struct mlx4dv_qp_init_attr direct = { 0 };
	struct ibv_qp_init_attr_ex ex = {
		.qp_type = IBV_QPT_RC, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = e[0].pd,
		.send_cq = e[0].cq, .recv_cq = e[0].cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct mlx4dv_context attr = { 0 };
	uint8_t blueflame = 1;
	struct mlx4dv_obj obj;
	union {
		struct mlx4dv_qp qp;
		struct mlx4dv_cq cq;
		char bytes[1024];
	} out;
	struct ibv_cq before;
	size_t i;

	is_ours(lib, "mlx4dv_init_obj", "MLX4_1.0");
	is_ours(lib, "mlx4dv_query_device", "MLX4_1.0");
	is_ours(lib, "mlx4dv_set_context_attr", "MLX4_1.0");
	is_ours(lib, "mlx4dv_create_qp", "MLX4_1.0");
	memset(&out, 0x5a, sizeof(out));
	memset(&obj, 0, sizeof(obj));
	obj.qp.in = e[0].qp;
	obj.qp.out = &out.qp;
	obj.cq.in = e[0].cq;
	obj.cq.out = &out.cq;
	before = *e[0].cq;
	CHECK_EQ(CALL(lib, mlx4dv_init_obj)(&obj, MLX4DV_OBJ_QP), EOPNOTSUPP);
	CHECK_EQ(CALL(lib, mlx4dv_init_obj)(&obj, MLX4DV_OBJ_CQ), EOPNOTSUPP);
	CHECK(!memcmp(&before, e[0].cq, sizeof(before)));
	for (i = 0; i < sizeof(out); i++)
		CHECK_EQ(out.bytes[i], 0x5a);
	CHECK_EQ(CALL(lib, mlx4dv_query_device)(e[0].ctx, &attr), EOPNOTSUPP);
	CHECK_EQ(CALL(lib, mlx4dv_set_context_attr)(e[0].ctx, MLX4DV_SET_CTX_ATTR_LOG_WQS_RANGE_SZ, &blueflame), EOPNOTSUPP);
	errno = 0;
	CHECK(!CALL(lib, mlx4dv_create_qp)(e[0].ctx, &ex, &direct));
	CHECK_EQ(errno, EOPNOTSUPP);
}

static void mana(void *lib)
{
	struct manadv_ctx_allocators allocators = { 0 };
	struct manadv_obj obj = { 0 };
	struct manadv_cq out;
	size_t i;

	is_ours(lib, "manadv_init_obj", "MANA_1.0");
	is_ours(lib, "manadv_set_context_attr", "MANA_1.0");
	memset(&out, 0x5a, sizeof(out));
	obj.cq.in = e[0].cq;
	obj.cq.out = &out;
	CHECK_EQ(CALL(lib, manadv_init_obj)(&obj, MANADV_OBJ_CQ), EOPNOTSUPP);
	for (i = 0; i < sizeof(out); i++)
		CHECK_EQ(((char *)&out)[i], 0x5a);
	CHECK_EQ(CALL(lib, manadv_set_context_attr)(e[0].ctx, MANADV_CTX_ATTR_BUF_ALLOCATORS, &allocators),
		 EOPNOTSUPP);
}

/* With the shim switched off the provider's own is called, which does nothing for no object. */
static int switched_off(void *mlx4_lib, void *mana_lib)
{
	struct mlx4dv_obj of_mlx4 = { 0 };
	struct manadv_obj of_mana = { 0 };
	Dl_info info;

	CHECK(dladdr(entry(mlx4_lib, "mlx4dv_init_obj"), &info) && strstr(info.dli_fname, "libmlx4"));
	CHECK(dladdr(entry(mana_lib, "manadv_init_obj"), &info) && strstr(info.dli_fname, "libmana"));
	CHECK_EQ(((__typeof__(&mlx4dv_init_obj))dlsym(RTLD_DEFAULT, "mlx4dv_init_obj"))(&of_mlx4, 0), 0);
	CHECK_EQ(((__typeof__(&manadv_init_obj))dlsym(RTLD_DEFAULT, "manadv_init_obj"))(&of_mana, 0), 0);
	return 0;
}

static void off_in_child(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		setenv("REPATH_DISABLE", "1", 1);
		execl("/proc/self/exe", "test_verbs_direct", NULL);
		_exit(127);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

int main(void)
{
	void *mlx5_lib, *efa_lib, *mlx4_lib, *mana_lib;
	char path[4096], *slash;
	Dl_info info;

	alarm(HANGS);
	CHECK(dladdr((void *)mock_plug, &info));
	snprintf(path, sizeof(path), "%s", info.dli_fname);
	slash = strrchr(path, '/');
	CHECK(slash);
	snprintf(slash, path + sizeof(path) - slash, "/libprivate-fake.so");
	CHECK(dlopen(path, RTLD_NOW | RTLD_GLOBAL), "%s", dlerror());
	mlx5_lib = load("libmlx5.so.1");
	efa_lib = load("libefa.so.1");
	mlx4_lib = load("libmlx4.so.1");
	mana_lib = load("libmana.so.1");
	if (getenv("REPATH_DISABLE"))
		return switched_off(mlx4_lib, mana_lib);
	off_in_child();
	plug("mock0", "mlx5");
	plug("mock1", "efa");
	pair_open(e, &(struct pair_how){ 0 });
	mlx5(mlx5_lib);
	efa(efa_lib);
	mlx4(mlx4_lib);
	mana(mana_lib);
	CHECK_EQ(post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 8), 0);
	expect(&e[0], 1, IBV_WC_SUCCESS);
	pair_close(e);
	CHECK_EQ(mock_live_total(), 0);
	return 0;
}
