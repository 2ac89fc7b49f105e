# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Descriptors that were put into epoll (level and edge), poll, select, or made non-blocking once,
at the start, go on bringing events after a move, at both ends; asynchronous events too."""

from move import SHIM, moving
from traffic import last_json


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b, comm="fdcheck") as mover:
        for number, way in enumerate(("epoll", "block")):
            port = 18700 + number
            server = a.start(f"exec env {SHIM} fdcheck -p {port} -a {way}")
            client = b.start(f"exec env {SHIM} fdcheck -p {port} -a {way} {a.mgmt_ip}")
            for job in (server, client):
                job.wait_for(r'"msgs":\d\d\d')
            for guest in (b, a):
                mover.swap(guest, inflight=False)
                before = {job: last_json_count(job) for job in (server, client)}
                for job, count in before.items():
                    wait_beyond(job, count + 100)
            before = last_json(client.output()).get("async_events", 0)
            b.run("ip address add 10.0.7.7/24 dev rdma0")
            client.wait_for("GID")
            client.kill(15)
            for job in (client, server):
                job.wait(60, check=False)
                assert job.status == 0, job.output()[-2000:]
                end = last_json(job.output())
                for name, counts in end["ways"].items():
                    assert counts["events"] <= counts["arms"], (name, counts)
            assert last_json(client.output())["async_events"] > before


def last_json_count(job):
    from traffic import json_lines
    return json_lines(job.output(), "msgs")[-1]["msgs"]


def wait_beyond(job, count, timeout=60):
    import time
    end = time.monotonic() + timeout
    while last_json_count(job) < count:
        assert job.running and time.monotonic() < end, job.output()[-2000:]
        time.sleep(0.1)
