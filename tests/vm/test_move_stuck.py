# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A move while SENDs wait for receives that the other end has not posted: they never drain, and
are settled by the receiver's count and replayed, each exactly once."""

import time

from move import SHIM, moving
from traffic import Pair


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for number, mix in enumerate(("send,send_imm", "all")):
            pair = Pair(a, b, f"-q 2 -n 8 -b -k 4 -m {mix}", env=SHIM, port=18600 + number,
                        server_options="--no-recv-ms 6000")
            pair.wait_running()
            pair.server.kill(10)
            time.sleep(1)           # the queues fill up behind the first SEND
            mover.swap((b, a)[number])
            pair.wait_progress()
            pair.finish()
