# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The client is live-migrated to another HCA in full traffic both ways, all operations, with 1 and
16 queue pairs: nothing is lost, doubled, reordered or damaged, and no completion is."""

from move import SHIM, moving
from traffic import Pair


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for number, options in enumerate(("-b -k 4 --vary", "-q 16 -n 3 -s 512 -b -k 2")):
            pair = Pair(a, b, options, env=SHIM, port=18600 + number)
            pair.wait_running()
            virtual = pair.numbers(pair.client)["start"]
            mover.migrate(b)
            pair.wait_progress()
            client, server = pair.finish()
            print(f"  gap {client['max_gap_ms']} ms, {client['msgs']} messages")
            assert pair.numbers(pair.client)["end"]["qps"] == virtual["qps"]
