# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A connection whose other end has died without a word is known to be gone, to the module and to the
process that has the other end: it does not stand in the way of a later suspend."""

TIMEOUT = 180


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
    server = a.start("fakeshim -q 100")
    client = b.start(f"fakeshim -q 100 {a.mgmt_ip}")
    for job in (server, client):
        job.wait_for("ready 100", 60)
    assert "gone" not in a.run("repath connection")
    client.kill(9)
    client.wait(30, check=False)
    a.wait_until("[ $(repath connection | grep -c gone) = 100 ]", 30)
    assert server.running
    server.wait_for("gone", 10)
