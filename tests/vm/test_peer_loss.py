# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The peer channel holds on a network that loses, doubles, delays and reorders packets: tokens are
exchanged, moves succeed, large messages arrive whole."""

PROCESSORS = 1
TIMEOUT = 300
NETEM = "loss 10% duplicate 10% delay 3ms 3ms"


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
        guest.run(f"tc qdisc add dev rdma0 root netem {NETEM}")
    server = a.start("fakeshim -q 8 -b 32768")
    client = b.start(f"fakeshim -q 8 -b 32768 {a.mgmt_ip}")
    for job in (server, client):
        job.wait_for("ready 8", 90)
    for count in (1, 2):
        b.run("repath suspend rxe0 timeout 60", timeout=90)
        b.run("repath resume rxe0 timeout 60", timeout=90)
        for job in (server, client):
            job.wait_for(rf"(?s)(resumed.*){{{count}}}", 60)
    for job in (server, client):
        assert "refused" not in job.output(), job.output()
    # Requests were really repeated and answered again, else this test shows nothing.
    retries = int(b.run("cat /sys/class/infiniband/rxe0/ports/1/cm_tx_retries/sidr_req"))
    assert retries > 0
