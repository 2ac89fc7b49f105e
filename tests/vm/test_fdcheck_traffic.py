# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""fdcheck is right about descriptors that behave: all ways to wait, and asynchronous events,
without repath."""

from traffic import last_json


def test(bed):
    a, b = bed.guests("a", "b")
    for number, way in enumerate(("epoll", "poll", "block")):
        server = a.start(f"exec fdcheck -a {way} -p {18700 + number}")
        client = b.start(f"exec fdcheck -a {way} -p {18700 + number} {a.mgmt_ip}")
        for job in (server, client):
            job.wait_for(r'"msgs":\d\d\d')
        b.run("ip address add 10.0.7.7/24 dev rdma0")
        client.wait_for("GID")
        b.run("ip address del 10.0.7.7/24 dev rdma0")
        (client if number else server).kill(15)
        for job in (client, server):
            job.wait(60, check=False)
            assert job.status == 0, job.output()
            end = last_json(job.output())
            assert end["ok"], end
            for name, counts in end["ways"].items():
                assert counts["received"] > 10, (name, counts)
                assert 0 < counts["events"] <= counts["arms"], (name, counts)
        assert last_json(client.output())["async_events"] >= 2, client.output()
