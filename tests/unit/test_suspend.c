// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath suspend and resume that are interrupted: tools/suspend.c, with a module that is played here. */
#include <signal.h>
#include <sys/wait.h>
#include "check.h"
#include "../../tools/command.h"
#include "../../tools/op.h"
#include "../../tools/plan.h"

#define OP	7

/* At which look the signals come, and when the operation is over. */
static int signals_at_start, signals_at_look, looks_until_end;
static int looks, second_at_look, starts, aborts, resumes;

static void signals(int n)
{
	while (n--)
		raise(n % 2 ? SIGTERM : SIGINT);
}

int door_listen(struct door *door, const char *group)
{
	(void)door;
	(void)group;
	return 0;
}

int door_event_fd(const struct door *door)
{
	(void)door;
	return -1;
}

int door_events(struct door *door, door_msg_fn fn, void *arg)
{
	(void)door;
	(void)fn;
	(void)arg;
	return -ENOBUFS;
}

void door_nest(struct nlattr *nest, struct nlattr **tb)
{
	(void)nest;
	(void)tb;
}

const char *door_error(const struct door *door)
{
	(void)door;
	return "it is not to";
}

int door_exit_status(int err)
{
	(void)err;
	return EXIT_FAILED;
}

int op_suspend(struct door *door, const struct op_request *r, uint32_t *id)
{
	(void)door;
	(void)r;
	*id = OP;
	starts++;
	signals(signals_at_start);
	return 0;
}

int op_resume(struct door *door, const struct op_request *r, uint32_t *id)
{
	resumes++;
	return op_suspend(door, r, id);
}

int op_abort(struct door *door, uint32_t id)
{
	(void)door;
	CHECK_EQ(id, OP);
	aborts++;
	return 0;
}

void op_watch_start(struct op_watch *w, struct door *door, enum op_goal goal, const struct op_request *r)
{
	(void)door;
	(void)r;
	*w = (struct op_watch){ .goal = goal };
}

bool op_watch_look(struct op_watch *w, struct json_object *op, op_stage_fn fn, void *arg)
{
	(void)w;
	(void)op;
	(void)fn;
	(void)arg;
	return looks == looks_until_end;
}

void op_watch_end(struct op_watch *w)
{
	(void)w;
}

struct json_object *op_get(struct door *door, uint32_t id, int *err)
{
	(void)door;
	(void)err;
	CHECK_EQ(id, OP);
	CHECK(looks < 100, "it does not end");
	if (++looks == 1)
		signals(signals_at_look);
	if (looks == second_at_look)
		signals(1);
	return json_object_new_object();
}

bool op_reached(enum op_goal goal, struct json_object *op)
{
	(void)goal;
	(void)op;
	return !aborts;
}

void op_advice(enum op_goal goal, struct json_object *op, char *text, size_t size)
{
	(void)goal;
	(void)op;
	snprintf(text, size, "try it again");
}

const char *op_text(struct json_object *op, const char *key)
{
	(void)op;
	(void)key;
	return "";
}

struct json_object *plan_of(struct door *door, const char *dev, bool force, struct json_object *op)
{
	(void)door;
	(void)dev;
	(void)force;
	(void)op;
	return NULL;
}

void plan_print(struct json_object *plan)
{
	(void)plan;
}

/* In a process of its own: what it does to signals ends with it. What was asked of the module is in the status. */
static void run(bool resume, int status, int n_aborts)
{
	char *words[] = { "vhca0", NULL };
	struct args a = { 1, words, "" };
	pid_t pid = fork();
	int found;

	if (!pid) {
		found = resume ? cmd_resume(NULL, &a) : cmd_suspend(NULL, &a);
		CHECK(starts == 1 && resumes == resume);
		_exit(found * 10 + aborts);
	}
	CHECK(waitpid(pid, &found, 0) == pid);
	CHECK(WIFEXITED(found), "ended by signal %d", WTERMSIG(found));
	CHECK_EQ(WEXITSTATUS(found), status * 10 + n_aborts);
}

int main(void)
{
	looks_until_end = 5;
	run(false, 0, 0);
	run(true, 0, 0);
	/* One signal or several at once: the operation is taken back, and its end is waited for. */
	for (int n = 1; n <= 3; n++) {
		signals_at_look = n;
		run(false, EXIT_FAILED, 1);
	}
	/* One more, and it is not waited for. */
	second_at_look = 3;
	run(false, EXIT_GOES_ON, 1);
	second_at_look = 0;
	run(true, EXIT_GOES_ON, 0);
	/* Before it is known that it has begun. */
	signals_at_look = 0;
	for (int n = 1; n <= 2; n++) {
		signals_at_start = n;
		run(false, EXIT_FAILED, 1);
		run(true, EXIT_GOES_ON, 0);
	}
	return 0;
}
