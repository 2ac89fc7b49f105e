/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The steps of a move that must succeed. */
#ifndef MOVE_CYCLE_H
#define MOVE_CYCLE_H

#include "check.h"
#include "fake_module.h"
#include "mock.h"

/* Checks, suspends, and unplugs the device. */
static inline void move_away(const char *dev)
{
	const char *why = NULL;
	int ret = fake_check(dev, &why);

	CHECK(!ret, "check of %s: %d, %s", dev, ret, why);
	ret = fake_suspend(dev);
	CHECK(!ret, "suspend of %s: %d", dev, ret);
	CHECK_EQ(mock_unplug(dev), 0);
}

/* Plugs a device of that name, with new numbers, and resumes. */
static inline void move_back(const char *dev)
{
	const char *why = NULL;
	int ret;

	CHECK_EQ(mock_plug(&(struct mock_plug){ .name = dev }), 0);
	ret = fake_resume(dev, &why);
	CHECK(!ret, "resume of %s: %d, %s", dev, ret, why);
	CHECK_EQ(fake_settled(), 0);
}

#endif /* MOVE_CYCLE_H */
