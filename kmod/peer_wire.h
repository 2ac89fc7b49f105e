/* SPDX-License-Identifier: GPL-2.0 */
/* A message about connections as it goes to the other module: written, and read. */
#ifndef REPATH_PEER_WIRE_H
#define REPATH_PEER_WIRE_H

#include <linux/types.h>

struct repath_conn;
struct repath_conn_rec;
struct repath_proc;
struct repath_wire_msg;

/* Both under repath_conn_mutex. */
struct repath_wire_msg *repath_wire_write(struct repath_conn *way,
					  const struct repath_conn_rec *recs, u32 nconns,
					  const void *blob, u32 blob_len, u32 *len);
u32 repath_wire_read(const struct repath_wire_msg *wire, u32 len, const struct repath_proc *proc,
		     struct repath_conn_rec *recs);

/* The sizes in it add up, and nothing is left over. */
bool repath_wire_is_well_formed(const struct repath_wire_msg *wire, u32 len);
/* What follows the records of a well-formed one. */
const void *repath_wire_blob(const struct repath_wire_msg *wire, u32 len);

#endif /* REPATH_PEER_WIRE_H */
