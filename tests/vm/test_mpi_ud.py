# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An MPI job whose ranks send each other datagrams goes on while its guests are moved: those who
send to a queue pair that has moved are told where it is."""

import mpi
from move import moving

TIMEOUT = 280


def test(bed):
    mpi.bring(bed)
    a, b = bed.guests("a", "b", memory=512)
    with moving(a, b, comm="mpicheck") as mover:
        job = mpi.start([a, b], 2, mpi.UD)
        # Between two datagrams nothing may be under way.
        mpi.move_in_the_middle(job, lambda: mover.migrate(a, inflight=False))
        mpi.move_in_the_middle(job, lambda: mover.migrate(b, inflight=False))
        print(f"  {job.finish()}", flush=True)
