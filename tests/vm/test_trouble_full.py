# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Neither end posts a receive, so that every queue at both ends is full of work that waits; either end
is moved so, and both; when receives are posted again, all data are right."""

from move import SHIM, moving
from test_move_both_guests import at_once
from traffic import Pair, messages


def wait_quiet(pair):
    """Until nothing moves any more: all that can be under way is."""
    pair.client_guest.run("sleep 1")
    while True:
        before = [messages(job) for job in pair.jobs]
        pair.client_guest.run("sleep 1.2")
        if before == [messages(job) for job in pair.jobs]:
            return before


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        pair = Pair(a, b, "-q 2 -n 16 -b -k 4", "-i 0.5 --numbers --no-recv-ms 600000", env=SHIM)
        pair.wait_running()
        for movers in ((b,), (a,), (a, b)):
            for job in pair.jobs:
                job.kill(10)        # no receives from now on
            still = wait_quiet(pair)
            ops = at_once(*(lambda g=g: mover.suspend(g, timeout=60) for g in movers))
            mover.note_inflight(*ops)
            for guest in movers:
                ip = guest.nics[0].ip
                mover.release(guest)
                mover.moves += 1
                guest.rxe_add("rxe0", guest.plug("rdma", ip=ip))
                mover.burn(guest)
            at_once(*(lambda g=g, op=op: mover.resume(g, op, timeout=60)
                      for g, op in zip(movers, ops)))
            assert wait_quiet(pair) == still, "something was received without a receive"
            for job in pair.jobs:
                job.kill(10)        # receives again
            pair.wait_progress()
        pair.finish()
