# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""With remapping switched off the same move fails: the other tests do prove something."""

from move import SHIM, moving, repath
from traffic import Pair


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        pair = Pair(a, b, "-q 2 -n 8 -b -k 4", "-i 0.5 --stall 10",
                    env=SHIM + " REPATH_NO_REMAP=1")
        pair.wait_running()
        op = mover.suspend(b)
        mover.note_inflight(op)
        mover.release(b)
        mover.new_device(b)
        status, _, text = repath(b, f"resume {op['op']} on rxe0 timeout 10")
        assert status == 0, text
        failed = [job.wait(60, check=False) for job in pair.jobs]
        assert any(job.status == 1 for job in pair.jobs), f"it survived without remapping: {failed}"
        print("  " + next(line for text in failed for line in text.splitlines() if "FAIL" in line))
