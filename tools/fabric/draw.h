/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Drawings of a subnet that was checked. */
#ifndef REPATH_FABRIC_DRAW_H
#define REPATH_FABRIC_DRAW_H

#include <stdio.h>
#include "check.h"

/* For Graphviz: switches and hosts, cables by their paths, the credit loops red. */
void draw_dot(const struct check *c, FILE *to);

#endif /* REPATH_FABRIC_DRAW_H */
