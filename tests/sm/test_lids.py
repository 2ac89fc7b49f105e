#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ports get other LIDs: all their peers are told, by each method as it can say it, and of nobody else; also
of one that was not there for a while.

OpenSM keeps the LIDs that it knows: a second plugin changes what it remembers.
"""

import os
import re
import sys
from signal import SIGHUP

from hosts import MOVED, Hosts
from managed import TOP, Managed, expect, until


class Lids(Managed):
    def __init__(self, method):
        super().__init__("mesh:3x2", "-R lash", plugin=f"{TOP}/build:{TOP}/build/tests/sm",
                         conf="event_plugin_name osmrepath otherlids", method=method)

    def environment(self, host):
        return dict(super().environment(host), OTHER_LIDS=f"{self.dir}/other_lids")

    def guids(self):
        """{LID: GUID} of all ports, as OpenSM remembers them."""
        with open(f"{self.dir}/guid2lid", encoding="utf-8") as file:
            return {int(lid, 16): int(guid, 16) for guid, lid in re.findall(r"0x(\w+) 0x(\w+) 0x", file.read())}

    def give(self, hosts, lids):
        """These hosts get these LIDs; returns the GUIDs of their ports."""
        guids = self.guids()
        guids = {name: guids[hosts.lid[name]] for name in lids}
        before = hosts.settle()
        with open(f"{self.dir}/new", "w", encoding="utf-8") as file:
            file.writelines(f"{guids[name]:x} {lid}\n" for name, lid in lids.items())
        os.rename(f"{self.dir}/new", f"{self.dir}/other_lids")
        mark = self.sm_mark()
        self.sm.send_signal(SIGHUP)
        self.wait_sm(mark)
        until(lambda: hosts.settle() > before, "they are routed")
        hosts.lid.update(lids)
        dump = self.command("Dump")
        expect(all(f"lid {lid} " in dump.split(f'"{name}"\t')[1].split("[1]")[1].split("\n")[0]
                   for name, lid in lids.items()), "they are given:", dump)
        return guids


def news(hosts, seen=()):
    """What hosts have heard, without repetitions and what was seen before: {name: [notice]}."""
    return {name: [n for n in {n.number: n for n in hosts.heard(name)}.values() if n not in seen]
            for name in hosts.listeners}


def records(fabric, hosts, heard, moved, olds):
    """One to each peer of each of them, as the SA would tell it, and nothing else."""
    truth = hosts.records()
    for name, notices in heard.items():
        if name in moved:
            expect(not notices, name, "knows it by itself:", notices)
            continue
        expect(sorted(n.dlid for n in notices) == sorted(hosts.lid[to] for to in moved), name, notices)
        for to, guid in moved.items():
            notice, = (n for n in notices if n.dlid == hosts.lid[to])
            expect((notice.trap, notice.flags, notice.guid, notice.old) == (69, MOVED, guid, olds[to]),
                   name, "is told who, and from where:", notice)
            expect(notice.slid == hosts.lid[name], name, "is told of its own path:", notice)
            expect(truth[notice.slid, notice.dlid] == (notice.sl, notice.mtu, notice.rate), notice, truth)
    expect(fabric.status()["paths"]["last_paths"] == len(moved) * (len(hosts.lid) - len(moved)),
           "from all others", fabric.status())


def by_record(method):
    """A port has another LID; or two have each other's, and who goes by a LID alone may mean either."""
    with Lids(method) as fabric:
        with Hosts(fabric) as hosts:
            was = hosts.lid["H4"]
            moved = fabric.give(hosts, {"H4": 40})
            records(fabric, hosts, news(hosts), moved, {"H4": was})
            # H4 has not asked for its subscription at the new LID.
            hosts.leave("H4")
            seen = [n for name in hosts.listeners for n in hosts.heard(name)]
            moved = fabric.give(hosts, {"H5": hosts.lid["H6"], "H6": hosts.lid["H5"]})
            records(fabric, hosts, news(hosts, seen), moved, {"H5": 0, "H6": 0})


def comes_back():
    """A port is not there while hosts are told of others, and comes back with another LID."""
    with Lids("repath-only") as fabric:
        with Hosts(fabric) as hosts:
            was, guid = hosts.lid["H4"], fabric.guids()[hosts.lid["H4"]]
            hosts.fault('Unlink "H4"[1]')
            hosts.fault('Unlink "S2"[4]')
            hosts.fault('ReLink "S2"[4]')
            seen = [n for name in hosts.listeners for n in hosts.heard(name)]
            expect(seen and all(n.dlid != was for n in seen), "of others:", seen)
            with open(f"{fabric.dir}/new", "w", encoding="utf-8") as file:
                file.write(f"{guid:x} 40\n")
            os.rename(f"{fabric.dir}/new", f"{fabric.dir}/other_lids")
            hosts.leave("H4")
            waits = fabric.status()["paths"]["waits"]
            hosts.fault('ReLink "H4"[1]')
            expect(fabric.status()["paths"]["waits"] == waits + 1, "who comes has a link by then", fabric.status())
            hosts.lid["H4"] = 40
            records(fabric, hosts, {name: [n for n in notices if n.dlid == 40]
                                    for name, notices in news(hosts, seen).items()}, {"H4": guid}, {"H4": was})


def by_asking(method, traps):
    """All its peers are told to ask; itself has a subscription again when it has asked for that."""
    with Lids(method) as fabric:
        with Hosts(fabric) as hosts:
            fabric.give(hosts, {"H4": 40})
            for name, notices in news(hosts).items():
                expect([n.trap for n in notices] == ([] if name == "H4" else traps), name, notices)
                expect(not any(n.mask for n in notices), name, "is told to ask:", notices)


def main():
    for method in ("repath-only", "auto"):
        by_record(method)
    comes_back()
    by_asking("affected", [68, 69])
    by_asking("hybrid", [69])
    return 0


if __name__ == "__main__":
    sys.exit(main())
