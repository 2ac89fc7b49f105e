// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The option file: what is not one, or has a line that is no option, is told with its place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s: %s\n", __func__, __LINE__, #condition, why); \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct rsm_options opt;
static char path[] = "/tmp/test_sm_options.XXXXXX";
static char why[512];

static int read_text(const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file))
		abort();
	why[0] = '\0';
	return rsm_options_read(&opt, path, why, sizeof(why));
}

static void test_values(void)
{
	CHECK(!read_text(""));
	CHECK(opt.method == RSM_AUTO && opt.window == 64 && opt.unpath == -1);
	/* Paper IV: a hot spot waits for 100000 ticks a second, and a contributor has half of its link. */
	CHECK(opt.hotspot_wait == 100000 && opt.hotspot_used == 50 && !opt.slow_sl);
	CHECK(!strcmp(opt.status_socket, "/run/osm-repath.sock"));
	CHECK(!read_text("# nothing\n\n\twindow 7 # seven\r\nmethod hybrid\nstatus_socket\nunpath auto"));
	CHECK(opt.method == RSM_HYBRID && opt.window == 7 && opt.unpath == -1);
	CHECK(!*opt.status_socket);
}

static void test_wrong_lines(void)
{
	CHECK(read_text("\nwindow\n") == -EINVAL && strstr(why, ":2: no value for window:  (1 to 512)"));
	CHECK(read_text("window 7 8\n") == -EINVAL);
	CHECK(read_text("window 7x\n") == -EINVAL);
	CHECK(read_text("window 99999999999999999999\n") == -EINVAL);
	CHECK(read_text("window 7\nwindows 7\n") == -EINVAL && strstr(why, ":2: no such option: windows"));
	CHECK(read_text("dry_run auto\n") == -EINVAL && strstr(why, "(one of: off on)"));
}

/* What stands far to the right is of the same line. */
static void test_long_lines(void)
{
	char text[3000];

	memset(text, 'x', sizeof(text));
	text[0] = '#';
	strcpy(text + 2000, "\nwindow 7\ncolour red\n");
	CHECK(read_text(text) == -EINVAL && strstr(why, ":3: no such option: colour"));
	CHECK(opt.window == 7);
	memset(text, ' ', sizeof(text));
	memcpy(text, "window 7", strlen("window 7"));
	strcpy(text + 2000, "method hybrid\n");
	CHECK(read_text(text) == -EINVAL && strstr(why, ":1: more than one value for window"));
}

/* A file that is named has to be one. */
static void test_no_file(void)
{
	CHECK(rsm_options_read(&opt, "/tmp", why, sizeof(why)) == -EISDIR && strstr(why, "/tmp: Is a directory"));
	unlink(path);
	CHECK(rsm_options_read(&opt, path, why, sizeof(why)) == -ENOENT && strstr(why, path));
}

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		abort();
	close(fd);
	test_values();
	test_wrong_lines();
	test_long_lines();
	test_no_file();
	return 0;
}
