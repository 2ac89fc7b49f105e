# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A message between guests is damaged, said by a stranger, or cut short."""

from disturbed import disturb

GUESTS = 2
PENDING = "a GONE that is altered is repeated now, it has not run since; 220 s on a busy machine"


def test(bed):
    disturb(bed, "guests-forged", ["altered", "forged", "truncated"])
