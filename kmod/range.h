/* SPDX-License-Identifier: GPL-2.0 */
/* Module parameters of which not every number makes sense: another one is refused. */
#ifndef REPATH_RANGE_H
#define REPATH_RANGE_H

#include <linux/moduleparam.h>

/**
 * REPATH_RANGE_PARAM - a module parameter from @min to @max
 * @name: static unsigned int of this name
 * @min: least
 * @max: most
 * @perm: in sysfs
 */
#define REPATH_RANGE_PARAM(name, min, max, perm)					\
static int name ## _set(const char *value, const struct kernel_param *kp)		\
{											\
	return param_set_uint_minmax(value, kp, min, max);				\
}											\
static const struct kernel_param_ops name ## _ops = {					\
	.set = name ## _set,								\
	.get = param_get_uint,								\
};											\
module_param_cb(name, &name ## _ops, &name, perm);					\
__MODULE_PARM_TYPE(name, "uint")

#endif /* REPATH_RANGE_H */
