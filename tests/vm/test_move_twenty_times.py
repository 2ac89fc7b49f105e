# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One process is moved twenty times in a row, each fourth time by live migration, the last times as
fast as it goes; its connections go on all the time."""

from move import SHIM, moving
from traffic import Pair

PROCESSORS = 1
TIMEOUT = 600


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        pair = Pair(a, b, "-q 4 -n 8 -b -k 4", env=SHIM)
        pair.wait_running()
        start = mover.numbers(b)
        for count in range(1, 21):
            if count % 4 == 0:
                mover.migrate(b, look=False)
            else:
                mover.swap(b, inflight=False, look=False)
            if count < 15 or count == 20:
                pair.wait_progress()
        mover.check_numbers(start, mover.numbers(b))
        client, _ = pair.finish()
        print(f"  longest gap {client['max_gap_ms']} ms, {client['msgs']} messages")
