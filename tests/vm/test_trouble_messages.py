# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A message between guests is lost, or its answer is, or it is of another version of the protocol."""

from disturbed import disturb

GUESTS = 2


def test(bed):
    disturb(bed, "guests-lost", ["lost", "answer lost", "other version"])
