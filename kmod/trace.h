/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: repath:qp, repath:move, repath:op, repath:op_stage, repath:peer_tx, repath:peer_rx,
 * repath:adopt.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM repath

#if !defined(REPATH_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define REPATH_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>

/* What has happened to a queue pair: enum repath_ev_action. */
TRACE_EVENT(qp,
	TP_PROTO(u32 dev, u32 qpn, u8 type, u8 state, u32 dlid, u32 dest_qpn, u8 action),
	TP_ARGS(dev, qpn, type, state, dlid, dest_qpn, action),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, qpn)
		__field(u32, dlid)
		__field(u32, dest_qpn)
		__field(u8, type)
		__field(u8, state)
		__field(u8, action)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qpn = qpn;
		__entry->dlid = dlid;
		__entry->dest_qpn = dest_qpn;
		__entry->type = type;
		__entry->state = state;
		__entry->action = action;
	),
	TP_printk("dev %u qpn %u type %u state %u dlid %u dqpn %u %s", __entry->dev, __entry->qpn,
		  __entry->type, __entry->state, __entry->dlid, __entry->dest_qpn,
		  __print_symbolic(__entry->action, { 0, "new" }, { 1, "change" }, { 2, "del" }))
);

/* The subnet manager has reported: trap 68 or 69, enum repath_notice_age. */
TRACE_EVENT(sm_report,
	TP_PROTO(u32 dev, u32 port, u8 trap, u8 kind, u32 dlid, u32 serial, u8 age),
	TP_ARGS(dev, port, trap, kind, dlid, serial, age),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, port)
		__field(u32, dlid)
		__field(u32, serial)
		__field(u8, trap)
		__field(u8, kind)
		__field(u8, age)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->port = port;
		__entry->dlid = dlid;
		__entry->serial = serial;
		__entry->trap = trap;
		__entry->kind = kind;
		__entry->age = age;
	),
	TP_printk("dev %u port %u trap %u kind %u dlid %u serial %u age %u", __entry->dev,
		  __entry->port, __entry->trap, __entry->kind, __entry->dlid, __entry->serial,
		  __entry->age)
);

/*
 * It is asked for paths (dlid 0: all of the port's), has answered, and the answer is read: err is a negative error,
 * or how many paths were in it.
 */
TRACE_EVENT(sm_paths,
	TP_PROTO(u32 dev, u32 port, u32 dlid, u8 stage, int err),
	TP_ARGS(dev, port, dlid, stage, err),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, port)
		__field(u32, dlid)
		__field(u8, stage)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->port = port;
		__entry->dlid = dlid;
		__entry->stage = stage;
		__entry->err = err;
	),
	TP_printk("dev %u port %u dlid %u %s err %d", __entry->dev, __entry->port, __entry->dlid,
		  __print_symbolic(__entry->stage, { 0, "asked" }, { 1, "answered" }, { 2, "read" }),
		  __entry->err)
);

/* A queue pair on its way to another path: enum repath_move_state, enum repath_moved_by. */
TRACE_EVENT(move,
	TP_PROTO(u32 dev, u32 qpn, u32 dlid, u8 sl, u8 state, u8 by),
	TP_ARGS(dev, qpn, dlid, sl, state, by),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, qpn)
		__field(u32, dlid)
		__field(u8, sl)
		__field(u8, state)
		__field(u8, by)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qpn = qpn;
		__entry->dlid = dlid;
		__entry->sl = sl;
		__entry->state = state;
		__entry->by = by;
	),
	TP_printk("dev %u qpn %u dlid %u sl %u state %u by %u", __entry->dev, __entry->qpn,
		  __entry->dlid, __entry->sl, __entry->state, __entry->by)
);

/* An operation has gone on to another state: enum repath_op_state. */
TRACE_EVENT(op,
	TP_PROTO(u32 id, const char *dev, u8 was, u8 state, u32 err),
	TP_ARGS(id, dev, was, state, err),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, err)
		__field(u8, was)
		__field(u8, state)
		__array(char, dev, IB_DEVICE_NAME_MAX)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->err = err;
		__entry->was = was;
		__entry->state = state;
		strscpy(__entry->dev, dev, IB_DEVICE_NAME_MAX);
	),
	TP_printk("op %u dev %s state %u -> %u err %u", __entry->id, __entry->dev, __entry->was,
		  __entry->state, __entry->err)
);

/* A process has answered: enum repath_stage. */
TRACE_EVENT(op_stage,
	TP_PROTO(u32 id, int pid, u8 stage, u32 err),
	TP_ARGS(id, pid, stage, err),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(int, pid)
		__field(u32, err)
		__field(u8, stage)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->pid = pid;
		__entry->err = err;
		__entry->stage = stage;
	),
	TP_printk("op %u pid %d stage %u err %u", __entry->id, __entry->pid, __entry->stage,
		  __entry->err)
);

/* A message has ended: enum repath_msg, errno of the way, enum repath_peer_status of the peer. */
TRACE_EVENT(peer_tx,
	TP_PROTO(u32 dev, u8 type, u32 len, int err, u8 status),
	TP_ARGS(dev, type, len, err, status),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, len)
		__field(int, err)
		__field(u8, type)
		__field(u8, status)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->len = len;
		__entry->err = err;
		__entry->type = type;
		__entry->status = status;
	),
	TP_printk("dev %u type %u len %u err %d status %u", __entry->dev, __entry->type,
		  __entry->len, __entry->err, __entry->status)
);

/* A message has come in whole, and was answered. */
TRACE_EVENT(peer_rx,
	TP_PROTO(u32 dev, u8 type, u32 len, u8 status),
	TP_ARGS(dev, type, len, status),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, len)
		__field(u8, type)
		__field(u8, status)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->len = len;
		__entry->type = type;
		__entry->status = status;
	),
	TP_printk("dev %u type %u len %u status %u", __entry->dev, __entry->type, __entry->len,
		  __entry->status)
);

/* A round of adoption has ended. */
TRACE_EVENT(adopt,
	TP_PROTO(u32 dev, u64 qps, u64 ctxs, u32 swept, bool complete),
	TP_ARGS(dev, qps, ctxs, swept, complete),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, swept)
		__field(u64, qps)
		__field(u64, ctxs)
		__field(bool, complete)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->swept = swept;
		__entry->qps = qps;
		__entry->ctxs = ctxs;
		__entry->complete = complete;
	),
	TP_printk("dev %u qps %llu contexts %llu swept %u%s", __entry->dev, __entry->qps,
		  __entry->ctxs, __entry->swept, __entry->complete ? "" : " incomplete")
);

#endif /* REPATH_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
