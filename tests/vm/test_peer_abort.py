# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A suspend that can not go on is rolled back: when a process does not answer in time, when the
administrator aborts before and after the release. The connections carry traffic on, or again."""

PROCESSORS = 1
TIMEOUT = 240


def start(a, b, client=""):
    jobs = (a.start("fakeshim"), b.start(f"fakeshim {client} {a.mgmt_ip}"))
    for job in jobs:
        job.wait_for("ready 1", 30)
        job.wait_for("traffic ok", 30)
    return jobs


def end(*jobs):
    for job in jobs:
        job.kill(9)
        job.wait(30, check=False)


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()

    # It stops before it says that its gates are closed: the deadline brings everybody back.
    server, client = start(a, b, "-s 2")
    job = b.start("repath suspend rxe0 timeout 2")
    job.wait(60, check=False)
    assert job.status != 0 and "fakeshim" in job.output() and "check" in job.output(), job.output()
    client.wait_for("aborted", 30)
    assert "released" not in client.output() and client.running
    # Whoever could not be suspended can be another time.
    b.run("repath suspend rxe0")
    client.wait_for("released", 10)

    # Aborted when all is released: the process comes back on the old device.
    status = b.run("repath status")
    assert "suspended" in status, status
    b.run("repath abort 2")
    client.wait_for(r"(?s)aborted.*aborted", 60)
    server.wait_for(r"(?s)traffic ok.*traffic ok", 60)
    client.wait_for(r"(?s)traffic ok.*traffic ok", 60)
    end(server, client)

    # A process that dies in the middle does not keep the others: there are none, so it is done.
    server, client = start(a, b, "-s 3 -k")
    b.run("repath suspend rxe0")
    client.wait(30, check=False)
    assert client.status == 3
    server.wait_for("gone", 30)
    end(server)
