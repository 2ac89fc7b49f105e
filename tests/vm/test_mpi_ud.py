# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An MPI job whose ranks send each other datagrams goes on while its guests are moved: those who
send to a queue pair that has moved are told where it is. One is away for longer than UCX waits by itself
for an answer to a datagram, 30 s."""

import mpi
from move import moving

TIMEOUT = 400
PATIENCE = 30       # seconds: UCX's own


def away(mover, guest):
    """Migrated, and for so long without a device."""
    op = mover.suspend(guest)
    mover.release(guest)
    guest.migrate()
    guest.run(f"sleep {PATIENCE + 10}", timeout=PATIENCE + 70)
    mover.new_device(guest)
    mover.resume(guest, op)


def test(bed):
    mpi.bring(bed)
    a, b = bed.guests("a", "b", memory=512)
    with moving(a, b, comm="mpicheck") as mover:
        job = mpi.start([a, b], 2, mpi.UD)
        # Between two datagrams nothing may be under way.
        mpi.move_in_the_middle(job, lambda: mover.migrate(a, inflight=False))
        mpi.move_in_the_middle(job, lambda: away(mover, b))
        print(f"  {job.finish()}", flush=True)
