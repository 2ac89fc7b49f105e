/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Partitions, from OpenSM's own file of them (partitions.conf, opensm(8)). */
#ifndef REPATH_FABRIC_PARTITION_H
#define REPATH_FABRIC_PARTITION_H

#include "read.h"

/**
 * struct partition - one P_Key
 * @name: as the file calls it
 * @pkey: without the bit of full membership
 * @everybody: the file says ALL
 * @guid: port GUIDs of members
 * @full: by member, whether it is a full one
 * @members: how many
 * @room: of both
 */
struct partition {
	char *name;
	uint16_t pkey;
	bool everybody;
	uint64_t *guid;
	bool *full;
	unsigned int members;
	unsigned int room;
};

struct partitions {
	struct partition *partition;
	unsigned int n;
	unsigned int room;
};

/* NULL with a message. */
struct partitions *partitions_read(const char *path, char message[READ_MESSAGE]);
void partitions_free(struct partitions *p);

#endif /* REPATH_FABRIC_PARTITION_H */
