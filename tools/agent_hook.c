// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Hooks: programs of the administrator that go with a device's leaving and coming. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent.h"
#include "out.h"

#define PIPE_HOLDS	65536	/* pipe(7) */

static void run_hook(const char *path, const char *dev, int out)
{
	char *argv[] = { (char *)path, (char *)dev, NULL };
	char *env[] = { (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execve(path, argv, env);
	dprintf(out, "%s: %s\n", path, strerror(errno));
	_exit(127);
}

void agent_hook_start(struct agent *ag, struct json_object *id, const char *hook,
		      const char *dev, uint64_t timeout_ms)
{
	char path[512];
	struct job *job;
	int fds[2];

	snprintf(path, sizeof(path), "%s/%s", ag->hooks ? ag->hooks : "", hook);
	if (!ag->hooks || access(path, F_OK)) {
		/* Devices of real hardware come and go by themselves. */
		struct json_object *o = agent_answer(id, true);

		out_flag(o, "hook", false);
		port_send(&ag->port, o);
		return;
	}
	job = agent_job(ag, id, JOB_HOOK, timeout_ms);
	if (!job)
		return;
	if (pipe2(fds, O_CLOEXEC)) {
		agent_refuse(ag, id, "%s: %s", path, strerror(errno));
		agent_job_end(job);
		return;
	}
	job->pid = fork();
	if (!job->pid)
		run_hook(path, dev, fds[1]);
	close(fds[1]);
	job->pipe = fds[0];
	fcntl(job->pipe, F_SETFL, O_NONBLOCK);
	snprintf(job->dev, sizeof(job->dev), "%s", dev);
	if (job->pid < 0) {
		agent_refuse(ag, id, "%s: %s", path, strerror(errno));
		agent_job_end(job);
	}
}

/* As much as a pipe holds, which is all that there is of one that has ended: who never stops is not read for ever. */
static void read_output(struct job *job)
{
	char rest[4096];
	ssize_t n;

	for (size_t all = 0; all < PIPE_HOLDS; all += n) {
		size_t room = sizeof(job->output) - 1 - job->len;

		/* What is beyond the room is read too: a full pipe would stop the hook. */
		n = read(job->pipe, room ? job->output + job->len : rest,
			 room ? room : sizeof(rest));
		if (n <= 0)
			return;
		if (room)
			job->len += n;
	}
}

static void answer(struct agent *ag, struct job *job, int status)
{
	struct json_object *o;

	job->output[job->len] = 0;
	while (job->len && job->output[job->len - 1] == '\n')
		job->output[--job->len] = 0;
	o = agent_answer(job->id, !job->late && WIFEXITED(status) && !WEXITSTATUS(status));
	out_flag(o, "hook", true);
	if (job->late)
		out_text(o, "error", "the hook took too long and was killed");
	else if (WIFSIGNALED(status))
		out_text(o, "error", "the hook was killed by a signal");
	else if (WEXITSTATUS(status))
		out_text(o, "error", job->len ? job->output : "the hook failed without a word");
	out_text(o, "output", job->output);
	port_send(&ag->port, o);
}

/* One that a driver holds in the kernel does not even die when it is killed: nobody waits for that. */
void agent_hook_look(struct agent *ag, struct job *job)
{
	bool ended;
	int status = 0;

	read_output(job);
	ended = waitpid(job->pid, &status, WNOHANG) == job->pid;
	if (ended)
		read_output(job);
	if (!job->late && !ended && job->deadline && agent_now() >= job->deadline) {
		kill(-job->pid, SIGKILL);
		kill(job->pid, SIGKILL);	/* before it had its own group */
		job->late = true;
		answer(ag, job, status);
	}
	if (!ended)
		return;
	if (!job->late)
		answer(ag, job, status);
	agent_job_end(job);
}
