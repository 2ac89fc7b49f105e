# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""IPoIB is told that paths have changed, by an event that the module does not take for another subnet
manager, and loses nothing."""

import re

from test_notice_heard import Manager, count, wait_count, wait_subscribed

# The fabric is as busy as a guest: alone.
GUESTS = 2


def test(bed):
    fabric = bed.fabric("mesh:2", ipoib=True)
    a = fabric.guest
    a.load_repath()
    wait_subscribed(a, ("vhca1", "vhca2"))
    # In two network namespaces, or it would all be local.
    a.run("ip netns add other; ip link set ib1 netns other; "
          "ip address add 10.9.0.1/24 dev ib0; ip link set ib0 up; "
          "ip -n other address add 10.9.0.6/24 dev ib1; ip -n other link set ib1 up; "
          "ip -n other link set lo up")
    a.wait_until("ip netns exec other ping -c 1 -W 1 10.9.0.1", timeout=60)
    before = count(a, "vhca2", "sm-subscribed")
    lids = [fabric.lid(host) for host in ("H1", "H2")]
    manager = Manager(a, lids[1])
    ping = a.start("ip netns exec other ping -c 200 -i 0.05 10.9.0.1")
    for i in range(20):
        assert manager.report(f"serial=1 slid={lids[1]} dlid={lids[0]} sl={i % 3 + 1}")
    wait_count(a, "vhca2", "path-kernel-told", 1)
    said = ping.wait(60)
    assert re.search(r"200 packets transmitted, 200 received", said), said[-300:]
    assert count(a, "vhca2", "sm-subscribed") == before
