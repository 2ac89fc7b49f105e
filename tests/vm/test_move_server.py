# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The server is live-migrated to another HCA, by a client that uses the newer post calls."""

from move import SHIM, moving
from traffic import Pair


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for number, each in enumerate(("--ex-cq --split-cq --nonblock", "--new-post --epoll")):
            pair = Pair(a, b, "-q 4 -n 8 -b -k 4 -l 4 --vary", f"-i 0.5 --numbers {each}",
                        env=SHIM, port=18600 + number)
            pair.wait_running()
            mover.migrate(a)
            pair.wait_progress()
            client, _ = pair.finish()
            print(f"  gap {client['max_gap_ms']} ms, {client['msgs']} messages")
