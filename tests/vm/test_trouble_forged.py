# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A message between guests is damaged, said by a stranger, or cut short."""

from disturbed import disturb

GUESTS = 2


def test(bed):
    disturb(bed, "guests-forged", ["altered", "forged", "truncated"])
