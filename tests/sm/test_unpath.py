#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""UnPath comes before tables change, and RePath afterwards, as they arrive in one order at hosts and switches
(vfabric's journal). Before the first forwarding table is another, each host that is to hear UnPath and can be reached has
heard it, and the subnet manager its answer; or, of hosts that do not answer, OpenSM has waited, and goes on. All
tables are there when the first host hears RePath, and all links are ACTIVE."""

import collections
import sys

from hosts import Hosts
from managed import NETS, Managed, expect
from replay import port

MESH = f"{NETS}/mesh3x2.net"
DOWN, UP = 'Unlink "S2"[3]', 'ReLink "S2"[3]'
ROOM = 100000
# Longer than a host of a busy machine takes to answer. So long OpenSM waits for one that it does not reach.
WAIT, IN_VAIN = 5000, 50
UNPATH, REPATH = 68, 69
ACTIVE = "4"

Said = collections.namedtuple("Said", "trap serial number")


class Tables:
    """Where packets go, entry by entry of the journal."""

    def __init__(self):
        self.tables, self.peer, self.state, self.lid = {}, {}, {}, {}

    def set(self, what, words):
        """Whether this entry has changed a forwarding table."""
        if what == "block":
            at = words[0].strip('"'), int(words[1])
            was, self.tables[at] = self.tables.get(at), bytes.fromhex(words[2])
            return was != self.tables[at]
        if what == "cable":
            a, b = map(port, words)
            self.peer[a], self.peer[b] = b, a
        elif what == "state":
            self.state[port(words[0])] = words[1]
        elif what == "lid":
            self.lid[port(words[0])[0]] = int(words[1])
        return False

    def way(self, host, lid):
        """(the ports by which a packet from a host leaves switches, the host where it arrives or None)"""
        at, way = self.peer[host, 1][0], []
        while (at, lid // 64) in self.tables and len(way) < 20:
            out = at, self.tables[at, lid // 64][lid % 64]
            way.append(out)
            if self.state.get(out) != ACTIVE:
                return way, None
            at = self.peer[out][0]
        return way, at if self.lid.get(at) == lid else None

    def reach(self, a, b):
        """Whether packets come from host to host, and back."""
        return self.way(a, self.lid[b])[1] == b and self.way(b, self.lid[a])[1] == a


def read(journal):
    """[(what, its words, what was said if anything)]"""
    entries = []
    for line in journal.splitlines():
        expect(not line.startswith("#"), "the journal is whole", line)
        _, what, *words = line.split(" ")
        said = None
        if what in ("report", "answer"):
            notice = bytes.fromhex(words[1])
            said = Said(*(int.from_bytes(notice[at:at + size], "big") for at, size in ((4, 2), (26, 4), (30, 4))))
            what = what if said.trap in (UNPATH, REPATH) else "trap"
        entries.append((what, words, said))
    return entries


def one_routing(entries, sm, serial, answers, dlids):
    """The routing of that number, if UnPath was said of it: (how many paths that were announced go another way in
    the end, how many hosts could not be reached). @dlids: {number of a notice: DLID it is about}"""
    def said_at(what, trap):
        return {said.number: i for i, (kind, _, said) in reversed(list(enumerate(entries)))
                if kind == what and said.serial == serial and said.trap == trap}

    unpaths, answered, repaths = said_at("report", UNPATH), said_at("answer", UNPATH), said_at("report", REPATH)
    expect(unpaths and repaths, "both are said", serial, unpaths, repaths)
    begin, told = min(unpaths.values()), min(repaths.values())
    tables = Tables()
    for what, words, _ in entries[:begin]:
        tables.set(what, words)
    hosts = {number: port(entries[at][1][0])[0] for number, at in unpaths.items()}
    reached = {number for number, host in hosts.items() if tables.reach(sm, host)}
    ways = {(hosts[number], dlids[number]): tables.way(hosts[number], dlids[number])[0] for number in unpaths}
    changed = [i for i, (what, words, _) in enumerate(entries[begin:], begin) if tables.set(what, words)]
    expect(changed and reached, "tables change, and hosts are reached", serial)
    for number in reached:
        expect(unpaths[number] < changed[0], "UnPath is heard before", serial, hosts[number], entries[changed[0]])
        expect(not answers or answered.get(number, len(entries)) < changed[0], "and answered", serial, hosts[number],
               entries[changed[0]])
    expect(changed[-1] < told, "all tables are there before RePath", serial, entries[told], entries[changed[-1]])
    late = [words for what, words, _ in entries[told:] if what == "state" and words[1] == ACTIVE]
    expect(not late, "links are active before RePath", serial, late)
    return (sum(tables.way(*key)[0] != way for key, way in ways.items()),
            len(set(hosts.values()) - {hosts[number] for number in reached}))


def play(mute=0, wait=WAIT, **options):
    with Managed(MESH, "-R lash", method="auto", unpath_wait=wait, link_wait=WAIT, **options) as fabric:
        with Hosts(fabric, mute=mute) as hosts:
            for command in DOWN, UP:
                waits = fabric.status()["paths"]["waits"]
                fabric.command(f"Journal {ROOM}")
                hosts.fault(command)
                entries = read(fabric.command("Journal"))
                dlids = {notice.number: notice.dlid for name in hosts.listeners for notice in hosts.heard(name)}
                serials = {said.serial for what, _, said in entries if what == "report" and said.trap == UNPATH}
                expect(len(serials) == 1, "of the sweeps of a fault one changes paths", command, serials)
                moved, unreached = one_routing(entries, fabric.sm_host, *serials, not mute, dlids)
                print(f"{command}: {moved} paths that were announced go another way; {unreached} hosts are not reached "
                      "before", flush=True)
                expect(moved, "paths that were announced go another way")
                paths = fabric.status()["paths"]
                expect(paths["waits"] - waits == (command == UP) and not paths["late"],
                       "RePath waits for a link that has come, and for none else", command, paths)
                # The cable that has come back leads nobody yet: nothing is in the way of UnPath.
                expect(command == DOWN or not unreached, "all are reached", unreached)


def main():
    play()
    # One report at a time, while the plugin's thread waits for the lock that OpenSM has.
    play(window=1, moves_interval=1)
    play(mute=-1, wait=IN_VAIN, report_timeout=20, report_limit=3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
