# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The module goes with processes registered and connections READY, and comes back; it stays while
processes are suspended, who could not be woken without it; a device goes under it."""

TIMEOUT = 240


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
    jobs = a.start("fakeshim -q 16"), b.start(f"fakeshim -q 16 {a.mgmt_ip}")
    for job in jobs:
        job.wait_for("ready 16", 30)
        job.wait_for("traffic ok", 30)

    b.run("repath suspend rxe0")
    assert b.status("rmmod ib_repath") != 0
    b.run("repath resume rxe0")
    for job in jobs:
        job.wait_for("resumed", 60)

    # Unloaded here; there, nobody answers any more.
    b.run("rmmod ib_repath")
    job = a.start("repath suspend rxe0")
    job.wait(60, check=False)
    assert job.status != 0, job.output()
    for job in jobs:
        job.kill(9)
        job.wait(30, check=False)

    b.load_repath()
    jobs = a.start("fakeshim -q 2"), b.start(f"fakeshim -q 2 {a.mgmt_ip}")
    for job in jobs:
        job.wait_for("ready 2", 30)
    b.run("repath suspend rxe0")
    b.rxe_del("rxe0")
    b.rxe_add("rxe0")
    b.run("repath resume rxe0")
    for job in jobs:
        job.wait_for("resumed", 60)
    # While messages are under way: the other end does not answer any more.
    a.run("ip link set rdma0 down")
    b.start("repath suspend rxe0")
    b.run("rmmod ib_repath || { sleep 5; rmmod ib_repath; }", timeout=30)
