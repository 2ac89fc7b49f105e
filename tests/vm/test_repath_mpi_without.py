# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What test_repath_mpi plays, without repath and with switches that drop nothing: after the first fault
the rings, which are what b_eff does, stand still, or their queue pairs give up; so does the integer sort. Gauss, which sends hardly
anything, comes to its end.

MPI_PARTS=i, g: the integer sort, gauss; one for each run, as what has filled the switches stays there."""

import time

import mpi
from rc_flows import slow_links
from test_repath_mpi import FAULTS, PARTS, PROGRAMS, start, wait_round
from test_vhca_deadlock import NET, reroute

PENDING = "it belongs to a table of measurements"

TIMEOUT = 600
# The fabric is as busy as a guest: alone.
GUESTS = 2

STILL = 30      # seconds


def test(bed):
    mpi.bring(bed)
    with open(NET) as f:
        fabric = bed.fabric(f.read(), opensm="-R lash -Q", options="-i", memory=1280)
    slow_links(fabric)
    program = next(name for name, (part, _) in PROGRAMS.items() if part[0] == PARTS[0])
    rounds = PROGRAMS[program][1]
    job = start(fabric, program, rounds)
    wait_round(job, rounds * 3 // 10)
    reroute(fabric)
    at, since = job.rounds, time.monotonic()
    while job.job.running and time.monotonic() < since + STILL:
        if job.rounds != at:
            at, since = job.rounds, time.monotonic()
        time.sleep(0.5)
    at = job.rounds
    print(f"  {program}, {FAULTS[0]} down: " + (
        f"nothing for {STILL} s after round {at} of {rounds}" if job.job.running else
        f"ended after round {at} of {rounds}: {job.job.output()[-300:]}"), flush=True)
    assert (at < rounds) == (program != "gauss"), "it came to its end" if at == rounds else "it did not come to its end"
    print(fabric.command("Deadlock"), flush=True)
    job.job.kill(9)
