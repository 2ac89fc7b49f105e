# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""repath-migrate takes a guest to another QEMU while unmodified perftest writes from it, or to it, over
InfiniBand by LID. Its HCA goes and comes with the NIC that is exchanged, and the new one has another
place in the fabric: LID, GID, queue pair numbers and keys change. perftest ends as it always does."""

import agent
from move import moving
from move_fabric import MigratingMover
from unmodified import bandwidth_report, start, wait_traffic

COMMAND = "ib_write_bw -s 4096 -t 16 -D 30 -F -b"


def test(bed):
    fabric = bed.fabric("mesh:3", guests={"a": ["H1"], "b": ["H2"]})
    a, b = fabric.guests
    b.plug("rdma")
    serving = agent.serve(b)
    with moving(a, b, mover=MigratingMover(fabric, spare=["H3"], comm="ib_write_bw")) as mover:
        for server, client, mode in ((a, b, "early"), (b, a, "late")):
            jobs = start(server, client, COMMAND)
            wait_traffic(a)
            mover.migrate(b, mode)
            wait_traffic(b)
            assert all(job.running for job in jobs), "ended before the move did: it proves nothing"
            for job in jobs:
                text = job.wait(90)
                assert " LID 0x" in text and "GID" not in text, text
            print(f"  {bandwidth_report(jobs[1])}", flush=True)
    assert serving.running, serving.output()
