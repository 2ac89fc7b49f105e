// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the host may ask for. Nothing of a request reaches a shell, and only these words work. */
#include <stdio.h>
#include <string.h>
#include "agent.h"
#include "out.h"
#include "show.h"
#include "version.h"

#define WAIT_MS		30000	/* for a device or a hook, if the host names no time */

/* A request, taken apart. */
struct request {
	struct json_object *id;
	struct json_object *object;
	const char *wrong;	/* the first member that is not as it should be */
};

static struct json_object *member(struct request *q, const char *key, enum json_type type)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(q->object, key, &value))
		return NULL;
	if (json_object_get_type(value) == type)
		return value;
	q->wrong = key;
	return NULL;
}

static const char *device(struct request *q, const char *key)
{
	struct json_object *value = member(q, key, json_type_string);

	if (!value)
		return NULL;
	/* The length too: a NUL inside would hide what follows it. */
	if (dev_name_ok(json_object_get_string(value)) &&
	    strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value))
		return json_object_get_string(value);
	q->wrong = key;
	return NULL;
}

static uint32_t milliseconds(struct request *q)
{
	struct json_object *value = NULL;
	double s;

	if (!json_object_object_get_ex(q->object, "timeout", &value))
		return 0;
	s = json_object_get_double(value);
	if ((json_object_is_type(value, json_type_int) ||
	     json_object_is_type(value, json_type_double)) && s >= 0.001 && s <= 86400)
		return s * 1000;
	q->wrong = "timeout";
	return 0;
}

static uint32_t operation(struct request *q)
{
	struct json_object *value = member(q, "op", json_type_int);
	int64_t id = value ? json_object_get_int64(value) : 0;

	if (value && (id < 1 || id > UINT32_MAX))
		q->wrong = "op";
	return id;
}

static bool refused(struct agent *ag, struct request *q, const char *needed)
{
	if (q->wrong)
		agent_refuse(ag, q->id, "\"%s\" is not as it should be", q->wrong);
	else if (needed)
		agent_refuse(ag, q->id, "\"%s\" is missing", needed);
	return q->wrong || needed;
}

static void do_ping(struct agent *ag, struct request *q)
{
	port_send(&ag->port, agent_answer(q->id, true));
}

static void do_version(struct agent *ag, struct request *q)
{
	struct json_object *o;
	struct door *door = agent_door(ag, q->id);

	if (!door)
		return;
	o = agent_answer(q->id, true);
	if (version_object(door, o)) {
		json_object_put(o);
		agent_refuse(ag, q->id, "%s", door_error(door));
		agent_door_failed(ag);
		return;
	}
	port_send(&ag->port, o);
}

static void take_device(uint8_t cmd, struct nlattr **tb, void *arg)
{
	(void)cmd;
	if (tb[REPATH_A_DEVICE])
		json_object_array_add(arg, device_object(tb[REPATH_A_DEVICE]));
}

static void do_devices(struct agent *ag, struct request *q)
{
	struct json_object *list, *o;
	struct door *door = agent_door(ag, q->id);

	if (!door)
		return;
	list = json_object_new_array();
	if (door_dump(door, door_request(REPATH_CMD_DEVICE_GET), take_device, list)) {
		json_object_put(list);
		agent_refuse(ag, q->id, "%s", door_error(door));
		agent_door_failed(ag);
		return;
	}
	o = agent_answer(q->id, true);
	json_object_object_add(o, "devices", list);
	port_send(&ag->port, o);
}

static void do_status(struct agent *ag, struct request *q)
{
	uint32_t id = operation(q);
	struct json_object *found, *o;
	struct door *door;
	int err;

	if (refused(ag, q, NULL))
		return;
	door = agent_door(ag, q->id);
	if (!door)
		return;
	found = id ? op_get(door, id, &err) : op_all(door, &err);
	if (!found) {
		agent_refuse(ag, q->id, "%s", door_error(door));
		agent_door_failed(ag);
		return;
	}
	o = agent_answer(q->id, true);
	json_object_object_add(o, id ? "op" : "ops", found);
	port_send(&ag->port, o);
}

