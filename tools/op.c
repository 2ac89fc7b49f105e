// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Operations of the module: their objects and requests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "names.h"
#include "op.h"
#include "out.h"
#include "show.h"

void op_add_failure(struct json_object *o, struct nlattr **tb)
{
	if (tb[REPATH_A_ERRNO] && nla_get_u32(tb[REPATH_A_ERRNO])) {
		const char *name = strerrorname_np(nla_get_u32(tb[REPATH_A_ERRNO]));

		out_text(o, "error", name ? name : "unknown");
	}
	if (tb[REPATH_A_REASON] && nla_len(tb[REPATH_A_REASON]) > 1)
		show_text(o, "reason", tb[REPATH_A_REASON]);
}

static void add_counters(struct json_object *o, const struct nlattr *a)
{
	struct json_object *list = json_object_new_object();
	struct repath_counters c;

	memcpy(&c, nla_data(a), sizeof(c));
	out_number(list, "qps", c.qps);
	out_number(list, "send-inflight", c.send_inflight);
	out_number(list, "recv-posted", c.recv_posted);
	out_number(list, "drained-cqes", c.drained_cqes);
	out_number(list, "replayed-sends", c.replayed_sends);
	out_number(list, "replayed-recvs", c.replayed_recvs);
	out_number(list, "settled", c.settled);
	out_number(list, "mrs", c.mrs);
	out_number(list, "bytes", c.bytes);
	json_object_object_add(o, "counters", list);
}

static struct json_object *op_process_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object(), *stages = json_object_new_object();
	struct nlattr *tb[REPATH_A_MAX + 1], *a;
	int left;

	door_nest(nest, tb);
	show_number(o, "pid", tb[REPATH_A_PID]);
	show_text(o, "comm", tb[REPATH_A_COMM]);
	if (tb[REPATH_A_OP_STAGE])
		out_text(o, "stage", name_of(NAMES_STAGE, nla_get_u8(tb[REPATH_A_OP_STAGE])));
	op_add_failure(o, tb);
	nla_for_each_nested(a, nest, left) {
		struct nlattr *stage[REPATH_A_MAX + 1];

		if (nla_type(a) != REPATH_A_STAGE_NS)
			continue;
		door_nest(a, stage);
		/* "None" marks where a resume began; the watcher knows that by itself. */
		if (stage[REPATH_A_OP_STAGE] && stage[REPATH_A_NS] &&
		    nla_get_u8(stage[REPATH_A_OP_STAGE]) != REPATH_STAGE_NONE)
			out_millis(stages, name_of(NAMES_STAGE,
						   nla_get_u8(stage[REPATH_A_OP_STAGE])),
				   nla_get_u64(stage[REPATH_A_NS]));
	}
	json_object_object_add(o, "reached-ms", stages);
	if (tb[REPATH_A_COUNTERS])
		add_counters(o, tb[REPATH_A_COUNTERS]);
	return o;
}

struct json_object *op_object(struct nlattr *nest)
{
	struct json_object *o = json_object_new_object(), *procs = json_object_new_array();
	struct nlattr *tb[REPATH_A_MAX + 1], *a;
	int left;

	door_nest(nest, tb);
	show_number(o, "op", tb[REPATH_A_OP_ID]);
	if (tb[REPATH_A_OP_KIND])
		out_text(o, "kind", name_of(NAMES_OP_KIND, nla_get_u8(tb[REPATH_A_OP_KIND])));
	show_text(o, "dev", tb[REPATH_A_DEV_NAME]);
	if (tb[REPATH_A_OP_STATE])
		out_text(o, "state", name_of(NAMES_OP_STATE, nla_get_u8(tb[REPATH_A_OP_STATE])));
	op_add_failure(o, tb);
	out_flag(o, "unplug", tb[REPATH_A_UNPLUG]);
	show_number(o, "timeout-ms", tb[REPATH_A_TIMEOUT_MS]);
	show_number(o, "started-ns", tb[REPATH_A_STARTED_NS]);
	nla_for_each_nested(a, nest, left)
		if (nla_type(a) == REPATH_A_OP_PROC)
			json_object_array_add(procs, op_process_object(a));
	json_object_object_add(o, "processes", procs);
	return o;
}

const char *op_text(struct json_object *op, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(op, key, &value) ? json_object_get_string(value) : "";
}

static void take_op(uint8_t cmd, struct nlattr **tb, void *arg)
{
	(void)cmd;
	if (tb[REPATH_A_OP])
		json_object_array_add(arg, op_object(tb[REPATH_A_OP]));
}

struct json_object *op_get(struct door *door, uint32_t id, int *err)
{
	struct json_object *found = json_object_new_array(), *op = NULL;
	struct nl_msg *msg = door_request(REPATH_CMD_OP_GET);

	nla_put_u32(msg, REPATH_A_OP_ID, id);
	*err = door_do(door, msg, take_op, found);
	if (!*err && json_object_array_length(found))
		op = json_object_get(json_object_array_get_idx(found, 0));
	else if (!*err)
		*err = -ENOENT;
	json_object_put(found);
	return op;
}

struct json_object *op_all(struct door *door, int *err)
{
	struct json_object *found = json_object_new_array();

	*err = door_dump(door, door_request(REPATH_CMD_OP_GET), take_op, found);
	if (!*err)
		return found;
	json_object_put(found);
	return NULL;
}

static void take_id(uint8_t cmd, struct nlattr **tb, void *arg)
{
	uint32_t *id = arg;

	(void)cmd;
	if (tb[REPATH_A_OP_ID])
		*id = nla_get_u32(tb[REPATH_A_OP_ID]);
}

static int start(struct door *door, struct nl_msg *msg, const struct op_request *r, uint32_t *id)
{
	uint32_t got = 0;
	int err;

	if (r->timeout_ms)
		nla_put_u32(msg, REPATH_A_TIMEOUT_MS, r->timeout_ms);
	err = door_do(door, msg, take_id, &got);
	if (!err && !got)
		err = -EBADMSG;
	*id = got;
	return err;
}

int op_suspend(struct door *door, const struct op_request *r, uint32_t *id)
{
	struct nl_msg *msg = door_request(REPATH_CMD_SUSPEND);

	nla_put_string(msg, REPATH_A_DEV_NAME, r->dev);
	if (r->force)
		nla_put_flag(msg, REPATH_A_FORCE);
	if (r->dry_run)
		nla_put_flag(msg, REPATH_A_DRY_RUN);
	return start(door, msg, r, id);
}

int op_resume(struct door *door, const struct op_request *r, uint32_t *id)
{
	struct nl_msg *msg = door_request(REPATH_CMD_RESUME);

	if (r->id)
		nla_put_u32(msg, REPATH_A_OP_ID, r->id);
	else
		nla_put_string(msg, REPATH_A_OLD_DEV_NAME, r->dev);
	if (r->on)
		nla_put_string(msg, REPATH_A_DEV_NAME, r->on);
	return start(door, msg, r, id);
}

int op_abort(struct door *door, uint32_t id)
{
	struct nl_msg *msg = door_request(REPATH_CMD_ABORT);

	nla_put_u32(msg, REPATH_A_OP_ID, id);
	return door_do(door, msg, NULL, NULL);
}
