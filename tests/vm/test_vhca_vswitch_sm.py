# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A VM goes to another server with its VF, and OpenSM's plugin is told before and after: addresses and
connections stay, forwarding entries have changed places when the VF comes, and nothing is routed."""

import json

from move import SHIM, moving
from test_vhca_vswitch import VfMover
from traffic import Pair

GUESTS = 3
SOCKET = "/run/osm-repath-vm.sock"
FIRST_VF = 3            # its port of the vSwitch: the cable and the PF come first


class ToldMover(VfMover):
    """An orchestrator that says what it does."""

    def say(self, words):
        pf = self.fabric.guest
        return json.loads(pf.run(f"repath -j sm vm {words} socket {SOCKET}", timeout=60))

    def place(self, host):
        """A VF's, as the plugin wants it: H1v2 is port 4 of H1-hca."""
        server, _, number = host.partition("v")
        dump = self.fabric.command(f'Dump "{server}-hca"')
        guid = dump.split("nodeguid ")[1].split()[0]
        return f"0x{guid}/{FIRST_VF - 1 + int(number)}"

    def release(self, guest):
        self.vf = self.fabric.port_guid(self.host(guest))
        self.begun = self.say(f"begin {self.vf:#x} {self.place(self.spare[0])}")
        super().release(guest)

    def add_elsewhere(self, guest):
        self.ended = self.say(f"end {self.vf:#x}")
        super().add_elsewhere(guest)


def test(bed):
    fabric = bed.fabric("mesh:2,vswitch=2", opensm="-R minhop", memory=320,
                        repath=f"vswitch prepopulated\nvswitch_socket {SOCKET}",
                        guests={"pf": ["H1"], "vm1": ["H1v1"], "vm2": ["H2v1"]})
    pf, vm1, vm2 = fabric.guests
    with moving(pf, vm1, vm2, mover=ToldMover(fabric, spare=["H1v2"])) as mover:
        pair = Pair(vm1, vm2, "-q 4 -n 8 -b -k 4 -m all --vary -s 20000", env=SHIM)
        pair.wait_running()
        before = fabric.repath_status()["vms"]
        lid = fabric.lid("H2v1")
        mover.swap(vm2)
        pair.wait_progress(50)
        pair.finish()
        after = fabric.repath_status()["vms"]
    assert mover.begun["state"] == "begun" and mover.ended["state"] == "moved", mover.ended
    assert mover.ended["lid"] == lid and mover.ended["switches"] >= 1, mover.ended
    assert not mover.ended["lid_smps"] and not mover.ended["guid_smps"], mover.ended
    assert after["computed"] == before["computed"] and after["reused"] > before["reused"], after
    assert after["expected"] == 0, after
