/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The only door to the kernel: generic netlink requests, dumps and events of ib_repath.ko. */
#ifndef REPATH_TOOL_DOOR_H
#define REPATH_TOOL_DOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <netlink/msg.h>
#include <netlink/attr.h>
#include <ib_repath.h>

struct door;

/**
 * typedef door_msg_fn - takes one message of the module
 * @cmd: enum repath_cmd
 * @tb: top-level attributes by enum repath_attr, validated; valid during the call
 * @arg: as given
 */
typedef void (*door_msg_fn)(uint8_t cmd, struct nlattr **tb, void *arg);

/* A door, opened by the first request: -EPROTONOSUPPORT from any call when there is no module. */
struct door *door_new(void);
void door_close(struct door *door);

/* A request to be filled with attributes and given to door_do or door_dump, which free it. */
struct nl_msg *door_request(uint8_t cmd);

/* One request and its answer. 0 or -errno; @fn may be NULL and may be called for each answer. */
int door_do(struct door *door, struct nl_msg *msg, door_msg_fn fn, void *arg);

/*
 * A whole dump. One that a change has interrupted is repeated; @fn sees only the last attempt.
 * 0 or -errno.
 */
int door_dump(struct door *door, struct nl_msg *msg, door_msg_fn fn, void *arg);

/*
 * Joins a multicast group with a descriptor of its own, to be polled for reading. door_events
 * takes what is there: 0, -ENOBUFS when events were lost (look again at everything), -ENODEV when
 * the module was unloaded (the door is of no more use, but for door_wait), or -errno.
 */
int door_listen(struct door *door, const char *group);
int door_listen_all(struct door *door);	/* not to a group: LISTEN, with PIDs as we see them */
int door_event_fd(const struct door *door);
int door_events(struct door *door, door_msg_fn fn, void *arg);

/* Waits until the module is there (again), closes the door and opens it: as after door_new. */
int door_wait(struct door *door);

/* Parses a nest into tb[REPATH_A_MAX + 1]; a damaged one yields no attributes. */
void door_nest(struct nlattr *nest, struct nlattr **tb);

/* Why the last call failed, for a person: the module's own words if it gave some. */
const char *door_error(const struct door *door);

/* Exit status for the -errno of a call: EXIT_*. */
int door_exit_status(int err);

#endif /* REPATH_TOOL_DOOR_H */
