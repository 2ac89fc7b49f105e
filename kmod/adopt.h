/* SPDX-License-Identifier: GPL-2.0 */
/* Adoption: what exists and was not seen by a hook. */
#ifndef REPATH_ADOPT_H
#define REPATH_ADOPT_H

struct repath_device;

void repath_adopt(struct repath_device *dev);
void repath_adopt_rescan_all(void);

#endif /* REPATH_ADOPT_H */
