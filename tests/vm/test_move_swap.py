# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A process changes its HCA within one guest: the device is deleted and another one added. Ways to
wait: polling and select; LONG=1: blocking too, and all signalled."""

from move import LONG, SHIM, moving
from traffic import Pair


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        ways = ("--busy", "--select --cqs 2", *(["--events", "--poll --sig-all"] if LONG else []))
        for number, way in enumerate(ways):
            pair = Pair(a, b, "-q 2 -n 8 -b -k 4", f"-i 0.5 --numbers {way}", env=SHIM,
                        port=18600 + number)
            pair.wait_running()
            mover.swap(b)
            pair.wait_progress(50)
            mover.swap(a)
            pair.wait_progress(50)
            client, _ = pair.finish()
            print(f"  {way}: gap {client['max_gap_ms']} ms, {client['msgs']} messages")
