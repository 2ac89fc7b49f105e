// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * guestd: the test bed's hand inside a guest. It is process 1 there.
 *
 * One virtio-serial port carries frames both ways:
 *
 *   host -> guest   RUN    payload: a shell command, started as job JOB
 *                   INPUT  payload: bytes for the job's standard input; empty: end of it
 *                   KILL   payload: a signal number, for the job's whole process group
 *                   WAKE   payload: struct wake; for a guest that was started from a saved state
 *   guest -> host   OUTPUT payload: bytes of the job's standard output and error
 *                   EXIT   payload: the wait status of the job's shell
 *                   HELLO  once, when the port is open; payload: nothing
 *
 * The port survives a live migration, and so do the jobs. Nothing here blocks except a write to
 * the port itself, whose other end always reads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_JOBS	64
#define MAX_PAYLOAD	(1 << 16)

enum { RUN = 1, INPUT, KILL, WAKE };
enum { OUTPUT = 1, EXIT, HELLO };

struct frame {
	uint32_t job;
	uint32_t kind;
	uint32_t length;
};

struct wake {
	uint64_t now_ns;	/* since the epoch */
	char seed[32];
	char hostname[64];
};

struct job {
	uint32_t id;
	pid_t pid;	/* 0: slot is free or the shell is gone */
	int in, out;	/* our ends of its pipes, -1: closed */
	char *input;	/* not yet taken by the job */
	size_t input_len;
	int input_end;	/* close `in` once `input` is written */
};

static struct job jobs[MAX_JOBS];
static int port;

static void die(const char *what)
{
	perror(what);
	exit(1);	/* process 1 ends: the kernel panics, the bed sees QEMU go */
}

static void send_frame(uint32_t job, uint32_t kind, const void *payload, uint32_t length)
{
	static char buf[sizeof(struct frame) + MAX_PAYLOAD];
	struct frame f = { job, kind, length };
	size_t total = sizeof(f) + length, done = 0;

	memcpy(buf, &f, sizeof(f));
	memcpy(buf + sizeof(f), payload, length);
	while (done < total) {
		ssize_t n = write(port, buf + done, total - done);

		if (n > 0)
			done += n;
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			die("write to the port");
	}
}

static struct job *find_job(uint32_t id)
{
	for (int i = 0; i < MAX_JOBS; i++)
		if (jobs[i].id == id)
			return &jobs[i];
	return NULL;
}

static void close_input(struct job *j)
{
	if (j->in >= 0)
		close(j->in);
	j->in = -1;
	free(j->input);
	j->input = NULL;
	j->input_len = 0;
}

static void free_if_done(struct job *j)
{
	if (j->id && !j->pid && j->out < 0) {
		close_input(j);
		memset(j, 0, sizeof(*j));
	}
}

static void run(uint32_t id, char *command)
{
	struct job *j = find_job(0);
	int in[2], out[2];

	if (!j || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		die("no room for another job");
	*j = (struct job){ .id = id, .in = in[1], .out = out[0] };
	fcntl(j->in, F_SETFL, O_NONBLOCK);
	fcntl(j->out, F_SETFL, O_NONBLOCK);
	j->pid = fork();
	if (j->pid < 0)
		die("fork");
	if (!j->pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		setsid();
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(out[1], 2);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
}

/* What two guests that were started from one state must not have in common, and what time it is. */
static void wake(const char *payload)
{
	struct timespec now;
	struct wake w;
	int fd;

	memcpy(&w, payload, sizeof(w));
	now.tv_sec = w.now_ns / 1000000000;
	now.tv_nsec = w.now_ns % 1000000000;
	fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, w.seed, sizeof(w.seed)) != sizeof(w.seed) || ioctl(fd, RNDRESEEDCRNG))
		die("seed");
	close(fd);
	if (clock_settime(CLOCK_REALTIME, &now) || sethostname(w.hostname, strnlen(w.hostname, 64)))
		die("clock and name");
}

