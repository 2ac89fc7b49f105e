# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Moving a process from one software InfiniBand HCA to another one, at another place of the fabric:
LID, GUID, queue pair numbers and keys change.

    fabric = bed.fabric("mesh:4", guests={"a": ["H1"], "b": ["H2"]})
    with moving(*fabric.guests, mover=FabricMover(fabric, spare=["H3", "H4"])) as mover:
        mover.swap(b)
"""

import move


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
