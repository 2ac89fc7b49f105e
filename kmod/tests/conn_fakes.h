/* SPDX-License-Identifier: GPL-2.0 */
/* Who hears of connections, for suites of those alone: nothing comes of it. */
#ifndef REPATH_TESTS_CONN_FAKES_H
#define REPATH_TESTS_CONN_FAKES_H

#include "../number.h"
#include "../op.h"
#include "../resolve.h"
#include "../watch.h"

void repath_op_conn_changed(void)
{
}

void repath_number_qp_gone(struct repath_qp *rqp)
{
}

void repath_number_proc_left(struct repath_proc *proc)
{
}

void repath_resolve_proc_left(struct repath_proc *proc)
{
}

void repath_watch_proc_left(struct repath_proc *proc)
{
}

void repath_watch_sender_moved(const struct repath_proc *proc, u64 cookie,
			       const struct repath_addr *from, const struct repath_addr *said,
			       const struct repath_addr *to, bool told)
{
}

#endif /* REPATH_TESTS_CONN_FAKES_H */
