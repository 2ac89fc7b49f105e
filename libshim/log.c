// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* REPATH_LOG=err|info|debug[:FILE]; nothing is printed unless it is set. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int threshold = -1;
static int fd = STDERR_FILENO;

static void setup(void)
{
	static const char *const names[] = { "err", "info", "debug" };
	const char *v = secure_getenv("REPATH_LOG");
	int i;

	for (i = 0; v && i < 3; i++) {
		size_t n = strlen(names[i]);

		if (strncmp(v, names[i], n) || (v[n] && v[n] != ':'))
			continue;
		threshold = i;
		if (v[n] == ':') {
			int f = open(v + n + 1, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

			if (f >= 0)
				fd = f;
		}
	}
}

void rp_log(enum rp_log_level level, const char *fmt, ...)
{
	int saved = errno, n, cancel;
	char line[512];
	struct timespec t;
	va_list ap;

	cancel = rp_uncancelled();	/* what is said is said under locks, too */
	pthread_once(&once, setup);
	if ((int)level > threshold)
		goto out;
	clock_gettime(CLOCK_MONOTONIC, &t);
	n = snprintf(line, sizeof(line), "repath[%d] %ld.%06ld: ", getpid(), (long)t.tv_sec,
		     t.tv_nsec / 1000);
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	/* One write a line, so that threads and processes do not mix within one. */
	if (write(fd, line, n) < 0)
		threshold = -1;
out:
	rp_cancelled_as(cancel);
	errno = saved;
}
