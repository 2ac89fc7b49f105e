// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath run: a command with what it needs so that its connections can be moved. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "command.h"
#include "out.h"
#include "run_env.h"

/* As env(1) and the shells have them. */
#define EXIT_CANNOT	126
#define EXIT_NOT_FOUND	127

static const char *const whose[] = {
	[RUN_SET] = "set", [RUN_KEPT] = "kept", [RUN_WARN] = "warning",
};

static void tell(const struct run_setting *list, int n)
{
	for (int i = 0; i < n; i++)
		fprintf(stderr, "repath: run: %s%s=%s: %s\n",
			list[i].whose == RUN_SET ? "" :
			list[i].whose == RUN_KEPT ? "left as it is: " : "warning: ",
			list[i].name, list[i].value, list[i].why);
}

/* For a shell, whatever is in it. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	putchar('\'');
}

static void print_settings(const struct run_setting *list, int n)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < n; i++) {
		struct json_object *o = json_object_new_object();

		if (!out_json) {
			printf("export %s=", list[i].name);
			print_quoted(list[i].value);
			printf("\n");
		}
		out_text(o, "name", list[i].name);
		out_text(o, "value", list[i].value);
		out_text(o, "whose", whose[list[i].whose]);
		out_text(o, "why", list[i].why);
		json_object_array_add(array, o);
	}
	if (out_json)
		out_object(array);
	json_object_put(array);
}

/* The loader drops LD_PRELOAD when a program gets another user's rights. */
static void warn_setuid(const char *command)
{
	const char *path = getenv("PATH");
	char *dirs = strdup(path ? path : "/usr/bin:/bin"), *rest = dirs, *dir;
	struct stat st;

	if (!dirs)
		abort();
	while ((dir = strsep(&rest, ":"))) {
		char *file;
		bool found;

		if (asprintf(&file, "%s%s%s", strchr(command, '/') ? "" : dir,
			     strchr(command, '/') ? "" : "/", command) < 0)
			abort();
		found = !access(file, X_OK) && !stat(file, &st) && S_ISREG(st.st_mode);
		free(file);
		if (!found)
			continue;
		if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
		    ((st.st_mode & S_ISGID) && st.st_gid != getegid()))
			fprintf(stderr,
				"repath: run: warning: %s changes its user: the loader leaves LD_PRELOAD out, and its connections can not be moved\n",
				command);
		break;
	}
	free(dirs);
}

static void warn_disabled(void)
{
	const char *disable = getenv("REPATH_DISABLE");

	if (disable && *disable && strcmp(disable, "0"))
		fprintf(stderr,
			"repath: run: warning: REPATH_DISABLE=%s is set: nothing can be moved\n",
			disable);
}

static bool is_option(const struct args *a, const char *name, const char *letter)
{
	return !strcmp(a->argv[0], name) || !strcmp(a->argv[0], letter);
}

int cmd_run(struct door *door, struct args *a)
{
	struct run_setting list[RUN_SETTINGS];
	bool quiet = false, print = false;
	char **argv, **mpirun;
	int n, err;

	(void)door;
	for (; a->argc && a->argv[0][0] == '-'; a->argc--, a->argv++) {
		if (!strcmp(a->argv[0], "--")) {
			a->argc--;
			a->argv++;
			break;
		}
		if (is_option(a, "--quiet", "-q"))
			quiet = true;
		else if (is_option(a, "--print", "-p"))
			print = true;
		else
			usage_error(a, "option \"%s\" is not known", a->argv[0]);
	}
	if (print)
		take_end(a);
	else if (!a->argc)
		usage_error(a, "the command is missing");

	n = run_settings(list);
	if (n < 0)
		return EXIT_FAILED;
	if (print) {
		print_settings(list, n);
		return 0;
	}
	argv = a->argv;
	mpirun = run_mpirun(argv, list, n);
	run_apply(list, n);
	if (!quiet) {
		tell(list, n);
		if (mpirun)
			fprintf(stderr,
				"repath: run: mpirun gets -x for these, so that it gives them to all hosts\n");
		warn_setuid(argv[0]);
		warn_disabled();
	}
	execvp(argv[0], mpirun ? mpirun : argv);
	err = errno;
	fprintf(stderr, "repath: run: %s: %s\n", argv[0], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT;
}
