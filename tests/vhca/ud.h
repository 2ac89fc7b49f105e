/* SPDX-License-Identifier: GPL-2.0 */
/* Datagrams: UD, QP0 and QP1 (IBA 1.2.1 vol 1, 9.8.3). Both functions: r_lock and s_lock held. */
#ifndef VHCA_UD_H
#define VHCA_UD_H

#include "qp.h"

enum vhca_step vhca_ud_request(struct rvt_qp *qp);
void vhca_ud_receive(struct vhca_port *port, struct rvt_qp *qp, const struct vhca_rx *rx);

#endif
