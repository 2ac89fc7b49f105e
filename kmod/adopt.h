/* SPDX-License-Identifier: GPL-2.0 */
/* Adoption: what exists and was not seen by a hook. */
#ifndef REPATH_ADOPT_H
#define REPATH_ADOPT_H

#include <linux/types.h>

struct repath_device;
struct work_struct;

void repath_adopt(struct repath_device *dev, bool sweep);
void repath_adopt_work(struct work_struct *work);
void repath_adopt_rescan_all(bool sweep);

#endif /* REPATH_ADOPT_H */
