// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Settings that keep a program on the way through libibverbs, where its connections can be moved. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "run_env.h"

#define SHIM		"libibrepath.so"

/* UCX's transports that write to the device's rings by themselves; "rc" and "ud" may become them. */
static const char *const accelerated[] = {
	"all", "ib", "rc", "rc_x", "rc_mlx5", "ud", "ud_x", "ud_mlx5", "dc", "dc_x", "dc_mlx5",
};

#define WITHOUT_ACCELERATED	"^rc_mlx5,dc_mlx5,ud_mlx5"

static char *copy(const char *text)
{
	char *s = strdup(text);

	if (!s)
		abort();
	return s;
}

/* Directories that the loader searches for a preload without a path, on any host alike. */
static bool searched(const char *dir)
{
	static const char *const dirs[] = {
		"/lib", "/usr/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
		"/lib64", "/usr/lib64",
	};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (!strcmp(dir, dirs[i]))
			return true;
	return false;
}

/* Beside this command, where it was built; then where it is installed. On the heap, or NULL. */
static char *find_shim(void)
{
	char self[PATH_MAX], path[PATH_MAX + 64];
	const char *const places[] = { ".", "../lib/x86_64-linux-gnu", "../lib64", "../lib" };
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *real, *dir;

	if (n < 0)
		return NULL;
	self[n] = 0;
	dir = dirname(self);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, places[i]);
		real = realpath(path, NULL);
		if (!real)
			continue;
		snprintf(path, sizeof(path), "%s/" SHIM, real);
		if (!access(path, R_OK)) {
			bool bare = searched(real);

			free(real);
			return copy(bare ? SHIM : path);
		}
		free(real);
	}
	return NULL;
}

/* Is it in this list of libraries, with a path or without? */
static bool has_shim(const char *list)
{
	const char *at = list;

	while ((at = strstr(at, SHIM))) {
		if ((at == list || strchr("/: ", at[-1])) && (!at[sizeof(SHIM) - 1] ||
		    strchr(": ", at[sizeof(SHIM) - 1])))
			return true;
		at++;
	}
	return false;
}

static char *joined(const char *list, const char *more)
{
	char *s;

	if (!list || !*list)
		return copy(more);
	if (asprintf(&s, "%s:%s", list, more) < 0)
		abort();
	return s;
}

/* A list of transports from which nothing keeps the accelerated ones out. */
static bool lets_accelerated(const char *tls)
{
	bool negated = *tls == '^';
	unsigned int found = 0;
	char *list = copy(tls + negated), *word, *rest = list;

	while ((word = strsep(&rest, ","))) {
		word[strcspn(word, ":")] = 0;
		for (size_t i = 0; i < sizeof(accelerated) / sizeof(accelerated[0]); i++)
			if (!strcmp(word, accelerated[i]))
				found |= 1u << i;
	}
	free(list);
	if (!negated)
		return found;
	/* Whole families, or each by one of its names: rc, ud, dc. */
	return !(found & 0x3) && !((found & 0x1c) && (found & 0xe0) && (found & 0x700));
}

static bool is_yes(const char *value)
{
	return strchr("yYtT1", *value) && *value;
}

static bool not_ucx(const char *value)
{
	return strcmp(value, "ucx");
}

/* Variables that we set if the user has not, and which of his values will not do. */
static const struct {
	const char *name, *value, *why;
	bool (*bad)(const char *value);
	const char *why_bad;
} wanted[] = {
	{ "UCX_TLS", WITHOUT_ACCELERATED,
	  "UCX's mlx5 transports write to the device without libibverbs",
	  lets_accelerated,
	  "lets UCX's mlx5 transports write to the device without libibverbs; such connections can not be moved" },
	{ "UCX_IB_MLX5_DEVX", "n",
	  "objects that UCX makes by DEVX pass libibverbs by", is_yes,
	  "objects that UCX makes by DEVX pass libibverbs by and can not be moved" },
	{ "UCX_UD_VERBS_ETH_DGID_CHECK", "n",
	  "after a move datagrams on RoCE come for the new GID, which UCX would drop", is_yes,
	  "makes UCX drop datagrams on RoCE that come for the new GID after a move" },
	{ "UCX_UD_TIMEOUT", "5m",
	  "UCX ends a program whose peer answers no datagram for 30 s, and a move may take longer",
	  NULL, NULL },
	{ "OMPI_MCA_pml", "ucx",
	  "Open MPI's other ways to a device are not known to move", not_ucx,
	  "Open MPI then has other ways to a device, which are not known to move" },
	{ "OMPI_MCA_osc", "ucx",
	  "the same, for one-sided communication", NULL, NULL },
};

#define WANTED	(sizeof(wanted) / sizeof(wanted[0]))

