/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What repath fabric check says. */
#ifndef REPATH_TOOL_FABRIC_PRINT_H
#define REPATH_TOOL_FABRIC_PRINT_H

#include "fabric/check.h"

/* As text, or with -j as one object. */
void fabric_print(const struct check *c);

#endif /* REPATH_TOOL_FABRIC_PRINT_H */
