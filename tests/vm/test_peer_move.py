# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The module's part of a move, with fakeshim in the shim's place: connections become READY, a
suspend and a resume go through their stages, and each connection leads to its own other end
afterwards, whichever end moves."""

TIMEOUT = 240
QPS = 4


def wait_count(job, word, count, timeout=60):
    """@job has said @word @count times."""
    job.wait_for(rf"(?s)({word}.*){{{count}}}", timeout)


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
    server = a.start(f"fakeshim -q {QPS} -b 30000")
    client = b.start(f"fakeshim -q {QPS} -b 30000 {a.mgmt_ip}")
    for job in (server, client):
        job.wait_for(rf"ready {QPS}", 30)
        job.wait_for("traffic ok", 30)

    moves = ((b, client), (a, server), (b, client))
    for count, (guest, job) in enumerate(moves, 1):
        guest.run("repath suspend rxe0")
        assert "released" in job.output()
        assert "rxe0" not in guest.run("repath qp | grep fakeshim || true")
        guest.run("repath resume rxe0")
        for end in (server, client):
            wait_count(end, "resumed", count)
    for job in (server, client):
        text = job.output()
        assert text.count("traffic ok") == 1 + len(moves), text
        assert "refused" not in text, text
        assert job.running
