# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An MPI job of four ranks, over the transports that `repath run` leaves to UCX, goes on while its guests are
live-migrated and get other HCAs: that of rank 0, then the other, in the middle of all that mpicheck does."""

import mpi
from move import moving

TIMEOUT = 280


def test(bed):
    mpi.bring(bed)
    a, b = bed.guests("a", "b", memory=512)
    with moving(a, b, comm="mpicheck") as mover:
        job = mpi.start([a, b], 2, None)
        mpi.move_in_the_middle(job, lambda: mover.migrate(a))
        mpi.move_in_the_middle(job, lambda: mover.migrate(b))
        print(f"  {job.finish(also=mpi.WARNS)}", flush=True)
