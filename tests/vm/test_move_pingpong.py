# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's own ibv_rc_pingpong, unmodified, is moved in full run, by events and polling: it goes on
to its normal report, and the data that it checks is right."""

from move import moving
from unmodified import move_in_full_run, start


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b, comm="ibv_rc_pingpong") as mover:
        for options in ("-e -n 8000", "-s 65536 -n 800"):
            jobs = start(a, b, f"ibv_rc_pingpong -d rxe0 -g 1 -c {options}")
            # The ball is at one end only: it may be the other one's turn.
            move_in_full_run(mover, jobs, b, a, inflight=False)
            assert "iters in" in jobs[1].output(), jobs[1].output()
            assert "invalid data" not in jobs[0].output() + jobs[1].output()
