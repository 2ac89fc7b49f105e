/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The programs' own TCP connection: setting up, and agreeing on the end. */
#ifndef APPS_OOB_H
#define APPS_OOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * oob_listen() - wait for one client
 * @port: TCP port
 *
 * Returns the connected socket; exits with a message when it can not.
 */
int oob_listen(uint16_t port);

/**
 * oob_connect() - connect to a server that may not listen yet
 * @host: name or address
 * @port: TCP port
 * @seconds: how long to try
 */
int oob_connect(const char *host, uint16_t port, int seconds);

/**
 * oob_write() - send all of it
 * Returns false when the connection is gone.
 */
bool oob_write(int fd, const void *data, size_t len);

/**
 * oob_read() - receive all of it, waiting
 * Returns false when the connection is gone.
 */
bool oob_read(int fd, void *data, size_t len);

/**
 * oob_ready() - is there something to read (or the end) now?
 */
bool oob_ready(int fd);

#endif
