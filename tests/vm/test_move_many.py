# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Hundreds of queue pairs in one process, and a gigabyte of registered memory, with more regions than a message
has keys, are moved to another NIC and soft RoCE device: each link goes on, the numbers are others, the bytes of the
large region are there.

    MOVE_QPS=4096 tests/vm/run move_many        more of them; see docs/measurements.md for what soft RoCE carries
"""

import os

from move import SHIM, moving
from traffic import Pair

GUESTS = 2
TIMEOUT = 600
QPS = int(os.environ.get("MOVE_QPS", 512))
BALLAST = 1024      # MB
REGIONS = 5000
# A completion queue of soft RoCE holds 32767 entries; a link wants 16 of them, and the shim a few.
QUEUES = -(-QPS * 16 // 32000)
# All together, of each end: with more soft RoCE repeats requests by itself.
RATE = 200
# Not READs and atomics, which rxe of Linux 6.1 completes without their data now and then (docs/kernels.md).
MIX = "send,send_imm,write,write_imm"


def test(bed):
    a, b = bed.guests("a", "b", memory=3072)
    with moving(a, b) as mover:
        mover.burned, mover.burned_regions = QPS, QPS + REGIONS + 1
        mover.timeout += QPS // 32      # thousands take longer where the machine has more to do
        pair = Pair(a, b, f"-q {QPS} -n 2 -s 256 -b -r {RATE} -m {MIX} --ballast {BALLAST} --regions {REGIONS}",
                    each_options=f"-i 0.5 --cqs {QUEUES} --stall 120", env=SHIM)
        pair.wait_running(300)
        for _ in range(2):
            mover.swap(b, inflight=False)
            found = len(mover.numbers(b)["qpn"])
            assert found == QPS, f"{found} queue pairs after the move"
            # Each link has had its turn.
            pair.wait_progress(2 * QPS, 300)
        # After both moves a has read of what b has registered, each queue pair some of it.
        _, server = pair.finish(300)
        assert server["samples"] >= 2 * QPS, server
