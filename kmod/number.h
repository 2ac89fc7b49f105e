/* SPDX-License-Identifier: GPL-2.0 */
/* The numbers by which queue pairs are known that were made anew. See docs/protocol.md, "Numbers". */
#ifndef REPATH_NUMBER_H
#define REPATH_NUMBER_H

#include <linux/types.h>

struct genl_info;
struct repath_device;
struct repath_proc;
struct repath_qp;
struct repath_resolve;
struct repath_resolved;
struct sk_buff;

/* A process's: there are no more of them than it has queue pairs. */
void repath_number_init(void);
void repath_number_exit(void);

/* NUMBERS, NUMBER_CHECK: number_cmd.c */
int repath_numbers_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_number_check_cmd(struct sk_buff *skb, struct genl_info *info);

/* COUNT for a process that registers: see EV_NUMBERS. */
u32 repath_number_count(void);

/* All that follows: under repath_conn_mutex. */
int repath_number_set(struct repath_proc *proc, struct repath_qp *rqp, u32 known_as);
u32 repath_number_known_as(const struct repath_qp *rqp);
bool repath_number_is_anothers(const struct repath_qp *rqp, u32 qpn);
bool repath_number_is_known(const struct repath_device *dev, u32 qpn);
void repath_number_keep(struct repath_proc *proc, bool keep);
void repath_number_moved(struct repath_proc *proc, struct repath_device *dev);
bool repath_number_has_moved(const struct repath_proc *proc, const struct repath_device *dev);
void repath_number_qp_gone(struct repath_qp *rqp);
void repath_number_proc_left(struct repath_proc *proc);
u8 repath_number_find(struct repath_device *dev, const struct repath_resolve *ask,
		      struct repath_resolved *answer, struct repath_qp **found);

#endif /* REPATH_NUMBER_H */
