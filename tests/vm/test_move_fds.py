# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Descriptors that were put into epoll (level and edge), poll, select, or made non-blocking once,
at the start, go on bringing events after a move, at both ends; asynchronous events too."""

import time

from move import SHIM, moving
from traffic import json_lines, last_json, wait_more


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
                wait_more((server, client), 100)
            before = len(json_lines(client.output(), "async"))
            b.run("ip address add 10.0.7.7/24 dev rdma0")
            time.sleep(1)
            client.kill(15)
            for job in (client, server):
                job.wait(60, check=False)
                assert job.status == 0, job.output()[-2000:]
                end = last_json(job.output())
                for name, counts in end["ways"].items():
                    assert counts["events"] <= counts["arms"], (name, counts)
            assert last_json(client.output())["async_events"] > before

