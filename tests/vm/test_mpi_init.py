# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest is moved while the MPI job in it still connects its ranks, that of rank 0 by datagrams and another one by
RC, and then all three guests of eight ranks at once. The addresses go along: who has not been connected
yet has nothing else to find his peers by."""

import time

import mpi
from move import LONG, moving, repath
from test_move_both_guests import new_device, release, swap_all

TIMEOUT = 400
TRIES = 4
RANKS = [2, 3, 3]


def with_queue_pairs(guest):
    """How many ranks in @guest have got so far."""
    return len({qp["pid"] for qp in repath(guest, "qp")[1] if qp.get("comm") == "mpicheck"})


def suspend_soon(guest, job, ranks):
    """Suspend @guest as soon as all its ranks have queue pairs: the operation. Who looks for an HCA
    while there is none finds none, and can not run."""
    end = time.monotonic() + 60
    while with_queue_pairs(guest) < ranks:
        assert job.job.running, job.job.output()
        if time.monotonic() > end:
            raise TimeoutError(job.job.output())
    while True:
        status, op, text = repath(guest, "suspend rxe0 timeout 30")
        if status == 0:
            return op
        # Somebody has just connected, or has not yet: then nothing is touched.
        assert status == 4, text
        assert job.job.running, job.job.output()


def during_init(mover, guests, moved, transports):
    """Move the guest @moved before MPI_Init has returned: the job."""
    for _ in range(TRIES):
        job = mpi.start(guests, RANKS, transports)
        op = suspend_soon(moved, job, RANKS[guests.index(moved)])
        early = not job.begun
        release(mover, moved)
        moved.migrate()
        new_device(mover, moved, True)
        mover.resume(moved, op)
        if early:
            return job
        job.finish()
    raise AssertionError(f"MPI_Init was over before the suspend was, {TRIES} times")


def test(bed):
    mpi.bring(bed)
    guests = bed.guests("a", "b", "c", memory=768)
    with moving(*guests, comm="mpicheck") as mover:
        job = during_init(mover, guests, guests[0], mpi.UD)
        job.wait_rounds(3)
        print(f"  {job.finish()}", flush=True)
        job = during_init(mover, guests, guests[1], mpi.RC)
        if LONG:
            job.wait_rounds(12)
        mpi.move_in_the_middle(job, lambda: swap_all(mover, guests, guests))
        print(f"  {job.finish()}", flush=True)
