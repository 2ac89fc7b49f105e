# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The kernel's own RC queue pairs, IPoIB's in connected mode, are moved to another lane and back while they carry
traffic, which goes on."""

import json
import time

PROCESSORS = 1
# The fabric is as busy as a guest: alone.
GUESTS = 2

ROUNDS = 10


def connected(guest, dev):
    """The kernel's RC queue pairs of a device that send."""
    return [qp for qp in json.loads(guest.run(f"repath -j qp dev {dev}"))
            if qp["type"] == "RC" and qp["state"] == "RTS" and "pid" not in qp]


def wait_replies(ping, more, patience=60):
    end = time.monotonic() + patience
    wanted = ping.output().count(" bytes from ") + more
    while ping.output().count(" bytes from ") < wanted:
        assert ping.running and time.monotonic() < end, ping.output()[-500:]
        time.sleep(0.2)


def test(bed):
    fabric = bed.fabric("mesh:2", ipoib=True)
    fabric.judged = True
    a = fabric.guest
    a.load_repath()
    devs = [fabric.hosts[host] for host in ("H1", "H2")]
    for dev in devs:
        a.run(f"repath path listen {dev} off")      # the subnet manager has lane 0 only
    # In two network namespaces, or it would all be local.
    a.run("for i in 0 1; do echo connected > /sys/class/net/ib$i/mode; done; "
          "ip netns add other; ip link set ib1 netns other; "
          "ip address add 10.9.0.1/24 dev ib0; ip link set ib0 up; "
          "ip -n other address add 10.9.0.6/24 dev ib1; ip -n other link set ib1 up; "
          "ip -n other link set lo up")
    a.wait_until("ip netns exec other ping -c 1 -W 1 10.9.0.1", timeout=60)
    # More than a datagram of IPoIB holds.
    ping = a.start("exec ip netns exec other ping -i 0.1 -s 4000 10.9.0.1")
    wait_replies(ping, 5)
    before = {dev: connected(a, dev) for dev in devs}
    assert all(before.values()), before
    lids = [fabric.lid(host) for host in ("H1", "H2")]
    for round_ in range(ROUNDS):
        sl = (1, 0)[round_ % 2]
        for dev, dlid in zip(devs, reversed(lids)):
            a.run(f"repath path set {dev}/1 dlid {dlid} sl {sl}")
        for dev in devs:
            a.wait_until(f"! repath qp dev {dev} type RC | grep -v ' sl {sl} '", timeout=60)
        wait_replies(ping, 3)
    for dev in devs:
        now = connected(a, dev)
        assert [qp["qpn"] for qp in now] == [qp["qpn"] for qp in before[dev]], (before, now)
        # The one that sends; another end may only answer.
        assert any(qp.get("moved-by") == "sqd" for qp in now), now
    ping.kill(2)
    ping.wait(30, check=False)
    text = ping.output()
    print("  " + text.splitlines()[-2], flush=True)
    a.run("rmmod ib_repath")
