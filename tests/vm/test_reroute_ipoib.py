# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""IPoIB follows the subnet manager to another lane: between H2 and H4 of the papers' mesh, whose path has another
service level when S2-S5 is down. In datagram mode it is told to ask for its path again, in connected mode the
kernel's own RC queue pairs are moved. Its packets are seen on the lane of the path record, by vfabric's counters, and no
more on the other. Then the queue pairs are moved there and back again and again, while they carry traffic, which goes
on."""

import time

from test_repath_mesh import lanes
from test_notice_heard import wait_subscribed
from test_vhca_deadlock import NET
from tracking import repath

PROCESSORS = 1
# The fabric is as busy as a guest: alone.
GUESTS = 2

ROUNDS = 10
HOSTS = "H2", "H4"
DEVS = "vhca2", "vhca4"


def connected(guest, dev):
    """The kernel's RC queue pairs of a device that send."""
    return [qp for qp in repath(guest, f"qp dev {dev} type RC state RTS") if "pid" not in qp]


def replies(ping):
    return ping.output().count(" bytes from ")


def wait_replies(ping, more, patience=60):
    end = time.monotonic() + patience
    wanted = replies(ping) + more
    while replies(ping) < wanted:
        assert ping.running and time.monotonic() < end, ping.output()[-500:]
        time.sleep(0.2)


def last_hops(fabric):
    """Packets by VL to H2, and to H4."""
    return [lanes(fabric, "S" + host[1:], 1) for host in HOSTS]


def wait_lane(fabric, ping, lane, other, patience=60):
    """Until what is sent between the two, both ways, goes by that lane, and not by the other one: there are MADs."""
    end = time.monotonic() + patience
    while True:
        before, answered = last_hops(fabric), replies(ping)
        wait_replies(ping, 20)
        got = [{vl: n - old.get(vl, 0) for vl, n in now.items()} for old, now in zip(before, last_hops(fabric))]
        if all(used.get(lane, 0) >= 20 and used.get(other, 0) < 10 for used in got):
            print(f"  {replies(ping) - answered} answers, packets by VL: {got}", flush=True)
            return
        if time.monotonic() > end:
            raise TimeoutError((lane, got))


def wait_service_level(guest, sl, patience=60):
    """All of them, also those that are in SQD just now."""
    end = time.monotonic() + patience
    while True:
        found = [qp for dev in DEVS for qp in repath(guest, f"qp dev {dev} type RC") if "dlid" in qp and "pid" not in qp]
        if {qp["dev"] for qp in found if qp["state"] == "RTS"} == set(DEVS) and all(qp["sl"] == sl for qp in found):
            return
        if time.monotonic() > end:
            raise TimeoutError((sl, found))
        time.sleep(0.2)


def start_ping(guest, options=""):
    return guest.start(f"exec ip netns exec other ping -i 0.1 {options} 10.9.0.1")


def end_ping(ping):
    ping.kill(2)
    ping.wait(30, check=False)
    print("  " + ping.output().splitlines()[-2], flush=True)


def by_manager(fabric, ping, rc=False):
    """The link goes, and comes."""
    wait_lane(fabric, ping, 0, 1)
    for word, lane in ("Unlink", 1), ("ReLink", 0):
        fabric.command(f'{word} "S2"[3]')
        wait_lane(fabric, ping, lane, 1 - lane)
        if rc:
            wait_service_level(fabric.guest, lane)


def by_hand(fabric, ping):
    guest, lids = fabric.guest, [fabric.lid(host) for host in HOSTS]
    for dev in DEVS:
        guest.run(f"repath path listen {dev} off")      # the subnet manager has lane 0 only
    for round_ in range(ROUNDS):
        sl = (1, 0)[round_ % 2]
        for dev, dlid in zip(DEVS, reversed(lids)):
            guest.run(f"repath path set {dev}/1 dlid {dlid} sl {sl}")
        wait_service_level(guest, sl)
        wait_replies(ping, 3)


def test(bed):
    with open(NET) as f:
        fabric = bed.fabric(f.read(), opensm="-R lash -Q", repath="", ipoib=True, hosts=("H1", *HOSTS))
    a = fabric.guest
    a.load_repath()
    wait_subscribed(a, DEVS)
    # In two network namespaces, or it would all be local. ib0 is the subnet manager's.
    a.run("ip netns add other; ip link set ib2 netns other; "
          "ip address add 10.9.0.1/24 dev ib1; ip link set ib1 up; "
          "ip -n other address add 10.9.0.6/24 dev ib2; ip -n other link set ib2 up; "
          "ip -n other link set lo up")
    a.wait_until("ip netns exec other ping -c 1 -W 1 10.9.0.1", timeout=60)
    ping = start_ping(a)
    by_manager(fabric, ping)
    end_ping(ping)

    a.run("echo connected > /sys/class/net/ib1/mode; "
          "ip netns exec other sh -c 'mount -t sysfs none /mnt && echo connected > /mnt/class/net/ib2/mode; umount /mnt'")
    # More than a datagram of IPoIB holds.
    ping = start_ping(a, "-s 4000")
    wait_replies(ping, 5)
    before = {dev: connected(a, dev) for dev in DEVS}
    assert all(before.values()), before
    by_manager(fabric, ping, rc=True)
    by_hand(fabric, ping)
    for dev in DEVS:
        now = connected(a, dev)
        assert [qp["qpn"] for qp in now] == [qp["qpn"] for qp in before[dev]], (before, now)
        # The one that sends; another end may only answer.
        assert any(qp.get("moved-by") == "sqd" for qp in now), now
    end_ping(ping)
    a.run("rmmod ib_repath")
