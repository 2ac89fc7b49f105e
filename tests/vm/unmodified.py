# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's own RDMA programs under the shim, moved while they run."""

import re

from move import SHIM
from traffic import Pair


# Of the one device there is, rxe or an InfiniBand one.
PACKETS = ("cat $(ls /sys/class/infiniband/*/ports/1/hw_counters/rcvd_pkts"
           " /sys/class/infiniband/*/ports/1/counters/port_rcv_packets 2>/dev/null | head -n 1)")


def wait_traffic(guest, count=200):
    goal = int(guest.run(PACKETS)) + count
    guest.wait_until(f"[ $({PACKETS}) -gt {goal} ]")


def start(server, client, command):
    """Both ends of an unmodified program under the shim; nice, as some poll on the only CPU."""
    command = f"exec nice -n 19 env {SHIM} {command}"
    jobs = [server.start(command)]
    server.wait_until("netstat -ltn | grep -q ':1[89]515'")
    jobs.append(client.start(f"{command} {server.mgmt_ip}"))
    Pair.jobs_made += jobs
    return jobs


def move_in_full_run(mover, jobs, mover_guest, other, inflight=True):
    """Move the process on @mover_guest while both run, and wait for their normal end."""
    wait_traffic(other)
    mover.swap(mover_guest, inflight)
    wait_traffic(mover_guest)
    assert all(job.running for job in jobs), "ended before the move did: it proves nothing"
    for job in jobs:
        job.wait(120)


def bandwidth_report(job):
    """The line of figures that perftest ends with. Its iterations are looked at: bandwidth is 0 where a
    busy machine keeps perftest from measuring the processor's clock."""
    text = job.output()
    report = re.search(r"^\s*\d+\s+(\d+)\s+[\d.]+\s+[\d.]+\s+[\d.]+\s*$", text, re.M)
    assert report and int(report[1]) > 0, text
    return report[0].strip()
