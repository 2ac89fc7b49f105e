// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Waiting until an RDMA device is there and one of its ports is ACTIVE. */
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include "agent.h"
#include "out.h"

/* How a device that a resume shall go to looks now. */
enum readiness { ABSENT, DOWN, ACTIVE };

static enum readiness readiness(const char *dev)
{
	enum readiness found = ABSENT;
	char pattern[160];
	glob_t ports;

	/* A name has no characters that are special here: dev_name_ok. */
	snprintf(pattern, sizeof(pattern), "/sys/class/infiniband/%s/ports/*/state", dev);
	if (glob(pattern, 0, NULL, &ports))
		return ABSENT;
	for (size_t i = 0; i < ports.gl_pathc && found != ACTIVE; i++) {
		FILE *f = fopen(ports.gl_pathv[i], "re");
		int state = 0;

		found = DOWN;
		/* "4: ACTIVE": the number is the standard's (IBA 1.2.1 vol 1, 14.2.5.6) */
		if (f && fscanf(f, "%d", &state) == 1 && state == 4)
			found = ACTIVE;
		if (f)
			fclose(f);
	}
	globfree(&ports);
	return found;
}

void agent_wait_look(struct agent *ag, struct job *job)
{
	enum readiness is = readiness(job->dev);

	if (is == ACTIVE) {
		struct json_object *o = agent_answer(job->id, true);

		out_text(o, "dev", job->dev);
		port_send(&ag->port, o);
	} else if (agent_now() >= job->deadline) {
		agent_refuse(ag, job->id, "device %s %s", job->dev,
			     is == ABSENT ? "has not come" : "is there, but no port is ACTIVE");
	} else {
		return;
	}
	agent_job_end(job);
}
