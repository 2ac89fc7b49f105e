# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One process with contexts on two devices, of which one is moved: the other's queue pair goes on all
the time, suspended or not; then the other one; then both at once."""

import time

from move import SHIM, moving
from traffic import json_lines, last_json


def counts(job):
    lines = json_lines(job.output(), "rails")
    return lines[-1]["rails"] if lines else [0, 0]


def next_counts(job, timeout=60):
    """What it counts from now on: the last report may be old."""
    goal = len(json_lines(job.output(), "rails")) + 2
    end = time.monotonic() + timeout
    while len(json_lines(job.output(), "rails")) < goal:
        assert job.running, f"no reports:\n{job.output()[-1500:]}"
        if time.monotonic() > end:
            raise TimeoutError(f"no reports:\n{job.output()[-1500:]}")
        time.sleep(0.1)
    return counts(job)


def wait_more(jobs, rails, messages=50, timeout=60):
    goals = [[counts(job)[rail] + messages for rail in rails] for job in jobs]
    end = time.monotonic() + timeout
    for job, wanted in zip(jobs, goals):
        while any(counts(job)[rail] < goal for rail, goal in zip(rails, wanted)):
            assert job.running, f"rails {rails}:\n{job.output()[-1500:]}"
            if time.monotonic() > end:
                raise TimeoutError(f"rails {rails}:\n{job.output()[-1500:]}")
            time.sleep(0.1)


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        nic = guest.plug("rdma", ip=f"10.0.1.{guest.number}")
        guest.rxe_add("rxe1", nic)
    with moving(a, b, comm="rails") as mover:
        jobs = [a.start(f"exec env {SHIM} rails -d rxe0 -d rxe1"),
                b.start(f"exec env {SHIM} rails -d rxe0 -d rxe1 {a.mgmt_ip}")]
        wait_more(jobs, (0, 1))
        for suspended in ((0,), (1,), (0, 1)):
            ops = [mover.suspend(b, f"rxe{rail}") for rail in suspended]
            others = [rail for rail in (0, 1) if rail not in suspended]
            still = [next_counts(job) for job in jobs]
            if others:
                wait_more(jobs, others, 200)
            nics = {}
            for rail in suspended:
                b.rxe_del(f"rxe{rail}")     # nobody holds it
                nics[rail] = next(n for n in b.nics if n.ip.startswith(f"10.0.{rail}."))
                b.unplug(nics[rail])
            for job, before in zip(jobs, still):
                for rail in suspended:
                    assert next_counts(job)[rail] == before[rail], "it was not suspended"
            for rail, op in zip(suspended, ops):
                mover.moves += 1
                nic = b.plug("rdma", ip=f"10.0.{rail}.{2 + 10 * mover.moves}")
                b.rxe_add(f"rxe{rail}", nic)
                mover.resume(b, op, f"rxe{rail}")
            wait_more(jobs, (0, 1))
        jobs[1].kill(15)
        for job in jobs:
            job.wait(60)
            assert last_json(job.output())["ok"]
