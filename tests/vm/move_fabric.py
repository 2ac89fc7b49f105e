# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Moving a process from one software InfiniBand HCA to another one, at another place of the fabric:
LID, GUID, queue pair numbers and keys change.

    fabric = bed.fabric("mesh:4", guests={"a": ["H1"], "b": ["H2"]})
    with moving(*fabric.guests, mover=FabricMover(fabric, spare=["H3", "H4"])) as mover:
        mover.swap(b)

MigratingMover has the guest's machine migrated, too.
"""

import agent
import move
from migrate import Migration


class FabricMover(move.Mover):
    """fabric: with one HCA in each guest; spare: hosts of the topology that have none."""

    def __init__(self, fabric, spare, comm="rcheck"):
        super().__init__(comm)
        self.fabric = fabric
        self.spare = list(spare)
        self.names = {guest: fabric.hosts[host] for host, guest in fabric.place.items()}

    def device(self, guest):
        return self.names[guest]

    def host(self, guest):
        return next(host for host, where in self.fabric.place.items() if where is guest)

    def release(self, guest):
        host = self.host(guest)
        self.fabric.remove(host)
        self.spare.append(host)

    def add_elsewhere(self, guest):
        """An HCA of the same name, of another host of the topology: its port is ACTIVE."""
        self.moves += 1
        host = self.spare.pop(0)
        self.fabric.add(host, name=self.device(guest), guest=guest)
        self.fabric.wait_active([host])

    def new_device(self, guest):
        self.add_elsewhere(guest)
        self.burn(guest)


# With NICs of its own kind under it QEMU has no HCA: the NIC stands for the HCA's function.
NIC_IS_THERE = r"ls -d /sys/class/net/*/device | grep -qv /mgmt/"


class MigratingMover(FabricMover):
    """By repath-migrate and the agent; the hooks do what a driver's probe() and remove() do."""

    def guid_there(self, old):
        """Of the new HCA; None: its own."""

    def comes(self, old, new, name):
        """The shell command by which it comes."""
        return self.fabric.add_command(new, name, guid=self.guid_there(old))

    def meanwhile(self, old, new):
        """repath-migrate is under way."""

    def migrate(self, guest, mode="early"):
        name, before = self.device(guest), self.numbers(guest)
        old, new = self.host(guest), self.spare.pop(0)
        there = f"/sys/class/infiniband/{name}"
        agent.set_hook(guest, "device-gone",
                       f"[ ! -e {there} ] || {self.fabric.remove_command(name)}")
        agent.set_hook(guest, "device-new", f"""
            until {NIC_IS_THERE}; do usleep 20000; done
            [ -e {there} ] || {self.comes(old, new, name)}""")
        nic = guest.nics[0].mac
        move = Migration(guest, mode, dev=name)
        self.meanwhile(old, new)
        assert move.wait() == 0, move.text
        move.adopt()
        self.fabric.has_gone(old)
        self.fabric.has_come(new, name, guest, self.guid_there(old))
        self.spare.append(old)
        assert [nic.mac for nic in guest.nics] == [move.mac] != [nic]
        after = self.numbers(guest)
        self.check_numbers(before, after)
        self.note_inflight(next(s for s in move.report["stages"] if s["stage"] == "suspend"))
        print(f"  {mode}: {before}\n  became {after}", flush=True)
        return move
