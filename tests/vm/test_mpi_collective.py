# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Both guests of an MPI job get other HCAs at the same moment, in the middle of large collectives: over
connections, then by datagrams."""

import mpi
from move import moving
from test_move_both_guests import swap_all

TIMEOUT = 280


def test(bed):
    mpi.bring(bed)
    guests = bed.guests("a", "b", memory=512)
    with moving(*guests, comm="mpicheck") as mover:
        for transports in (mpi.RC, mpi.UD):
            job = mpi.start(guests, 1, transports, "-p c")
            mpi.move_in_the_middle(
                job, lambda: swap_all(mover, guests, guests[1:]))
            print(f"  {transports}: {job.finish()}", flush=True)
