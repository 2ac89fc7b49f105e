#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A GUID that goes to another port is a VM that has moved: every host is told once, by the record that it
has to the new place. One that comes for the first time, or comes back, is none."""

import sys

from hosts import HOST, Hosts
from managed import Failed, Managed, expect

KIND, MOVED = 0x0f, 2
DGID, DLID, SL, MTU, RATE = (1 << bit for bit in (2, 4, 15, 17, 19))
STATIC = 0x1063


class Servers(Hosts):
    """Hosts whose ports have GUIDs for VMs."""

    def guid(self, act, name, index, guid=0):
        """What the SA says that it is now."""
        return int(self.fabric.run(name, HOST, "guid", act, str(index), str(guid)), 0)

    def seen(self, **counts):
        """Waits until the plugin has looked and found that many."""
        def so():
            now = self.fabric.status()["moves"]
            return all(now[name] == count for name, count in counts.items())
        self.wait(so, f"seen: {counts}")

    def told(self):
        """Notices of moves so far, each host's, without repetitions."""
        return {name: list({h.number: h for h in self.heard(name)
                            if h.flags & KIND == MOVED}.values()) for name in self.listeners}


def all_told(servers, since, guid, to):
    """Exactly one notice to each host; that of the SA's path from there."""
    def new():
        return {name: heard[len(since[name]):] for name, heard in servers.told().items()}
    servers.wait(lambda: all(new().values()), "told of the move")
    servers.settle()
    records = servers.records()
    for name, heard in new().items():
        expect(len(heard) == 1, name, "was told once", heard)
        expect(heard[0].trap == 69 and heard[0].guid == guid and
               heard[0].dlid == servers.lid[to], name, "was told where it is now", heard)
        record = records.get((servers.lid[name], servers.lid[to]))
        expect(heard[0].mask & (DGID | DLID | SL | MTU | RATE) == DGID | DLID | SL | MTU | RATE and
               (name == to or record == (heard[0].sl, heard[0].mtu, heard[0].rate)), name, heard, record)


def move(servers, guid, index, a, b):
    since = servers.told()
    servers.guid("delete", a, index)
    expect(servers.guid("set", b, index, guid) == guid, "set at", b)
    all_told(servers, since, guid, b)


def static(servers):
    expect(servers.guid("set", "H2", 1, STATIC) == STATIC, "set at H2")
    servers.seen(present=1, boots=1)
    move(servers, STATIC, 1, "H2", "H3")
    servers.guid("delete", "H3", 1)
    servers.seen(present=0, absent=1)
    servers.guid("set", "H3", 1, STATIC)
    servers.seen(present=1, absent=0, reboots=1)
    # Set before delete: OpenSM has it at one port only, and says so to who asks too early.
    expect(servers.guid("set", "H4", 1, STATIC) == 0, "a GUID is at one port")
    servers.seen(present=1, moves=1)
    move(servers, STATIC, 1, "H3", "H4")
    # After a while in between, and back to where it was.
    since = servers.told()
    servers.guid("delete", "H4", 1)
    servers.seen(absent=1)
    servers.guid("set", "H2", 1, STATIC)
    all_told(servers, since, STATIC, "H2")
    now = servers.fabric.status()["moves"]
    expect(now["moves"] == 3 and now["boots"] == 1 and now["reboots"] == 1, "and no other one", now)


def many(servers):
    """Notices are as many as servers, whatever the number of VMs on them."""
    before = servers.fabric.status()["moves"]
    for index in range(2, 6):
        servers.guid("set", "H5", index, STATIC + index)
    servers.seen(present=5)
    for index in range(2, 6):
        move(servers, STATIC + index, index, "H5", "H6")
    after = servers.fabric.status()["moves"]
    expect(after["moves"] - before["moves"] == 4, before, after)
    expect(after["notices"] - before["notices"] == 4 * len(servers.listeners), before, after)


def dynamic(servers):
    """A VM that moves gets the GUID of its new slot: there is nobody who knows the old one."""
    since = servers.told()
    present = servers.fabric.status()["moves"]["present"]
    old = servers.guid("set", "H2", 7)
    servers.seen(present=present + 1)
    servers.guid("delete", "H2", 7)
    new = servers.guid("set", "H3", 7)
    expect(old and new and old != new, "each slot has its own GUID", old, new)
    servers.seen(present=present + 1, absent=1)
    servers.settle()
    expect(servers.told() == since, "no notice", servers.told())


def main():
    with Managed("mesh:3x2", "-R lash", moves_interval=20) as fabric, Servers(fabric) as servers:
        servers.settle()
        static(servers)
        many(servers)
        dynamic(servers)
        try:
            servers.guid("set", "H2", 0, STATIC)
        except Failed:
            return 0
        expect(False, "GUID 0 is the port's own")
    return 1


if __name__ == "__main__":
    sys.exit(main())
