/* SPDX-License-Identifier: GPL-2.0 */
/* The system sleeps, and wakes. */
#ifndef REPATH_SLEEP_H
#define REPATH_SLEEP_H

int repath_sleep_init(void);
void repath_sleep_exit(void);

#endif /* REPATH_SLEEP_H */
