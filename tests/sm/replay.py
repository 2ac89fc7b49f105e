# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Who may wait for whom while tables change, SMP by SMP as they arrive at the switches: vfabric's journal is
played against the tables that there were at first.

    fabric.command("Journal 100000")
    ... the subnet manager changes what it likes ...
    replay = Replay(fabric.command("Journal"), gone_us=100000)
    assert not replay.run()

A channel is a lane of a cable's direction. One waits for another when a packet in it leaves by the other. What
a table has brought into a channel stays there, and what has decided where it leaves stays decided, until
nothing has been set for @gone_us, or that port carries data no more: the worst that can happen. Any host
and any switch sends to any LID with any SL. Knows nothing of who sends SMPs, and why in that order.
"""

import re

ARMED, ACTIVE = 3, 4
EVERYTHING = (1 << 0xc000) - 1


class Replay:
    def __init__(self, journal, gone_us, without=()):
        """@without: numbers of entries that have not arrived."""
        self.gone_us = gone_us
        self.entries = []
        for number, line in enumerate(journal.splitlines()):
            if line.startswith("#"):
                raise ValueError(f"the journal is not whole: {line}")
            us, what, where = line.split(" ", 2)
            # What programs are told changes no table.
            if number not in without and what not in ("report", "answer"):
                self.entries.append((number, int(us), what, where))
        self.peer, self.ports, self.state, self.vls, self.lid = {}, {}, {}, {}, {}
        self.tables, self.top, self.leaves, self.turns = {}, {}, {}, {}
        self.present, self.waits, self.more_waits = {}, {}, False
        self.sls = self.kinds_of_sl()

    def kinds_of_sl(self):
        """One of those SLs that all tables treat the same at all times."""
        rows = {where.rsplit(" ", 1)[1] for _, _, what, where in self.entries if what == "turn"}
        kinds = {}
        for sl in range(16):
            kinds.setdefault(tuple(row[2 * sl:2 * sl + 2] for row in sorted(rows)), sl)
        return list(kinds.values())

    # What is set.

    def set(self, what, where):
        """Returns the nodes where packets may go on in another way."""
        node, *words = where.split()
        if what == "cable":
            self.set_cable(port(node), port(words[0]))
            return ()
        if what in ("state", "lid"):
            at, words = port(node), [int(word) for word in words]
            if what == "lid":
                self.lid[at] = words[0]
                return ()
            self.state[at], self.vls[at] = words
            return {at[0], self.peer.get(at, at)[0]}
        node = node.strip('"')
        if what == "turn":
            self.turns[node, int(words[0]), int(words[1])] = bytes.fromhex(words[2])
            return (node,)
        if what == "block":
            self.tables.setdefault(node, {})[int(words[0])] = bytes.fromhex(words[1])
        elif what == "top":
            self.top[node] = int(words[0])
        else:
            raise ValueError(what)
        self.set_leaves(node)
        return (node,)

    def set_cable(self, a, b):
        for end in (a, b):
            other = self.peer.pop(end, None)
            if other:
                del self.peer[other]
        self.peer[a], self.peer[b] = b, a
        self.ports = {}
        for here, to in self.peer.items():
            self.ports.setdefault(here[0], []).append((here[1], to))

    def set_leaves(self, node):
        """Which LIDs leave by which port, as bits."""
        leaves = {}
        for block, entries in self.tables.get(node, {}).items():
            for i, out in enumerate(entries):
                lid = block * 64 + i
                if out not in (0, 255) and 0 < lid <= self.top.get(node, 0xbfff):
                    leaves[out] = leaves.get(out, 0) | 1 << lid
        self.leaves[node] = leaves

    def is_switch(self, node):
        return (node, 0) in self.lid

    def carries(self, out):
        """Whether what leaves by a port comes to the other end of the cable."""
        return (self.state.get(out) == ACTIVE and
                self.state.get(self.peer.get(out)) in (ARMED, ACTIVE))

    def lane(self, node, into, out, sl):
        """In which packets leave, or None."""
        lanes = self.turns.get((node, into, out))
        lane = lanes[sl] if lanes else 0
        return lane if lane < self.vls.get((node, out), 0) else None

    # Packets.

    def enter(self, node, into, source, sl, lids, fresh):
        """Packets with that SL for these LIDs are at a switch, in @source if that can wait."""
        for out, bits in self.leaves.get(node, {}).items():
            going = lids & bits
            if not going or out == into or not self.carries((node, out)):
                continue
            lane = self.lane(node, into, out, sl)
            if lane is None or not self.is_switch(self.peer[node, out][0]):
                continue
            if source:
                waits = self.waits.setdefault(source, set())
                if (node, out, lane) not in waits:
                    waits.add((node, out, lane))
                    self.more_waits = True
            here = self.present.setdefault((node, out), {})
            had = here.get((lane, sl), 0)
            if going & ~had:
                here[lane, sl] = had | going
                fresh.add((node, out, lane, sl))

    def drop(self):
        """What leaves by a port that carries nothing is dropped, and what has decided to is, too."""
        for waits in self.waits.values():
            waits -= {wait for wait in waits if not self.carries(wait[:2])}
        for cable, here in self.present.items():
            node, _ = self.peer.get(cable, (None, 0))
            for out, bits in self.leaves.get(node, {}).items():
                if not self.carries((node, out)):
                    for kind in here:
                        here[kind] &= ~bits

    def arrive(self, node, fresh):
        """All that may be at a switch goes on, as its tables are now."""
        for sl in self.sls:
            self.enter(node, 0, None, sl, EVERYTHING, fresh)
        for to, at in self.ports[node]:
            if not self.is_switch(at[0]):
                if self.carries(at):
                    for sl in self.sls:
                        self.enter(node, to, None, sl, EVERYTHING, fresh)
                continue
            for (lane, sl), lids in list(self.present.get(at, {}).items()):
                self.enter(node, to, (*at, lane), sl, lids, fresh)

    def go_on(self, nodes):
        """Something has changed at these."""
        fresh = set()
        for node in nodes:
            if self.is_switch(node):
                self.arrive(node, fresh)
        while fresh:
            *channel, sl = fresh.pop()
            node, out, lane = channel
            to = self.peer[node, out]
            self.enter(*to, tuple(channel), sl, self.present[node, out][lane, sl], fresh)

    def start(self):
        self.present.clear()
        self.waits.clear()
        self.go_on(self.leaves)

    # Cycles.

    def circle(self):
        """Channels each of which waits for the next, and the last for the first; or None."""
        done, way = set(), []
        for start in self.waits:
            if start in done:
                continue
            way, left = [start], [iter(self.waits[start])]
            while way:
                for channel in left[-1]:
                    if channel in way:
                        return way[way.index(channel):]
                    if channel not in done:
                        way.append(channel)
                        left.append(iter(self.waits.get(channel, ())))
                        break
                else:
                    done.add(way.pop())
                    left.pop()
        return None

    def run(self):
        """(number of the entry, circle) of the first with which one closes, or None; -1: as it was at first."""
        changes = [entry for entry in self.entries if entry[1]]
        for _, us, what, where in self.entries:
            if not us:
                self.set(what, where)
        self.start()
        if found := self.circle():
            return -1, found
        last = 0
        for number, us, what, where in changes:
            if us - last >= self.gone_us:
                self.start()
            last = us
            nodes = self.set(what, where)
            self.more_waits = False
            if what == "state":
                self.drop()
            self.go_on(nodes)
            if self.more_waits and (found := self.circle()):
                return number, found
        return None


def port(text):
    node, number = re.fullmatch(r'"(.*)"\[(\d+)\]', text).groups()
    return node, int(number)
