/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sockets of the plugin's that only root, or who OpenSM runs as, can connect to. */
#ifndef RSM_LISTEN_H
#define RSM_LISTEN_H

#include <stdbool.h>

#define RSM_REST_MS 100

int rsm_listen(const char *path);
int rsm_accept(int listener, bool *rest);

#endif
