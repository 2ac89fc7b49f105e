# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A suspend is refused by name, before anything is touched: a process without the shim, a peer
without the shim, a peer's host without the module, a process or a peer that says no; a dry run
only asks, and force kills."""

TIMEOUT = 300


def pair(a, b, server="", client=""):
    jobs = (a.start(f"fakeshim {server}"), b.start(f"fakeshim {client} {a.mgmt_ip}"))
    for job in jobs:
        job.wait_for("traffic ok", 30)
    return jobs


def end(*jobs):
    for job in jobs:
        job.kill(9)
        job.wait(30, check=False)


def refused(guest, *words):
    """suspend fails, with all of @words in what it says."""
    job = guest.start("repath suspend rxe0")
    job.wait(60, check=False)
    assert job.status != 0, job.output()
    for word in words:
        assert word in job.output(), (word, job.output())


def test(bed):
    a, b = bed.guests("a", "b")
    b.load_repath()

    # No module there.
    jobs = pair(a, b, server="-u")
    refused(b, "fakeshim", "10.0.0.1", "does not answer")
    end(*jobs)

    a.load_repath()
    jobs = pair(a, b, server="-u")
    refused(b, "fakeshim", "10.0.0.1", "has no libibrepath.so")
    end(*jobs)

    jobs = pair(a, b, client="-u")
    refused(b, "fakeshim", "rxe0", "without libibrepath.so")
    # By force it goes, and what stands in the way is killed.
    assert jobs[1].running
    b.run("repath suspend rxe0 force")
    jobs[1].wait(10, check=False)
    assert jobs[1].status == 128 + 9 or jobs[1].status == -9, jobs[1].status
    assert "will be killed" in b.run("repath status")
    b.run("repath resume rxe0")
    end(*jobs)

    jobs = pair(a, b, client="-r 'PID and two dozen UD queue pairs'")
    jobs[1].wait_for("ready 1", 30)
    refused(b, "fakeshim", "two dozen UD queue pairs")
    end(*jobs)

    jobs = pair(a, b, server="-p 'the peer has a shared receive queue'")
    jobs[1].wait_for("ready 1", 30)
    refused(b, "fakeshim", "shared receive queue")
    # What was refused can be asked again, and nothing was touched.
    refused(b, "fakeshim", "shared receive queue")
    assert all(job.running and "gate" not in job.output() for job in jobs)
    end(*jobs)

    jobs = pair(a, b)
    jobs[1].wait_for("ready 1", 30)
    b.run("repath suspend rxe0 dry-run")
    assert all(job.running and "gate" not in job.output() for job in jobs)
    # What a dry run asked is over: a suspend follows at once.
    b.run("repath suspend rxe0")
    refused(b, "suspended")
    end(*jobs)
