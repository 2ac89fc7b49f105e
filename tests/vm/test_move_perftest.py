# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's own perftest and ibv_rc_pingpong, unmodified, are moved in full run: polling and events,
1 and 16 queue pairs, client and server. They go on and end with their normal report."""

import re

from move import SHIM, moving

TIMEOUT = 900
SECONDS = 20

# program, options, the end that is moved. All run both ways: a passive end has nothing under way.
# Waiting for events perftest runs for a number of messages, not for a time.
RUNS = [
    ("ib_write_bw", f"-s 4096 -t 16 -D {SECONDS}", "client"),
    ("ib_write_bw", f"-s 1024 -q 16 -t 4 -D {SECONDS}", "server"),
    ("ib_send_bw", "-s 1024 -t 16 -r 64 -n 40000 -e", "client"),
    ("ib_send_bw", f"-s 1024 -q 16 -t 4 -r 32 -D {SECONDS}", "client"),
    ("ib_read_bw", "-s 1024 -t 16 -n 40000 -e", "client"),
    ("ib_read_bw", f"-s 1024 -q 16 -t 4 -D {SECONDS}", "server"),
    ("ib_atomic_bw", "-t 16 -n 60000 -e", "client"),
    ("ib_atomic_bw", f"-q 16 -t 4 -D {SECONDS}", "client"),
]


def packets(guest):
    return int(guest.run("cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts"))


def wait_traffic(guest, count=200):
    goal = packets(guest) + count
    guest.wait_until(f"[ $(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts)"
                     f" -gt {goal} ]")


def start(server, client, command):
    """Both ends of an unmodified program under the shim; nice, as some poll on the only CPU."""
    command = f"exec nice -n 19 env {SHIM} {command}"
    jobs = [server.start(command)]
    server.wait_until("netstat -ltn | grep -q ':1[89]515'")
    jobs.append(client.start(f"{command} {server.mgmt_ip}"))
    return jobs


def move_in_full_run(mover, jobs, mover_guest, other):
    wait_traffic(other)
    mover.swap(mover_guest)
    wait_traffic(mover_guest)
    assert all(job.running for job in jobs), "ended before the move did: it proves nothing"
    for job in jobs:
        job.wait(120)


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for program, options, end in RUNS:
            mover.comm = program
            moved, other = (b, a) if end == "client" else (a, b)
            jobs = start(a, b, f"{program} -d rxe0 -x 1 -F -b {options}")
            move_in_full_run(mover, jobs, moved, other)
            report = re.search(r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s*$", jobs[1].output(), re.M)
            assert report, f"{program} has no report:\n{jobs[1].output()}"
            assert float(report.group(1)) > 0, report.group(0)
            print(f"  {program} {options}: {report.group(0).strip()}", flush=True)
        mover.comm = "ibv_rc_pingpong"
        for options in ("-e -c", "-c -s 65536"):
            jobs = start(a, b, f"ibv_rc_pingpong -d rxe0 -g 1 -n 5000 {options}")
            move_in_full_run(mover, jobs, b, a)
            assert "5000 iters in" in jobs[1].output(), jobs[1].output()
            assert "invalid data" not in jobs[0].output() + jobs[1].output()
