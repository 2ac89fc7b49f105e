# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Both ends of all that vcheck has are in one guest and are moved by one suspend: each asks where the
other's UD queue pair is while that is still being made anew, and at an address that is no more."""

import time

from move import moving
from test_move_objects import Vcheck

GUESTS = 1


def wait_datagrams(check, timeout=60):
    """Each end hears the other's again; until both know where they are some are lost."""
    goals = [told["ud"] + 10 for told in check.told()]
    end = time.monotonic() + timeout
    while any(told["ud"] < goal for told, goal in zip(check.told(), goals)):
        if time.monotonic() > end:
            raise TimeoutError(f"no datagrams: {check.told()}")
        time.sleep(0.1)


def test(bed):
    a = bed.guest("a")
    with moving(a, comm="vcheck") as mover:
        check = Vcheck(a, a)
        check.more()
        for _ in range(2):
            mover.swap(a, inflight=False)
            wait_datagrams(check)
            check.more()
        check.finish()
