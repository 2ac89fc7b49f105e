// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Direct verbs of providers whose libraries do not look whose object they are given: what the shim hands out is
 * no struct of theirs, and they would read it, and write into it, as one. The others say so themselves.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "objects.h"

struct mlx4dv_obj;
struct mlx4dv_context;
struct mlx4dv_qp_init_attr;
struct manadv_obj;

static int refused(const char *name)
{
	rp_log(RP_LOG_ERR, "%s: not on what this shim hands out: use libibverbs alone, or set REPATH_DISABLE=1", name);
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* Whatever the program has, it has from the shim, unless that is switched off. */
#define DIRECT(type, name, library, node, failed, parameters, arguments)			\
	type name parameters;									\
	type name parameters									\
	{											\
		__typeof__(&name) real = NULL;								\
		void *handle = NULL;									\
												\
		if (RP_PASSING)									\
			real = rp_real_find(library, &handle, #name, node);			\
		if (real)									\
			return real arguments;							\
		return refused(#name), failed;							\
	}

#define MLX4(type, name, failed, parameters, arguments)						\
	DIRECT(type, mlx4dv_ ## name, "libmlx4.so.1", "MLX4_1.0", failed, parameters, arguments)
#define MANA(type, name, failed, parameters, arguments)						\
	DIRECT(type, manadv_ ## name, "libmana.so.1", "MANA_1.0", failed, parameters, arguments)

MLX4(int, init_obj, EOPNOTSUPP, (struct mlx4dv_obj *obj, uint64_t type), (obj, type))
MLX4(int, query_device, EOPNOTSUPP, (struct ibv_context *ctx, struct mlx4dv_context *attr), (ctx, attr))
MLX4(int, set_context_attr, EOPNOTSUPP, (struct ibv_context *ctx, int type, void *attr), (ctx, type, attr))
MLX4(struct ibv_qp *, create_qp, NULL,
     (struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr, struct mlx4dv_qp_init_attr *direct),
     (ctx, attr, direct))
MANA(int, init_obj, EOPNOTSUPP, (struct manadv_obj *obj, uint64_t type), (obj, type))
MANA(int, set_context_attr, EOPNOTSUPP, (struct ibv_context *ctx, int type, void *attr), (ctx, type, attr))

/* Ours, for who asks the provider's @library itself; or NULL. */
void *rp_direct(const char *library, const char *name)
{
	static const struct {
		const char *library, *name;
		void *ours;
	} verbs[] = {
		{ "libmlx4.so.", "mlx4dv_init_obj", (void *)mlx4dv_init_obj },
		{ "libmlx4.so.", "mlx4dv_query_device", (void *)mlx4dv_query_device },
		{ "libmlx4.so.", "mlx4dv_set_context_attr", (void *)mlx4dv_set_context_attr },
		{ "libmlx4.so.", "mlx4dv_create_qp", (void *)mlx4dv_create_qp },
		{ "libmana.so.", "manadv_init_obj", (void *)manadv_init_obj },
		{ "libmana.so.", "manadv_set_context_attr", (void *)manadv_set_context_attr },
	};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, name) && !strncmp(verbs[i].library, library, strlen(verbs[i].library)))
			return verbs[i].ours;
	return NULL;
}
