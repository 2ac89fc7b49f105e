# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A message between guests comes twice, late, or after those that follow it; and all that was said in
a move is said again in the next."""

from disturbed import disturb
from move import LONG

GUESTS = 2
TIMEOUT = 3600 if LONG else 300


def test(bed):
    disturb(bed, "guests-repeated", ["doubled", "delayed", "reordered"], replay=True)
