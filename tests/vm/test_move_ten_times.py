# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One process is live-migrated ten times there and back, its connections going on all the time."""

from move import SHIM, moving
from traffic import Pair

TIMEOUT = 600


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        pair = Pair(a, b, "-q 4 -n 8 -b -k 4", env=SHIM)
        pair.wait_running()
        for _ in range(10):
            mover.migrate(b)
            pair.wait_progress()
        client, _ = pair.finish()
        print(f"  longest gap {client['max_gap_ms']} ms, {client['msgs']} messages")
