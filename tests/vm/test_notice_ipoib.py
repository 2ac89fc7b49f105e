# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""IPoIB is told that paths have changed, and hears it: it asks for its paths again, and joins its groups
anew. Nobody else hears of it, the module neither."""

import re
import time

from test_notice_heard import Manager, count, wait_count, wait_subscribed

PROCESSORS = 1


# The fabric is as busy as a guest: alone.
GUESTS = 2


BROADCAST = "ff12:401b:ffff:0:0:0:ffff:ffff"


def joined(guest):
    """When the interface of vhca2 joined its broadcast group, by the kernel's clock; None: it is about to."""
    text = guest.run("cat /sys/kernel/debug/ipoib/ib1_mcg")
    found = re.search(rf"GID: {BROADCAST}\n +created: (\d+)\n.*\n +complete: +yes", text)
    return found and int(found[1])


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
    before, since = count(a, "vhca2", "sm-subscribed"), joined(a)
    lids = [fabric.lid(host) for host in ("H1", "H2")]
    manager = Manager(a, lids[1])
    ping = a.start("exec ip netns exec other ping -i 0.1 10.9.0.1")
    for i in range(20):
        assert manager.report(f"serial=1 slid={lids[1]} dlid={lids[0]} sl={i % 3 + 1}")
    wait_count(a, "vhca2", "path-kernel-told", 1)
    end = time.monotonic() + 60
    while joined(a) in (None, since):
        if time.monotonic() > end:
            raise TimeoutError(a.run("cat /sys/kernel/debug/ipoib/ib1_*"))
        time.sleep(0.2)
    replies = ping.output().count(" bytes from ")
    while ping.output().count(" bytes from ") == replies:
        assert ping.running, ping.output()[-500:]
        if time.monotonic() > end:
            raise TimeoutError(ping.output()[-500:])
        time.sleep(0.2)
    ping.kill(9)
    assert count(a, "vhca2", "sm-subscribed") == before
