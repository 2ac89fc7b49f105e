# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Inline sends, lists of requests, two elements and rare signals survive a move: what is kept for
replay is what was posted, not what lies in the buffer later."""

from move import SHIM, moving
from traffic import Pair


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for number, each in enumerate(("", "--new-post")):
            pair = Pair(a, b, "-q 2 -n 16 -s 200 -I 256 -b -k 8 -l 4 --sges 2",
                        f"-i 0.5 --numbers {each}", env=SHIM, port=18600 + number)
            pair.wait_running()
            mover.swap(b)
            pair.wait_progress()
            mover.swap(a)
            pair.wait_progress()
            pair.finish()
