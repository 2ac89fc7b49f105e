/* SPDX-License-Identifier: GPL-2.0 */
/* Events for who listens. All but repath_event_is_wanted() may sleep. */
#ifndef REPATH_EVENT_H
#define REPATH_EVENT_H

#include <uapi/ib_repath.h>

struct pid;
struct repath_device;
struct repath_learnt;
struct repath_qp;
struct repath_user;

/* Does anybody listen? Any context, a probe handler as well. */
bool repath_event_is_wanted(const struct repath_device *dev);

void repath_event_qp(struct repath_qp *rqp, enum repath_ev_action action);
void repath_event_user(struct repath_user *user, enum repath_ev_action action);
/* Something of the process has changed, as its registration: one event for each device it uses. */
void repath_event_process(struct pid *tgid, enum repath_ev_action action);
void repath_event_device(struct repath_device *dev, enum repath_ev_action action);
void repath_event_path(struct repath_device *dev, u32 port, const struct repath_learnt *path,
		       enum repath_ev_action action);

#endif /* REPATH_EVENT_H */
