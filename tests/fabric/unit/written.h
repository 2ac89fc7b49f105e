/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Subnets that a test writes as text, read and checked in one call. */
#ifndef FABRIC_WRITTEN_H
#define FABRIC_WRITTEN_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/change.h"
#include "fabric/check.h"
#include "fabric/partition.h"
#include "fabric/read.h"
#include "../../vfabric/unit/check.h"

/* A file that has the text; its name is in @path, which ends in XXXXXX. */
static inline void written(char *path, const char *text, size_t n)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, n), n);
	close(fd);
}

/* NULL if it is not understood: then @message tells why. */
static inline struct fabric *fabric_of(const char *text, char message[READ_MESSAGE])
{
	char path[] = "/tmp/fabric-XXXXXX";
	const char *paths[] = { path };
	struct fabric *f = fabric_new();

	written(path, text, strlen(text));
	if (!read_fabric(f, paths, 1, message)) {
		fabric_free(f);
		f = NULL;
	}
	unlink(path);
	return f;
}

/* The first fault or note of a kind, or NULL. */
static inline const struct fault *fault_of(const struct check *c, const char *kind)
{
	for (unsigned int i = 0; i < c->faults; i++)
		if (!strcmp(c->fault[i].kind, kind))
			return &c->fault[i];
	return NULL;
}

#endif
