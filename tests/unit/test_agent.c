// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The agent's port as virtio-serial shows it, and its hooks. What poll finds is said here. */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "check.h"
#include "../../tools/agent.h"

static struct agent agent;
static char dir[] = "/tmp/test_agent.XXXXXX";
static int host = -1;
static pid_t unkillable;
static int killed;

/* In place of libc's: a process that sleeps in a driver takes no signal. */
int kill(pid_t pid, int sig)
{
	(void)sig;
	CHECK(pid == unkillable || pid == -unkillable);
	killed++;
	return 0;
}

/* The guest knows of a host. */
static void start(void)
{
	int fds[2];

	if (host >= 0) {
		close(host);
		close(agent.port.fd);
	}
	free(agent.port.out);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	host = fds[1];
	agent.port = (struct port){ .fd = fds[0] };
	port_serve(&agent.port, 0, agent_request, &agent);
}

static void say(const char *text)
{
	CHECK(write(host, text, strlen(text)) == (ssize_t)strlen(text));
}

static void serve(short revents)
{
	port_serve(&agent.port, revents, agent_request, &agent);
}

static const char *heard(void)
{
	static char text[4096];
	ssize_t n = read(host, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = 0;
	return text;
}

/* As long as virtio-serial does not know of a host, it takes nothing: here, as there is no room. */
static void stop_taking(void)
{
	static const char much[4096];

	while (write(agent.port.fd, much, sizeof(much)) > 0)
		;
	while (write(agent.port.fd, much, 1) > 0)
		;
}

static void take_again(void)
{
	char much[4096];

	while (read(host, much, sizeof(much)) > 0)
		;
}

/* A host's request overtakes the news of its coming: it is answered when that has come. */
static void t_overtaken(void)
{
	struct pollfd fd;

	start();
	serve(POLLIN | POLLHUP);		/* the last one has left */
	CHECK(port_poll(&agent.port, &fd) > 0, "it would spin");
	say("\n{\"id\":1,\"cmd\":\"ping\"}\n");
	stop_taking();
	serve(POLLIN | POLLHUP);
	CHECK(port_poll(&agent.port, &fd) > 0, "it would spin");
	serve(POLLIN | POLLHUP);		/* still not told, nothing to read */
	take_again();
	serve(POLLOUT);
	CHECK(!strcmp(heard(), "{\"id\":1,\"ok\":true}\n"));
}

/* The same when the last host's leaving, too, was not seen before. */
static void t_overtaken_at_once(void)
{
	start();
	stop_taking();
	say("{\"id\":6,\"cmd\":\"ping\"}\n");
	serve(POLLIN);
	CHECK(agent.port.pending, "the last host's answer waits");
	say("\n{\"id\":7,\"cmd\":\"ping\"}\n");
	serve(POLLIN | POLLHUP);
	serve(POLLIN | POLLHUP);
	take_again();
	serve(POLLOUT);
	CHECK(!strcmp(heard(), "{\"id\":7,\"ok\":true}\n"));
}

/* In two parts, between which poll finds nothing. */
static void t_overtaken_in_parts(void)
{
	start();
	serve(POLLIN | POLLHUP);
	say("{\"id\":2,\"cmd\":");
	serve(POLLIN | POLLHUP);
	serve(POLLIN | POLLHUP);
	say("\"ping\"}\n");
	serve(POLLIN | POLLHUP);
	serve(0);
	CHECK(!strcmp(heard(), "{\"id\":2,\"ok\":true}\n"));
}

/* A job outlasts the time until the news. */
static void t_overtaken_job(void)
{
	start();
	serve(POLLIN | POLLHUP);
	say("{\"id\":3,\"cmd\":\"wait-device\",\"dev\":\"none\",\"timeout\":0.001}\n");
	serve(POLLIN | POLLHUP);
	serve(POLLIN | POLLHUP);
	CHECK(agent.jobs[0].kind == JOB_DEVICE);
	while (agent.jobs[0].kind)
		agent_wait_look(&agent, &agent.jobs[0]);
	serve(0);
	CHECK(strstr(heard(), "\"error\":\"device none has not come\""));
}

/* Another host hears nothing that was meant for the last one, and starts afresh. */
static void t_left(void)
{
	start();
	stop_taking();
	say("{\"id\":4,\"cmd\":\"ping\"}\n{\"id\":5,");
	serve(POLLIN);
	serve(POLLIN | POLLHUP);
	CHECK(!agent.port.pending && !agent.port.have && !agent.port.host);
	agent_refuse(&agent, NULL, "nobody is there to hear it");
	CHECK(!agent.port.pending);
	take_again();
	say("{\"id\":6,\"cmd\":\"ping\"}\n");
	serve(POLLIN);
	CHECK(!strcmp(heard(), "{\"id\":6,\"ok\":true}\n"));
}

/* The port itself is taken away, and comes again under its name. */
static void t_port_comes_again(void)
{
	char path[64], line[64];
	struct port *p = &agent.port;
	struct pollfd fd;
	ssize_t n;

	start();
	snprintf(path, sizeof(path), "%s/port", dir);
	close(p->fd);
	p->fd = -1;
	p->path = path;
	port_poll(p, &fd);
	CHECK(fd.fd == -1);
	serve(0);
	CHECK(p->fd < 0 && p->empty && !p->host);
	CHECK(port_poll(p, &fd) > 0, "it would never look again");
	CHECK(!mkfifo(path, 0600));
	serve(0);
	CHECK(p->fd >= 0 && p->empty && !p->host);
	serve(0);
	CHECK(p->host && !p->empty);
	agent_refuse(&agent, NULL, "x");
	n = read(p->fd, line, sizeof(line));	/* a pipe that is open both ways */
	CHECK(n > 0 && !strncmp(line, "{\"ok\":false,\"error\":\"x\"}\n", n));
	unlink(path);
}

/* A hook that does not die when it is killed is answered in time, and buried when it has ended. */
static void t_unkillable_hook(void)
{
	struct job *job = &agent.jobs[0];
	int end[2];

	start();
	CHECK(!pipe2(end, O_CLOEXEC));
	agent.hooks = dir;
	unkillable = fork();
	if (!unkillable) {
		char c;

		close(end[1]);
		_exit(read(end[0], &c, 1));	/* until the test wants its end */
	}
	*job = (struct job){ .kind = JOB_HOOK };
	job->pid = unkillable;
	job->pipe = open("/dev/null", O_RDONLY | O_CLOEXEC);
	job->deadline = 1;		/* long ago */
	alarm(10);			/* it hangs here if it waits for the end */
	agent_hook_look(&agent, job);
	alarm(0);
	CHECK_EQ(killed, 2);
	CHECK(strstr(heard(), "took too long and was killed"));
	agent_hook_look(&agent, job);
	CHECK(!*heard(), "answered twice");
	CHECK_EQ(killed, 2);
	CHECK(job->kind == JOB_HOOK);
	close(end[1]);
	while (job->kind) {
		agent_hook_look(&agent, job);
		usleep(1000);
	}
	CHECK(!*heard(), "answered twice");
	CHECK(waitpid(unkillable, NULL, WNOHANG) < 0, "a zombie is left");
}

/* One that does nothing but talk has no more time than any, and when it has ended all of it has been heard. */
static void t_talking_hook(void)
{
	struct job *job = &agent.jobs[0];
	int end[2], talk[2];
	char much[3000];

	start();
	CHECK(!pipe2(end, O_CLOEXEC));
	killed = 0;
	unkillable = fork();
	if (!unkillable) {
		char c;

		close(end[1]);
		_exit(read(end[0], &c, 1));
	}
	*job = (struct job){ .kind = JOB_HOOK };
	job->pid = unkillable;
	job->pipe = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	job->deadline = 1;
	alarm(10);			/* it hangs here if it reads to the end */
	agent_hook_look(&agent, job);
	alarm(0);
	CHECK_EQ(killed, 2);
	CHECK(strstr(heard(), "took too long and was killed"));
	close(end[1]);
	while (job->kind) {
		agent_hook_look(&agent, job);
		usleep(1000);
	}

	CHECK(!pipe2(talk, O_CLOEXEC | O_NONBLOCK));
	memset(much, 'x', sizeof(much));
	while (write(talk[1], much, sizeof(much)) > 0)
		;
	unkillable = fork();
	if (!unkillable)
		_exit(0);
	CHECK(!waitid(P_PID, unkillable, NULL, WEXITED | WNOWAIT));
	*job = (struct job){ .kind = JOB_HOOK };
	job->pid = unkillable;
	job->pipe = dup(talk[0]);
	close(end[0]);
	agent_hook_look(&agent, job);
	CHECK(!job->kind && strstr(heard(), "\"output\":\"xxx"));
	CHECK(read(talk[0], much, sizeof(much)) < 0 && errno == EAGAIN, "it was not read to the end");
	close(talk[0]);
	close(talk[1]);
}

int main(void)
{
	CHECK(mkdtemp(dir));
	t_overtaken();
	t_overtaken_at_once();
	t_overtaken_in_parts();
	t_overtaken_job();
	t_left();
	t_port_comes_again();
	t_unkillable_hook();
	t_talking_hook();
	rmdir(dir);
	return 0;
}
