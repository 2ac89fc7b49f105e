# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A VM with its VF is live-migrated to another server of a ring that LASH has routed, there and back: its LID, its GID
and its queue pairs come along, and the service level of the paths to its peer is another one there. OpenSM's plugin
tells the ends, whose modules move the queue pairs to it while they send: no path is computed, and nobody has the shim."""

import re
import time

from move import moving
from rc_flows import service_levels
from test_notice_heard import wait_subscribed
from test_vhca_vswitch_sm import SOCKET, Orchestrator, carry
from tracking import user_qps
from traffic import Pair

PROCESSORS = 1
TIMEOUT = 600
RING = "torus:5,vswitch=1"
VM, THERE = "H2v1", "H3v1"
QPS = 4


class Server(Orchestrator):
    """Knows at which places of the vSwitches VFs are, which change them."""

    def __init__(self, fabric):
        super().__init__(fabric)
        self.places = {}

    def place(self, host):
        return self.places.get(host) or super().place(host)

    def exchange(self, host, other):
        self.places[host], self.places[other] = self.place(other), self.place(host)


def lanes(fabric, lids):
    """Packets that the two have been sent by each other: {VL: packets}."""
    found = {}
    for slid, dlid, vl, packets in re.findall(r"^(\d+) (\d+) VL(\d+) (\d+)$", fabric.command("Paths"), re.M):
        if {int(slid), int(dlid)} == lids:
            found[int(vl)] = found.get(int(vl), 0) + int(packets)
    return found


def told(fabric, vms, lids):
    """Both ends have the level that the SA tells now, which it returns. While OpenSM finds the VF it tells none."""
    end = time.monotonic() + 60
    while True:
        wanted = service_levels(fabric).get(lids)
        found = [qp["sl"] for vm in vms for qp in user_qps(vm).values()]
        if set(found) == {wanted}:
            break
        assert time.monotonic() < end, (wanted, found)
        time.sleep(0.5)
    for vm in vms:
        found = user_qps(vm, "state RTS").values()
        assert len(found) == QPS and all(qp["dlid"] in lids for qp in found), found
    return wanted


def test(bed):
    fabric = bed.fabric(RING, opensm="-R lash -Q", memory=320, repath=f"vswitch prepopulated\nvswitch_socket {SOCKET}",
                        guests={"pf": ["H1"], "vm1": ["H1v1"], "vm2": [VM]})
    vms, server = fabric.guests[1:], Server(fabric)
    with moving(*vms):
        for vm, host in zip(vms, ("H1v1", VM)):
            wait_subscribed(vm, [fabric.hosts[host]])
        lids = fabric.lid("H1v1"), fabric.lid(VM)
        pair = Pair(*vms, f"-q {QPS} -n 8 -b -k 4 -m all --vary -s 20000 -r 200", "-i 0.5 --timeout 19")
        pair.wait_running()
        levels = [told(fabric, vms, lids)]
        for _ in range(2):
            routed = fabric.repath_status()["vms"]["computed"]
            carry(fabric, vms[1], VM, THERE, server)
            server.exchange(VM, THERE)
            levels.append(told(fabric, vms, lids))
            pair.wait_progress(50)
            before = lanes(fabric, set(lids))
            pair.wait_progress(50)
            after = lanes(fabric, set(lids))
            sent = {vl: after[vl] - before.get(vl, 0) for vl in after}
            assert sent[levels[-1]] > 9 * sum(n for vl, n in sent.items() if vl != levels[-1]), (levels, sent)
            assert fabric.repath_status()["vms"]["computed"] == routed, fabric.repath_status()["vms"]
        assert levels[0] == levels[2] != levels[1], levels
        client, _ = pair.finish()
        print(f"  service levels {levels}, rcheck: gap {client['max_gap_ms']} ms, {client['msgs']} messages", flush=True)