static void do_suspend(struct agent *ag, struct request *q)
{
	struct op_request r = { .dev = device(q, "dev"), .timeout_ms = milliseconds(q) };

	r.force = json_object_get_boolean(member(q, "force", json_type_boolean));
	r.dry_run = json_object_get_boolean(member(q, "dry-run", json_type_boolean));
	if (!refused(ag, q, r.dev ? NULL : "dev"))
		agent_op_start(ag, q->id, OP_GOAL_SUSPEND, &r);
}

static void do_resume(struct agent *ag, struct request *q)
{
	struct op_request r = { .dev = device(q, "dev"), .on = device(q, "on"),
				.id = operation(q), .timeout_ms = milliseconds(q) };

	if (!refused(ag, q, r.dev || r.id ? NULL : "op"))
		agent_op_start(ag, q->id, OP_GOAL_RESUME, &r);
}

static void do_abort(struct agent *ag, struct request *q)
{
	struct op_request r = { .id = operation(q) };

	if (!refused(ag, q, r.id ? NULL : "op"))
		agent_op_start(ag, q->id, OP_GOAL_ABORT, &r);
}

static void do_wait_device(struct agent *ag, struct request *q)
{
	const char *dev = device(q, "dev");
	uint32_t ms = milliseconds(q);
	struct job *job;

	if (refused(ag, q, dev ? NULL : "dev"))
		return;
	job = agent_job(ag, q->id, JOB_DEVICE, ms ? ms : WAIT_MS);
	if (job)
		snprintf(job->dev, sizeof(job->dev), "%s", dev);
}

static void do_hook(struct agent *ag, struct request *q, const char *hook)
{
	const char *dev = device(q, "dev");
	uint32_t ms = milliseconds(q);

	if (!refused(ag, q, dev ? NULL : "dev"))
		agent_hook_start(ag, q->id, hook, dev, ms ? ms : WAIT_MS);
}

static void do_device_gone(struct agent *ag, struct request *q)
{
	do_hook(ag, q, "device-gone");
}

static void do_device_new(struct agent *ag, struct request *q)
{
	do_hook(ag, q, "device-new");
}

