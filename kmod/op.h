/* SPDX-License-Identifier: GPL-2.0 */
/* Operations: suspend, resume and abort of a device, and their order. See docs/protocol.md. */
#ifndef REPATH_OP_H
#define REPATH_OP_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/workqueue.h>
#include <uapi/ib_repath.h>

struct genl_info;
struct netlink_callback;
struct repath_conn;
struct repath_device;
struct repath_proc;
struct sk_buff;

/* Protects the list of operations and all their fields. Taken before repath_conn_mutex. */
extern struct mutex repath_op_mutex;

#define REPATH_STAGES (REPATH_STAGE_ABORT + 1)

/**
 * struct repath_op_proc - one process inside an operation
 * @node: in repath_op::procs
 * @proc: the process; holds a reference
 * @stage: the last one that it has reported
 * @err: positive errno it reported, 0 for none
 * @answered: it has answered the question that the operation waits for now
 * @stage_ns: since the operation's start; 0: not reached
 * @counters: as reported last
 * @reason: with @err
 */
struct repath_op_proc {
	struct list_head node;
	struct repath_proc *proc;
	u8 stage;
	u32 err;
	bool answered;
	u64 stage_ns[REPATH_STAGES];
	struct repath_counters counters;
	char reason[REPATH_REASON_MAX];
};

/**
 * struct repath_op - one operation
 * @node: in the list, oldest first
 * @id: never used twice
 * @kind: enum repath_op_kind
 * @state: enum repath_op_state
 * @dev: the device that is, or was, suspended; holds a reference
 * @new_dev: where RESUME goes; holds a reference
 * @net: namespace of the administrator who started it
 * @procs: struct repath_op_proc
 * @work: advances the operation; also the deadline
 * @started_ns: CLOCK_BOOTTIME
 * @timeout_ms: of the current phase
 * @deadline: of the current phase, jiffies
 * @hello_deadline: until when peers may answer HELLO, jiffies
 * @err: positive errno of a failure
 * @force: see SUSPEND
 * @dry_run: see SUSPEND
 * @asked: EV_CHECK was sent
 * @pinned: the module is held while processes are suspended
 * @dev_gone: @dev was removed
 * @reason: for a person
 * @dev_name: name of @dev when it was suspended
 */
struct repath_op {
	struct list_head node;
	u32 id;
	u8 kind;
	u8 state;
	struct repath_device *dev;
	struct repath_device *new_dev;
	struct net *net;
	struct list_head procs;
	struct delayed_work work;
	u64 started_ns;
	u32 timeout_ms;
	unsigned long deadline;
	unsigned long hello_deadline;
	u32 err;
	bool force;
	bool dry_run;
	bool asked;
	bool pinned;
	bool dev_gone;
	char reason[REPATH_REASON_MAX];
	char dev_name[64];
};

int repath_op_init(void);
void repath_op_exit(void);

/* SUSPEND, RESUME, ABORT (administrator), REPLY (shim). None waits. */
int repath_op_suspend_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_op_resume_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_op_abort_cmd(struct sk_buff *skb, struct genl_info *info);
int repath_op_reply_cmd(struct sk_buff *skb, struct genl_info *info);
/* OP_GET */
int repath_op_get_doit(struct sk_buff *skb, struct genl_info *info);
int repath_op_dump(struct sk_buff *skb, struct netlink_callback *cb);

/* What makes an operation go on. All may sleep, none waits for the network. */
void repath_op_ctx_gone(struct repath_device *dev);
void repath_op_device_removed(struct repath_device *dev);
void repath_op_proc_left(struct repath_proc *proc);
void repath_op_conn_changed(void);

/* The operation that the device is in, 0 for none: DEVICE_GET. Takes the mutex. */
u32 repath_op_of_device(struct repath_device *dev);

#endif /* REPATH_OP_H */
