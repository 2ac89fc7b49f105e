# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's own RDMA programs under the shim, moved while they run."""

from move import SHIM


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


def move_in_full_run(mover, jobs, mover_guest, other, inflight=True):
    """Move the process on @mover_guest while both run, and wait for their normal end."""
    wait_traffic(other)
    mover.swap(mover_guest, inflight)
    wait_traffic(mover_guest)
    assert all(job.running for job in jobs), "ended before the move did: it proves nothing"
    for job in jobs:
        job.wait(120)
