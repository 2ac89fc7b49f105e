/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Drawings of a subnet that was checked. */
#ifndef REPATH_FABRIC_DRAW_H
#define REPATH_FABRIC_DRAW_H

#include <stdio.h>
#include "change.h"
#include "check.h"

/* For Graphviz: switches and hosts, cables by their paths, the credit loops red. */
void draw_dot(const struct check *c, FILE *to);

/**
 * struct page - what is shown to an administrator
 * @now: the subnet, checked
 * @before: an earlier state of it, checked, or NULL
 * @change: between the two, or NULL
 * @partitions: or NULL
 */
struct page {
	const struct check *now;
	const struct check *before;
	const struct change *change;
	const struct partitions *partitions;
};

/* One page for a browser, which needs no network. */
void draw_page(const struct page *page, FILE *to);

#endif /* REPATH_FABRIC_DRAW_H */
