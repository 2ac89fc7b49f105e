// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who else holds the device's file? It is released only when the last descriptor of it is closed,
 * so one that libibverbs did not open for us, in this process or in a child that was forked while
 * it was open, would keep the device for ever.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "move.h"

#define DEPTH 8		/* of children's children */
#define LOOKS 4		/* before a descriptor is a stranger's */

static unsigned int count(const char *fds, dev_t dev)
{
	unsigned int n = 0;
	DIR *d = opendir(fds);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d)))
		if (!fstatat(dirfd(d), e->d_name, &st, 0) && S_ISCHR(st.st_mode) &&
		    st.st_rdev == dev)
			n++;
	if (d)
		closedir(d);
	return n;
}

/* The first among the descendants of @pid that has the device open; 0: none. */
static int holding_child(int pid, dev_t dev, int depth)
{
	char path[64], fds[32];
	struct dirent *e;
	int child, found = 0;
	FILE *f;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.10s/children", pid, e->d_name);
		f = fopen(path, "re");
		while (f && !found && fscanf(f, "%d", &child) == 1) {
			snprintf(fds, sizeof(fds), "/proc/%d/fd", child);
			if (count(fds, dev))
				found = child;
			else if (depth < DEPTH)
				found = holding_child(child, dev, depth + 1);
		}
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return found;
}

static bool device_file(uint32_t dev_index, dev_t *dev)
{
	struct rp_context *ctx;
	bool known = false;
	struct stat st;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		if (!known && ctx->real && ctx->dev_index == (int)dev_index &&
		    !fstat(ctx->real->cmd_fd, &st) && S_ISCHR(st.st_mode)) {
			*dev = st.st_rdev;
			known = true;
		}
	rp_unlock(&rp_contexts_lock);
	return known;
}

/* Descriptors that no context of ours has. Threads may open and close the device meanwhile. */
static unsigned int strangers(dev_t dev)
{
	unsigned int all = count("/proc/self/fd", dev), ours = 0;
	bool busy = rp_away_busy();
	struct rp_context *ctx;
	struct stat st;

	rp_lock(&rp_contexts_lock);
	list_for_each(ctx, &rp_contexts, node)
		ours += ctx->real && !fstat(ctx->real->cmd_fd, &st) && st.st_rdev == dev;
	rp_unlock(&rp_contexts_lock);
	return busy || all < ours ? 0 : all - ours;
}

bool rp_held_by_others(uint32_t dev_index, char *why, size_t room)
{
	unsigned int n = 0, look;
	int child;
	dev_t dev = 0;

	if (!device_file(dev_index, &dev))
		return false;
	for (look = 0; look < LOOKS; look++) {
		n = strangers(dev);
		if (!n)
			break;
		usleep(1000);
	}
	if (n) {
		snprintf(why, room,
			 "%u descriptor%s of the device that its libibverbs did not open for it: "
			 "direct verbs, or a library of its own? (UCX: UCX_TLS=rc_verbs,ud_verbs)",
			 n, n > 1 ? "s" : "");
		return true;
	}
	child = holding_child(getpid(), dev, 0);
	if (child)
		snprintf(why, room, "its child PID %d has had the device open since fork()", child);
	return child;
}
