/* SPDX-License-Identifier: GPL-2.0 */
/* Unreliable connections (IBA 1.2.1 vol 1, 9.8.2). Both functions: r_lock and s_lock held. */
#ifndef VHCA_UC_H
#define VHCA_UC_H

#include "qp.h"

enum vhca_step vhca_uc_request(struct rvt_qp *qp);
void vhca_uc_receive(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx);

#endif
