/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work of the agent that takes time: operations, waiting for a device, hooks. */
#ifndef REPATH_TOOL_AGENT_H
#define REPATH_TOOL_AGENT_H

#include <stdint.h>
#include <sys/types.h>
#include "args.h"
#include "op.h"
#include "port.h"

#define JOBS		16
#define HOOK_OUTPUT	4096

enum job_kind { JOB_NONE, JOB_OP, JOB_DEVICE, JOB_HOOK };

/**
 * struct job - one request that is being worked on
 * @kind: JOB_NONE: a free place
 * @id: the request's, or NULL
 * @deadline: milliseconds of CLOCK_BOOTTIME, 0: none
 * @watch: JOB_OP
 * @state: JOB_OP: as told last
 * @dev: JOB_DEVICE
 * @pid: JOB_HOOK
 * @late: JOB_HOOK: was killed and the request answered; the process is still there
 * @pipe: JOB_HOOK: what it says
 * @output: JOB_HOOK: the first of that
 * @len: bytes of it
 */
struct job {
	enum job_kind kind;
	struct json_object *id;
	uint64_t deadline;
	struct op_watch watch;
	char state[24];
	char dev[DEV_NAME_LEN];
	pid_t pid;
	bool late;
	int pipe;
	char output[HOOK_OUTPUT];
	size_t len;
};

/**
 * struct agent - all of it
 * @port: to the host
 * @door: to the module; NULL after it failed, to be opened again
 * @hooks: directory of hooks, or NULL
 * @jobs: under way
 */
struct agent {
	struct port port;
	struct door *door;
	const char *hooks;
	struct job jobs[JOBS];
};

uint64_t agent_now(void);

/* An answer to the request @id, with "ok": to be completed and given to port_send. */
struct json_object *agent_answer(struct json_object *id, bool ok);
void agent_refuse(struct agent *ag, struct json_object *id, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A door that listens to events, or NULL with the request @id refused. */
struct door *agent_door(struct agent *ag, struct json_object *id);
/* The module may have been unloaded and loaded again: the next request opens another door. */
void agent_door_failed(struct agent *ag);

/* A place for a job of request @id, or NULL with the request refused. */
struct job *agent_job(struct agent *ag, struct json_object *id, enum job_kind kind,
		      uint64_t timeout_ms);
void agent_job_end(struct job *job);

/* agent_hook.c */
void agent_hook_start(struct agent *ag, struct json_object *id, const char *hook,
		      const char *dev, uint64_t timeout_ms);
void agent_hook_look(struct agent *ag, struct job *job);

/* agent_wait.c */
void agent_wait_look(struct agent *ag, struct job *job);

/* agent_op.c */
void agent_op_start(struct agent *ag, struct json_object *id, enum op_goal goal,
		    const struct op_request *r);
void agent_op_look(struct agent *ag, struct job *job);

/* agent_request.c: one line from the host */
void agent_request(void *agent, const char *line, size_t len);

#endif /* REPATH_TOOL_AGENT_H */
