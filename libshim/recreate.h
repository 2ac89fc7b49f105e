/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* All provider objects of a context, released and made anew in the device's order. */
#ifndef RP_RECREATE_H
#define RP_RECREATE_H

#include "shim.h"

/* Releases everything that is there; what fails is logged. 0 or -errno of the first failure. */
int rp_release_context(struct rp_context *ctx);

/*
 * Opens the device of that name and waits until its ports are ACTIVE and have the GIDs and P_Keys that the
 * queue pairs need.
 * Both return 0 or -errno, and then say in @why what is missing, for a person.
 */
int rp_recreate_open(struct rp_context *ctx, const char *name, char *why, size_t room);
/* Everything else; connected queue pairs are left in RESET. */
int rp_recreate_objects(struct rp_context *ctx, char *why, size_t room);

/* pkeys.c: before the device is left, and when another one is open: 0, or -errno and what is missing. */
void rp_pkeys_save(struct rp_context *ctx);
int rp_pkeys_map(struct rp_context *ctx, char *why, size_t room);

/*
 * gids.c: the same of GIDs. @late_link: all that are needed are there, and the link of one is not operational yet.
 */
void rp_gids_save(struct rp_context *ctx);
int rp_gids_map(struct rp_context *ctx, bool *late_link, char *why, size_t room);

/* ports.c: where the ports are, before the device is left. */
void rp_ports_save(struct rp_context *ctx);
/* alternate.c: does a port of an alternate path become ACTIVE yet? */
bool rp_alternates_wait(struct rp_context *ctx);

/*
 * 0; or -EOPNOTSUPP: the device is too small, or lacks a verb that is in use (lacking.c), and in @why for
 * what. Nothing was made on it yet.
 */
int rp_limits_check(struct rp_context *ctx, char *why, size_t room);
int rp_lacking_check(struct rp_context *ctx, char *why, size_t room);

#endif /* RP_RECREATE_H */