static void handle(const struct frame *f, char *payload)
{
	struct job *j = f->kind == RUN ? NULL : find_job(f->job);
	char *grown;

	switch (f->kind) {
	case RUN:
		run(f->job, payload);
		break;
	case INPUT:
		if (!j || j->in < 0)
			break;
		if (!f->length) {
			j->input_end = 1;
			break;
		}
		grown = realloc(j->input, j->input_len + f->length);
		if (!grown)
			die("realloc");
		j->input = grown;
		memcpy(j->input + j->input_len, payload, f->length);
		j->input_len += f->length;
		break;
	case KILL:
		if (j && j->pid)
			kill(-j->pid, atoi(payload));
		break;
	case WAKE:
		if (f->length == sizeof(struct wake))
			wake(payload);
		break;
	}
}

static void read_port(void)
{
	static char buf[sizeof(struct frame) + MAX_PAYLOAD + 1];
	static size_t have;
	struct frame f;
	ssize_t n = read(port, buf + have, sizeof(buf) - 1 - have);

	if (n <= 0)
		return;
	have += n;
	while (have >= sizeof(f)) {
		char *payload = buf + sizeof(f), saved;
		size_t total;

		memcpy(&f, buf, sizeof(f));
		if (f.length > MAX_PAYLOAD)
			die("the host sent no frame");
		total = sizeof(f) + f.length;
		if (have < total)
			break;
		saved = payload[f.length];
		payload[f.length] = 0;
		handle(&f, payload);
		payload[f.length] = saved;
		have -= total;
		memmove(buf, buf + total, have);
	}
}

static void read_output(struct job *j)
{
	static char buf[MAX_PAYLOAD];
	ssize_t n;

	while ((n = read(j->out, buf, sizeof(buf))) > 0)
		send_frame(j->id, OUTPUT, buf, n);
	if (n == 0 || errno != EAGAIN) {
		close(j->out);
		j->out = -1;
	}
}

static void write_input(struct job *j)
{
	ssize_t n = j->input_len ? write(j->in, j->input, j->input_len) : 0;

	if (n < 0 && errno != EAGAIN) {
		close_input(j);
		return;
	}
	if (n > 0) {
		j->input_len -= n;
		memmove(j->input, j->input + n, j->input_len);
	}
	if (!j->input_len && j->input_end)
		close_input(j);
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (int i = 0; i < MAX_JOBS; i++) {
			struct job *j = &jobs[i];

			if (j->pid != pid)
				continue;
			/* What it wrote goes first; children that it left may go on writing. */
			if (j->out >= 0)
				read_output(j);
			send_frame(j->id, EXIT, &status, sizeof(status));
			j->pid = 0;
			close_input(j);
			free_if_done(j);
		}
	}
}

static void poll_once(int children)
{
	struct pollfd fds[2 + 2 * MAX_JOBS] = {
		{ .fd = port, .events = POLLIN },
		{ .fd = children, .events = POLLIN },
	};

	for (int i = 0; i < MAX_JOBS; i++) {
		struct job *j = &jobs[i];
		int writes = j->id && (j->input_len || j->input_end);

		fds[2 + 2 * i] = (struct pollfd){ .fd = j->id ? j->out : -1, .events = POLLIN };
		fds[3 + 2 * i] = (struct pollfd){ .fd = writes ? j->in : -1, .events = POLLOUT };
	}
	if (poll(fds, 2 + 2 * MAX_JOBS, -1) < 0)
		return;
	if (fds[0].revents & POLLIN)
		read_port();
	else if (fds[0].revents)
		usleep(20000);	/* no host at the other end: POLLHUP would spin */
	for (int i = 0; i < MAX_JOBS; i++) {
		struct job *j = &jobs[i];

		if (fds[2 + 2 * i].revents && j->out >= 0)
			read_output(j);
		if (fds[3 + 2 * i].revents && j->in >= 0)
			write_input(j);
		free_if_done(j);
	}
	if (fds[1].revents) {
		struct signalfd_siginfo si;

		if (read(children, &si, sizeof(si)) == sizeof(si))
			reap();
	}
}

int main(int argc, char **argv)
{
	struct rlimit locked = { RLIM_INFINITY, RLIM_INFINITY };
	sigset_t set;
	int children;

	port = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	if (port < 0)
		die("guestd PORT");
	setrlimit(RLIMIT_MEMLOCK, &locked);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	children = signalfd(-1, &set, SFD_CLOEXEC);
	send_frame(0, HELLO, "", 0);
	for (;;)
		poll_once(children);
}