int run_settings(struct run_setting list[RUN_SETTINGS])
{
	const char *preload = getenv("LD_PRELOAD");
	int n = 0;

	_Static_assert(WANTED + 1 <= RUN_SETTINGS, "no room");
	list[n] = (struct run_setting){ .name = "LD_PRELOAD" };
	if (preload && has_shim(preload)) {
		list[n].value = copy(preload);
		list[n].why = "has " SHIM " already";
		list[n].whose = RUN_KEPT;
	} else {
		char *shim = find_shim();

		if (!shim) {
			fprintf(stderr, "repath: run: " SHIM " is neither beside this command nor installed\n");
			return -1;
		}
		list[n].value = joined(preload, shim);
		list[n].why = preload && *preload ?
			"behind what is there already: " SHIM " stands before libibverbs" :
			SHIM " stands before libibverbs";
		list[n].whose = RUN_SET;
		free(shim);
	}
	n++;
	for (size_t i = 0; i < WANTED; i++) {
		const char *has = getenv(wanted[i].name);
		bool bad = has && wanted[i].bad && wanted[i].bad(has);

		list[n++] = (struct run_setting){
			.name = wanted[i].name,
			.value = copy(has ? has : wanted[i].value),
			.why = bad ? wanted[i].why_bad : has ? "was set already" : wanted[i].why,
			.whose = bad ? RUN_WARN : has ? RUN_KEPT : RUN_SET,
		};
	}
	return n;
}

void run_apply(const struct run_setting *list, int n)
{
	for (int i = 0; i < n; i++)
		if (list[i].whose == RUN_SET)
			setenv(list[i].name, list[i].value, 1);
}

static bool is_mpirun(const char *command)
{
	static const char *const names[] = {
		"mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi",
	};
	const char *slash = strrchr(command, '/');

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(slash ? slash + 1 : command, names[i]))
			return true;
	return false;
}

/* mpirun itself gives its MCA parameters on. */
static bool needs_passing(const struct run_setting *s)
{
	return strncmp(s->name, "OMPI_", 5);
}

/* What the user says of @s in "-x NAME" or "-x NAME=VALUE"; the last one counts. */
static char **users_own(char **argv, const struct run_setting *s)
{
	size_t len = strlen(s->name);
	char **found = NULL;

	for (int i = 1; argv[i] && argv[i + 1]; i++)
		if ((!strcmp(argv[i], "-x") || !strcmp(argv[i], "--x")) &&
		    !strncmp(argv[i + 1], s->name, len) &&
		    (!argv[i + 1][len] || argv[i + 1][len] == '='))
			found = &argv[i + 1];
	return found;
}

/* The user gives a value of his own on the command line. */
static void take_users(struct run_setting *s, char **word)
{
	char *value = strchr(*word, '=');

	if (!value)
		return;
	value++;
	if (!strcmp(s->name, "LD_PRELOAD") && !has_shim(value)) {
		char *whole, *shim = find_shim();

		if (!shim)
			return;
		free(s->value);
		s->value = joined(value, shim);
		s->why = "behind what -x gives: " SHIM " stands before libibverbs";
		if (asprintf(&whole, "%s=%s", s->name, s->value) < 0)
			abort();
		*word = whole;
		free(shim);
		return;
	}
	free(s->value);
	s->value = copy(value);
	s->whose = RUN_KEPT;
	s->why = "was set already, by -x";
	for (size_t i = 0; i < WANTED; i++) {
		if (strcmp(wanted[i].name, s->name) || !wanted[i].bad || !wanted[i].bad(value))
			continue;
		s->whose = RUN_WARN;
		s->why = wanted[i].why_bad;
	}
}

/* Open MPI refuses -x beside its parameter for the same. */
static bool has_env_list(char **argv)
{
	if (getenv("OMPI_MCA_mca_base_env_list"))
		return true;
	for (; *argv; argv++)
		if (!strcmp(*argv, "mca_base_env_list"))
			return true;
	return false;
}

char **run_mpirun(char **argv, struct run_setting *list, int n)
{
	int argc = 0, out = 0;
	char **made;

	if (!is_mpirun(argv[0]) || has_env_list(argv))
		return NULL;
	while (argv[argc])
		argc++;
	made = calloc(argc + 1 + 2 * n, sizeof(*made));
	if (!made)
		abort();
	made[out++] = argv[0];
	for (int i = 0; i < n; i++) {
		char **own;

		if (!needs_passing(&list[i]))
			continue;
		own = users_own(argv, &list[i]);
		if (own) {
			take_users(&list[i], own);
			continue;
		}
		made[out++] = copy("-x");
		made[out++] = copy(list[i].name);
	}
	for (int i = 1; i < argc; i++)
		made[out++] = argv[i];
	return made;
}
