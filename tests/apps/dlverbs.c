// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * In the place of -libverbs: a program with this loads the library when it calls the first of these, and
 * asks for each function by name and version, as programs do that shall start where there is no RDMA.
 */
#include <dlfcn.h>
#include <err.h>
#include <infiniband/verbs.h>

#undef ibv_reg_mr
#undef ibv_query_port

static void *verb(const char *name, const char *version)
{
	static void *library;
	void *found;

	if (!library)
		library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	found = library ? dlvsym(library, name, version) : NULL;
	if (!found)
		errx(2, "%s@%s: %s", name, version, dlerror());
	return found;
}

#define VERB(version, type, name, params, ...)			\
type name params						\
{								\
	static type (*found) params;				\
								\
	if (!found)						\
		found = (type (*) params)verb(#name, version);	\
	return found(__VA_ARGS__);				\
}

VERB("IBVERBS_1.1", int, ibv_fork_init, (void))
VERB("IBVERBS_1.1", struct ibv_device **, ibv_get_device_list, (int *n), n)
VERB("IBVERBS_1.1", void, ibv_free_device_list, (struct ibv_device **list), list)
VERB("IBVERBS_1.1", const char *, ibv_get_device_name, (struct ibv_device *device), device)
VERB("IBVERBS_1.1", struct ibv_context *, ibv_open_device, (struct ibv_device *device), device)
VERB("IBVERBS_1.1", int, ibv_close_device, (struct ibv_context *ctx), ctx)
VERB("IBVERBS_1.1", int, ibv_get_async_event, (struct ibv_context *ctx, struct ibv_async_event *event), ctx, event)
VERB("IBVERBS_1.1", void, ibv_ack_async_event, (struct ibv_async_event *event), event)
VERB("IBVERBS_1.1", int, ibv_query_port, (struct ibv_context *ctx, uint8_t port,
     struct _compat_ibv_port_attr *attr), ctx, port, attr)
VERB("IBVERBS_1.1", int, ibv_query_gid, (struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid),
     ctx, port, index, gid)
VERB("IBVERBS_1.1", struct ibv_pd *, ibv_alloc_pd, (struct ibv_context *ctx), ctx)
VERB("IBVERBS_1.1", int, ibv_dealloc_pd, (struct ibv_pd *pd), pd)
VERB("IBVERBS_1.1", struct ibv_mr *, ibv_reg_mr, (struct ibv_pd *pd, void *addr, size_t length, int access),
     pd, addr, length, access)
VERB("IBVERBS_1.1", int, ibv_dereg_mr, (struct ibv_mr *mr), mr)
VERB("IBVERBS_1.0", struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context *ctx), ctx)
VERB("IBVERBS_1.0", int, ibv_destroy_comp_channel, (struct ibv_comp_channel *channel), channel)
VERB("IBVERBS_1.1", struct ibv_cq *, ibv_create_cq, (struct ibv_context *ctx, int cqe, void *data,
     struct ibv_comp_channel *channel, int vector), ctx, cqe, data, channel, vector)
VERB("IBVERBS_1.1", int, ibv_destroy_cq, (struct ibv_cq *cq), cq)
VERB("IBVERBS_1.1", int, ibv_get_cq_event, (struct ibv_comp_channel *channel, struct ibv_cq **cq, void **data),
     channel, cq, data)
VERB("IBVERBS_1.1", void, ibv_ack_cq_events, (struct ibv_cq *cq, unsigned int n), cq, n)
VERB("IBVERBS_1.1", struct ibv_qp *, ibv_create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *attr), pd, attr)
VERB("IBVERBS_1.1", int, ibv_modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), qp, attr, mask)
VERB("IBVERBS_1.1", int, ibv_query_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
     struct ibv_qp_init_attr *init), qp, attr, mask, init)
VERB("IBVERBS_1.1", int, ibv_destroy_qp, (struct ibv_qp *qp), qp)
VERB("IBVERBS_1.6", struct ibv_qp_ex *, ibv_qp_to_qp_ex, (struct ibv_qp *qp), qp)
VERB("IBVERBS_1.1", const char *, ibv_wc_status_str, (enum ibv_wc_status status), status)
VERB("IBVERBS_1.1", const char *, ibv_event_type_str, (enum ibv_event_type event), event)
