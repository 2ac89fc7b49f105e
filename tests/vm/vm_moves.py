# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""VMs whose VFs share a port with their server's PF, and that move to other servers with their vGUIDs
(paper VI): three PFs in one guest, as three servers, and two VMs."""

from hypervisor import give_agent, relay
from move_fabric import FabricMover
from test_notice_heard import wait_subscribed

VGUID = 0x0002c9ff00000001
PFS = ("vhca1", "vhca2", "vhca3")


class VfMover(FabricMover):
    """What moves is a VF: its GID stays, and nothing else."""

    def release(self, guest):
        host = self.host(guest)
        self.vguid, self.guid = self.fabric.vguid(host), self.fabric.guids[host]
        self.fabric.remove(host)
        self.fabric.set_vguid(host, "none")

    def add_elsewhere(self, guest):
        self.moves += 1
        host = self.spare.pop(0)
        self.fabric.set_vguid(host, self.vguid)
        self.fabric.add(host, name=self.device(guest), guest=guest, guid=self.guid)
        self.fabric.wait_active([host])

    @staticmethod
    def check_numbers(before, after):
        assert before.pop("gid") == after["gid"], (before, after)
        FabricMover.check_numbers(before, after)


class Relays:
    """Of each server to the VM that it has."""

    def __init__(self, pf, *vms):
        self.pf = pf
        self.sockets = {}
        self.jobs = {}
        for vm in vms:
            vm.start("exec repath agent")
            self.sockets[vm] = give_agent(pf, vm)

    def start(self, vm, dev, vf):
        self.jobs[vm] = relay(self.pf, dev, (self.sockets[vm], vf))

    def stop(self, vm):
        job = self.jobs.pop(vm)
        job.kill(15)
        job.wait(20, check=False)


def servers(bed):
    """VM 1 at server 1, VM 2 at server 3, without the module."""
    return bed.fabric("mesh:3,shared=2", repath="", memory=320, vguids={"H1v1": VGUID},
                      guests={"pf": ["H1", "H2", "H3"], "vm1": ["H1v1"], "vm2": ["H3v1"]})


def start_relays(fabric):
    """The module is loaded; all servers listen, and tell their VMs when this returns."""
    pf, vm1, vm2 = fabric.guests
    wait_subscribed(pf, PFS)
    relays = Relays(pf, vm1, vm2)
    relays.start(vm1, "vhca1", "vhca1v1")
    relays.start(vm2, "vhca3", "vhca3v1")
    return relays
