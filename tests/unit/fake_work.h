/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the fake module's thread has to do; all functions are called with its lock held. */
#ifndef FAKE_WORK_H
#define FAKE_WORK_H

#include "../../libshim/conn.h"
#include "fake_module.h"

struct work {
	struct list_node node;
	uint64_t at_ns;
	enum { W_EVENT, W_SEND, W_MSG, W_SENT, W_CALL, W_GONE, W_UNLOAD, W_RESOLVE, W_CYCLE,
	       W_REPATH, W_TOLD_GONE } kind;
	int cmd;
	bool force;
	unsigned int op;
	char dev[64];
	uint32_t dev_index, peer_id;
	uint64_t msg_id;
	int err;
	struct rp_ctl_peer_msg msg;
	struct rp_context *from;
	bool unplugged, no_device;		/* the sender's device was away */
	struct {
		uint32_t number, dest;
	} end[REPATH_CONNS_MAX];	/* the sender's */
	struct repath_conn_rec recs[REPATH_CONNS_MAX];
	char *blob;
	void (*fn)(void *arg);
	void *arg;
	bool *done;
	struct rp_ctl_address address;
	struct rp_ctl_path path;
	const uint8_t *gid;
	uint32_t forged;	/* who is said to have sent it; 0: who has */
};

struct work *fake_work_new(int kind);
/* With records and blob of its own. */
struct work *fake_work_copy(const struct work *w);
void fake_enqueue(struct work *w, unsigned int late_us);

/* fake_tap.c */
void fake_tap_begin(const struct fake_tap *tap);
void fake_tap_count(unsigned int *touched, unsigned int *delivered);
/* @w is sent: how often it is delivered, what the sender is told, how late it may be. */
int fake_tap_send(struct work *w, int copies, int *err, unsigned int *late_us);
void fake_tap_stage(enum fake_stage stage);

#endif /* FAKE_WORK_H */
