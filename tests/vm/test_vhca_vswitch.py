# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""SR-IOV as a vSwitch: the PF of a server in one guest, a VF of it in another one, and one of another
server in a third. Stock OpenSM sees switches with HCAs behind them. A VF whose VM goes to the other
server comes there with its GUID, and so with its LID: a process on it is moved, its peer's address stays."""

import re

from move import SHIM, moving
from move_fabric import FabricMover
from traffic import Pair

GUESTS = 3


class VfMover(FabricMover):
    """What moves is a VF: it keeps its addresses, but not what the HCA gave out."""

    def add_elsewhere(self, guest):
        self.moves += 1
        host = self.spare.pop(0)
        self.fabric.add(host, name=self.device(guest), guest=guest, guid=self.guid)
        self.fabric.wait_active([host])

    def release(self, guest):
        self.guid = self.fabric.guids[self.host(guest)]
        super().release(guest)

    @staticmethod
    def check_numbers(before, after):
        FabricMover.check_numbers({kind: before[kind] for kind in ("qpn", "lkey", "rkey")}, after)
        for kind in ("lid", "gid"):
            assert before[kind] == after[kind], f"{kind}: {before[kind]} became {after[kind]}"


def discovered(pf, fabric):
    """Two switches with a cable between them, and two that are part of an HCA with three functions."""
    net = pf.run("ibnetdiscover -C vhca1")
    for host, lid in ((host, fabric.lid(host)) for host in fabric.hosts):
        assert re.search(rf'# "H{host[1]} vswitch" .*\n(\[.*\n)*.*"{host} vhca" lid {lid} ', net), net
    assert len(re.findall(r"^Switch", net, re.M)) == 4, net
    # VFs that no VM has are there, too, with their LIDs.
    lids = re.findall(r"^\[1\].*\t# lid (\d+) ", net, re.M)
    assert len(set(lids)) == 6, net


def test(bed):
    fabric = bed.fabric("mesh:2,vswitch=2", memory=320,
                        guests={"pf": ["H1"], "vm1": ["H1v1"], "vm2": ["H2v1"]})
    pf, vm1, vm2 = fabric.guests
    discovered(pf, fabric)
    with moving(pf, vm1, vm2, mover=VfMover(fabric, spare=["H1v2"])) as mover:
        pair = Pair(vm1, vm2, "-q 4 -n 8 -b -k 4 -m all --vary -s 20000", env=SHIM)
        pair.wait_running()
        mover.swap(vm2)
        pair.wait_progress(50)
        pair.finish()
