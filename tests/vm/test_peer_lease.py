# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A host that vanishes with processes suspended is waited for no longer than the lease says; then
its peers are told that their connections are gone."""

import time

PROCESSORS = 1
TIMEOUT = 180


def test(bed):
    a, b = bed.guests("a", "b")
    a.load_repath("peer_lease_s=8")
    b.load_repath()
    server = a.start("fakeshim -q 3")
    client = b.start(f"fakeshim -q 3 {a.mgmt_ip}")
    for job in (server, client):
        job.wait_for("ready 3", 30)
    b.run("repath suspend rxe0")
    b.kill()
    time.sleep(2)
    assert "gone" not in server.output()
    server.wait_for(r"(?s)(gone.*){3}", 60)
    assert a.run("repath connection | grep -c gone").strip() == "3"
