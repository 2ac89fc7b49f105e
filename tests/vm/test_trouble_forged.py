# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A message between guests is damaged, said by a stranger, or cut short."""

from disturbed import disturb
from move import LONG

GUESTS = 2
TIMEOUT = 3600 if LONG else 300


def test(bed):
    disturb(bed, "guests-forged", ["altered", "forged", "truncated"])
