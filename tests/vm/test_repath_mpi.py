# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Open MPI over UCX on the papers' 3x2 mesh while links go down: what b_eff, IS and EP do (mpicheck's rings,
integer sort and gauss), a rank on each of six HCAs, results verified. No link fails, or S2-S5 does at 30 %
of the run, or S3-S4 as well at 60 %; LASH takes a second lane with the first fault and gives it back with
the second. The module moves the ranks' queue pairs; the seconds that each run took are printed.

MPI_PARTS=rig chooses among them by mpicheck's letters."""

import os
import time

import mpi
from rc_flows import slow_links
from test_notice_heard import wait_subscribed
from test_repath_mesh import count_moves, explain, lanes, wait_lanes
from test_vhca_deadlock import NET

PENDING = "a table of measurements, of minutes; repath_mpi_fault has one fault and the rings"

TIMEOUT = 900
# The fabric is as busy as a guest: alone.
GUESTS = 2

FAULTS = ('"S2"[3]', '"S3"[2]')
# (part of mpicheck, rounds); messages of the rings are longer than what switches can hold.
PROGRAMS = {"rings": ("r -m 131072", 36), "integer sort": ("i -k 131072", 12), "gauss": ("g", 40)}
PARTS = os.environ.get("MPI_PARTS") or "rig"
TRANSPORTS = "rc_verbs,ud_verbs:aux,self"
# There is no shim that would hide the module's events; UCX calls all that it does not know an error.
MIGRATED = r"UCX  ERROR IB Async event on vhca\d: path migrated on QPN"


def start(fabric, program, rounds):
    part, _ = PROGRAMS[program]
    return mpi.start([fabric.guest], 6, TRANSPORTS, f"-p {part} -n {rounds}", plain=True,
                     device="vhca$((OMPI_COMM_WORLD_RANK + 1))")


def wait_round(job, wanted, patience=120):
    end = time.monotonic() + patience
    while job.rounds < wanted:
        assert job.job.running, job.job.output()[-3000:]
        if time.monotonic() > end:
            raise TimeoutError(job.job.output()[-3000:])
        time.sleep(0.1)


def play(fabric, program, faults, rounds):
    """(seconds, queue pairs moved, packets by VL after the first fault)"""
    moved, start_lanes = count_moves(fabric), {}
    job = start(fabric, program, rounds)
    for number, link in enumerate(FAULTS[:faults]):
        wait_round(job, rounds * 3 * (number + 1) // 10)
        if not number:
            start_lanes = lanes(fabric)
        fabric.command(f"Unlink {link}")
    last = job.wait(300, also=MIGRATED)
    used = {vl: n - start_lanes.get(vl, 0) for vl, n in lanes(fabric).items()} if faults else {}
    return last["seconds"], count_moves(fabric) - moved, used


def mend(fabric, faults):
    routings = fabric.repath_status()["paths"]["routings"]
    for link in FAULTS[:faults]:
        fabric.command(f"ReLink {link}")
    while fabric.repath_status()["paths"]["routings"] == routings:
        time.sleep(0.5)
    wait_lanes(fabric, 1)


def judged(fabric, program, faults, rounds):
    """As play(), with what must be true of it: the seconds."""
    seconds, moved, used = play(fabric, program, faults, rounds)
    print(f"  {program}, {faults} faults: {seconds} s, {moved} queue pairs moved, packets by "
          f"VL after the first: {used}", flush=True)
    if faults:
        assert moved, "no queue pair was moved"
        assert used.get(1, 0) > 20, f"the new lane is not used: {used}"
    return seconds


def prepare(bed):
    """The mesh, with slow links, whose hosts listen; ranks can be started."""
    mpi.bring(bed)
    with open(NET) as f:
        fabric = bed.fabric(f.read(), opensm="-R lash -Q", repath="method auto", memory=1280)
    fabric.guest.load_repath()
    wait_subscribed(fabric.guest, fabric.hosts.values())
    slow_links(fabric)
    wait_lanes(fabric, 1)
    return fabric


def table(fabric):
    for program in (name for name, (part, _) in PROGRAMS.items() if part[0] in PARTS):
        took = []
        for faults in range(3):
            took.append(judged(fabric, program, faults, PROGRAMS[program][1]))
            if faults:
                mend(fabric, faults)
        print(f"  {program}: " + " ".join(f"{seconds:.1f}" for seconds in took), flush=True)


def test(bed):
    fabric = prepare(bed)
    try:
        table(fabric)
    except Exception:
        explain(fabric)
        raise
