# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Both ends of the connections are on one host and one device: the module delivers their messages
without the wire, and one suspend moves both."""

TIMEOUT = 180


def cm_requests(guest):
    return int(guest.run("cat /sys/class/infiniband/rxe0/ports/1/cm_tx_msgs/sidr_req"))


def test(bed):
    a = bed.guest("a")
    a.load_repath()
    jobs = a.start("fakeshim -q 3 -b 1000"), a.start("fakeshim -q 3 -b 1000 127.0.0.1")
    for job in jobs:
        job.wait_for("ready 3", 30)
    for count in (1, 2):
        a.run("repath suspend rxe0")
        for job in jobs:
            assert job.output().count("released") == count, job.output()
        a.run("repath resume rxe0")
        for job in jobs:
            job.wait_for(rf"(?s)(resumed.*){{{count}}}", 30)
    assert cm_requests(a) == 0
