/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libibverbs' own functions, by name: rp_real.ibv_create_qp(...). They are looked up at the first
 * use, because a program may load libibverbs long after us.
 */
#ifndef RP_REAL_H
#define RP_REAL_H

#include <infiniband/verbs.h>
#include <stdatomic.h>

/* Programs reach the symbols through these macros; we define and call the symbols. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Declared by rdma-core's provider header alone, but exported, and ibv_devinfo uses it. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       int *type);

#define RP_WRAP(name, node)	__typeof__(name) *name;
#define RP_PASS(name, node)
#define RP_PROVIDER(name, node)
struct rp_real_table {
#include "verbs.def"
	/* takes no handle; for our own messages */
	__typeof__(ibv_wc_status_str) *ibv_wc_status_str;
};
#undef RP_WRAP
#undef RP_PASS
#undef RP_PROVIDER

extern struct rp_real_table rp_real_table;
extern atomic_bool rp_real_resolved;
void rp_real_resolve(void);
/* What the program would find of @library, past this shim; or NULL. *@handle: of it, NULL at first. */
void *rp_real_find(const char *library, void **handle, const char *name, const char *node);

/**
 * rp_real_get() - the table of real functions
 * A name that the loaded libibverbs lacks is a function that says so and aborts: a program that
 * refers to it could not have been started without us.
 */
static inline struct rp_real_table *rp_real_get(void)
{
	if (__builtin_expect(!atomic_load_explicit(&rp_real_resolved, memory_order_acquire), 0))
		rp_real_resolve();
	return &rp_real_table;
}
#define rp_real (*rp_real_get())

#endif /* RP_REAL_H */