/* Whole: all digits, and no more of them than it has room for. */
static bool from_hex(const char *hex, uint8_t notice[REPATH_NOTICE_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	if (strlen(hex) != 2 * REPATH_NOTICE_SIZE || strspn(hex, digits) != 2 * REPATH_NOTICE_SIZE)
		return false;
	for (size_t i = 0; i < REPATH_NOTICE_SIZE; i++, hex += 2)
		notice[i] = (strchr(digits, hex[0]) - digits) << 4 | (strchr(digits, hex[1]) - digits);
	return true;
}

/* What the subnet manager has said to the port that we share; without it the host begins to tell. */
static void do_relay(struct agent *ag, struct request *q)
{
	struct json_object *port = member(q, "port", json_type_int);
	struct json_object *hex = member(q, "notice", json_type_string);
	const char *dev = device(q, "dev");
	uint8_t notice[REPATH_NOTICE_SIZE];
	struct json_object *o;
	struct nl_msg *msg;
	struct door *door;
	int err;

	if (port && (json_object_get_int64(port) < 1 || json_object_get_int64(port) > 254))
		q->wrong = "port";
	if (hex && !from_hex(json_object_get_string(hex), notice))
		q->wrong = "notice";
	if (refused(ag, q, dev ? NULL : "dev"))
		return;
	door = agent_door(ag, q->id);
	if (!door)
		return;
	msg = door_request(REPATH_CMD_RELAY);
	nla_put_string(msg, REPATH_A_DEV_NAME, dev);
	nla_put_u32(msg, REPATH_A_PORT, port ? json_object_get_int64(port) : 1);
	if (hex)
		nla_put(msg, REPATH_A_NOTICE, sizeof(notice), notice);
	err = door_do(door, msg, NULL, NULL);
	o = agent_answer(q->id, !err);
	if (err) {
		out_text(o, "error", door_error(door));
		out_text(o, "code", strerrorname_np(-err));
	}
	port_send(&ag->port, o);
	if (err)
		agent_door_failed(ag);
}

/* Where the peers were, and are: the host has moved them, too. */
static void do_moved(struct agent *ag, struct request *q)
{
	static const struct {
		const char *key;
		enum repath_attr attr;
		enum json_type type;
	} places[] = {
		{ "dgid", REPATH_A_DGID, json_type_string }, { "dlid", REPATH_A_DLID, json_type_int },
		{ "to", REPATH_A_NEW_DGID, json_type_string }, { "lid", REPATH_A_NEW_DLID, json_type_int },
	};
	struct nl_msg *msg = door_request(REPATH_CMD_CONN_MOVED);
	const char *dev = device(q, "dev");
	struct json_object *value, *o;
	unsigned char gid[16];
	struct door *door;
	int err;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		value = member(q, places[i].key, places[i].type);
		if (value && places[i].type == json_type_string && gid_of(json_object_get_string(value), gid))
			nla_put(msg, places[i].attr, sizeof(gid), gid);
		else if (value && places[i].type == json_type_int && json_object_get_int64(value) > 0 &&
			 json_object_get_int64(value) <= 0xbfff)
			nla_put_u32(msg, places[i].attr, json_object_get_int64(value));
		else if (value)
			q->wrong = places[i].key;
	}
	door = refused(ag, q, dev ? NULL : "dev") ? NULL : agent_door(ag, q->id);
	if (!door) {
		nlmsg_free(msg);
		return;
	}
	nla_put_string(msg, REPATH_A_DEV_NAME, dev);
	o = agent_answer(q->id, true);
	err = connections_moved(door, msg, o);
	if (err) {
		json_object_put(o);
		agent_refuse(ag, q->id, "%s", door_error(door));
		agent_door_failed(ag);
		return;
	}
	port_send(&ag->port, o);
}

static const struct {
	const char *name;
	void (*run)(struct agent *ag, struct request *q);
} requests[] = {
	{ "ping", do_ping },
	{ "version", do_version },
	{ "devices", do_devices },
	{ "status", do_status },
	{ "suspend", do_suspend },
	{ "resume", do_resume },
	{ "abort", do_abort },
	{ "wait-device", do_wait_device },
	{ "device-gone", do_device_gone },
	{ "device-new", do_device_new },
	{ "relay", do_relay },
	{ "moved", do_moved },
};

static void dispatch(struct agent *ag, struct request *q)
{
	struct json_object *cmd = member(q, "cmd", json_type_string);

	if (refused(ag, q, cmd ? NULL : "cmd"))
		return;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (!strcmp(requests[i].name, json_object_get_string(cmd))) {
			requests[i].run(ag, q);
			return;
		}
	}
	agent_refuse(ag, q->id, "\"%.40s\" is not a command of the agent",
		     json_object_get_string(cmd));
}

void agent_request(void *arg, const char *line, size_t len)
{
	struct json_tokener *tok;
	struct agent *ag = arg;
	struct request q = { 0 };

	if (!line) {
		agent_refuse(ag, NULL, "a line of more than %d bytes", PORT_LINE - 1);
		return;
	}
	if (len && line[len - 1] == '\r')
		len--;
	if (!len)
		return;		/* a host begins with it, to end what another one left half said */
	tok = json_tokener_new();
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	q.object = json_tokener_parse_ex(tok, line, len);
	if (json_tokener_get_error(tok) == json_tokener_success &&
	    json_tokener_get_parse_end(tok) == len &&
	    json_object_is_type(q.object, json_type_object)) {
		if (!json_object_object_get_ex(q.object, "id", &q.id) ||
		    json_object_is_type(q.id, json_type_int) ||
		    json_object_is_type(q.id, json_type_string))
			dispatch(ag, &q);
		else
			agent_refuse(ag, NULL, "\"id\" is neither a number nor a string");
	} else {
		agent_refuse(ag, NULL, "not one JSON object on a line");
	}
	json_object_put(q.object);
	json_tokener_free(tok);
}
