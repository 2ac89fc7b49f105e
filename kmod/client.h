/* SPDX-License-Identifier: GPL-2.0 */
/* The ib_client: devices come and go. */
#ifndef REPATH_CLIENT_H
#define REPATH_CLIENT_H

int repath_client_init(void);
void repath_client_exit(void);

#endif /* REPATH_CLIENT_H */
