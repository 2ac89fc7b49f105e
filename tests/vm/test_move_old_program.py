# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A program that is linked to the functions of libibverbs 1.0 is moved, twice: libibverbs' own layer for
such programs is between it and the shim."""

from move import SHIM, moving
from traffic import last_json, wait_more

PROCESSORS = 1


def test(bed):
    a = bed.guest("a")
    with moving(a, comm="oldverbs") as mover:
        job = a.start(f"exec env {SHIM} oldverbs rxe0")
        wait_more([job], 40)
        for _ in range(2):
            mover.swap(a, inflight=False)
            wait_more([job], 40)
        job.kill(15)
        job.wait(60)
        assert last_json(job.output())["ok"]
