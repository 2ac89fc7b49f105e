# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The papers' fault, and a second one: S2-S5 goes down, and then S3-S4, which leaves a line of switches. One
lane is enough for that: the queue pairs that took the second one are moved back. When both links are back
none has to be moved."""

import test_repath_mesh as mesh

PENDING = "it takes minutes (237 s on a busy machine), and make demo-repath plays the same faults"

TIMEOUT = 600
# The fabric is as busy as a guest: alone.
GUESTS = 2


def test(bed):
    mesh.play(bed, second=True)
