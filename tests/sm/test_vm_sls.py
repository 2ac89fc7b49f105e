#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""VMs move under engines that give paths service levels: the SA answers with those of the place where a VM is
now, levels and tables close no credit loop, and each host whose path from or to a VM has another one is told
that, and nobody anything else, neither then nor after the next sweep. No path is computed."""

import json
import random
import re
import sys

from hosts import Hosts
from managed import expect
from vms import Orchestrated, all_reached

RING = "torus:6,hosts=2"
TREE = "xgft:3,3/1,3,vswitch=1"
MOVES = 3


class Peers(Hosts):
    """Who keeps what the SA says of paths; homes: the LID by whose levels a place's paths go."""

    def __init__(self, fabric):
        fabric.settle()
        super().__init__(fabric)
        self.settle()
        self.homes = dict(self.lid)
        self.first = self.known = self.records()
        self.seen = self.notices()

    def notices(self):
        """In the order in which they came; repetitions left out, which have the same number."""
        return {name: list(dict.fromkeys(self.heard(name))) for name in self.listeners}

    def news(self):
        """What each has heard since the last time, by the LID that it has now."""
        self.settle()
        lids, before, self.seen = self.fabric.lids(), self.seen, self.notices()
        return {lids[name]: heard[len(before[name]):] for name, heard in self.seen.items()}

    def moved(self, *what):
        """What the SA says after a move, and who has heard of it."""
        place = {lid: self.homes[name] for name, lid in self.fabric.lids().items() if name in self.homes}
        now, news = self.records(), self.news()
        for pair in ((a, b) for a in place for b in place if a != b):
            expect(now.get(pair) == self.first.get((place[pair[0]], place[pair[1]])), *what, pair,
                   "has what its place has", now.get(pair), self.first.get((place[pair[0]], place[pair[1]])))
        sm_lid = self.fabric.lids()[self.fabric.sm_host]
        wanted = sorted((*pair, *now[pair]) for pair in now if pair in self.known and now[pair] != self.known[pair] and
                        pair[0] != sm_lid)
        heard = sorted((n.slid, n.dlid, n.sl, n.mtu, n.rate) for notices in news.values() for n in notices)
        expect(heard == wanted, *what, "told:", heard, "others are:", wanted)
        expect(all(n.trap == 69 and n.slid == lid for lid, notices in news.items() for n in notices), *what, news)
        self.known = now
        return len(heard)

    def had_they_not_heard(self):
        """What the judge says if all still have the levels of before the first move."""
        saved, lids = f"{self.fabric.dir}/saved", sorted(self.lid.values())
        self.fabric.repath_fabric_check(self.fabric.sm_host, "save", saved)
        with open(saved, "r+", encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if not line.startswith("sl ")]
            at = lines.index(next(line for line in lines if line.startswith("load ")))
            lines[at:at] = [f"sl {a} " + " ".join(f"{b}-{b}:{self.first[a, b][0]}" for b in lids if a != b)
                            for a in lids]
            file.seek(0)
            file.write("\n".join(lines) + "\n")
            file.truncate()
        result = self.fabric.repath_fabric_check(self.fabric.sm_host, "from", saved)
        return [fault["kind"] for fault in json.loads(result.stdout)["faults"]]


def levels(engine, topology, kind=Orchestrated, **options):
    """VMs move anywhere, all but the first by as few switches as may be; then a sweep finds nothing new. How many
    notices there were, and LIDs that not all switches send to the paths of their place."""
    with kind(topology, f"-R {engine} -Q", method="repath-only", **options) as fabric, Peers(fabric) as peers:
        rng, told, loops, before = random.Random(6), 0, [], fabric.status()
        names = sorted(name for name in fabric.lids() if name != fabric.sm_host)
        names = [name for name in names if "v" in name] or names
        for turn in range(MOVES):
            a, b = rng.sample(names, 2)
            lids = fabric.lids()
            fabric.say(f"move {lids[a]} {lids[b]} {'limited' if turn else ''}")
            told += peers.moved(engine, a, b)
            fabric.nothing_wrong()
            if topology == RING and engine in ("lash", "dfsssp"):
                loops.append("credit-loop" in peers.had_they_not_heard())
        after = fabric.status()
        if topology == RING and engine in ("lash", "dfsssp"):
            expect(any(loops), engine, "with the levels that they had")
        expect(after["vms"]["computed"] == before["vms"]["computed"], "nothing is routed", before, after)
        expect(after["paths"]["routings"] == before["paths"]["routings"], "OpenSM has not swept")
        expect(after["paths"]["moves"] == MOVES and after["paths"]["moved_paths"] >= told, told, after)
        all_reached(fabric.nodes())
        fabric.sweep()
        expect(peers.moved(engine, "a sweep") == 0)
        print(f"{engine} {topology}: {told} told, {after['vms']['odd']} odd", flush=True)
        return told, after["vms"]["odd"]


class Tenants(Orchestrated):
    """Partitions that engine pftree gives lanes of their own: of a VF, whoever has it."""

    def start_opensm(self, options):
        guids = {name: node[0] + 1 for name, node in self.nodes().items() if node[3] is None}
        self.options_of_plugin["pftree_policy"] = f"{self.dir}/policy"
        with open(f"{self.dir}/policy", "w", encoding="utf-8") as file:
            file.write("partition one vlane\npartition two vlane\n")
        self.write_partitions((name, 0x101 + key, [guid for host, guid in guids.items() if re.fullmatch(r"H\d*v1", host) and
                                                   (int(re.search(r"\d+", host)[0]) > 4) == key])
                              for key, name in enumerate(("one", "two")))
        return super().start_opensm(options)

    def wrong(self, *words):
        """Nor have they packets in a lane of the same link."""
        return super().wrong(*words, "partitions", f"{self.dir}/partitions", "require", "lanes")


def carried(engine):
    """A VM takes its port along: while it is nowhere nobody is told of it, and then its peers are, and itself."""
    with Orchestrated(TREE, f"-R {engine} -Q", method="repath-only") as fabric, Peers(fabric) as peers:
        nodes = fabric.nodes()
        vm = f"{nodes['H2v1'][0] + 1:#x}"
        peer, port = nodes["H8v1"][1][1]
        peers.homes["H2v1"] = peers.homes.pop("H8v1")
        for command, word in (('Unlink "H8v1"[1]', f"begin {vm} {nodes[peer][0]:#x}/{port}"),
                              ('Unlink "H2v1"[1]', f"end {vm}"), (f'Link "H2v1"[1] "{peer}"[{port}]', None)):
            expect(not any(peers.news().values()), "too early", command)
            fabric.command(command)
            fabric.settle()
            answer = word and fabric.say(word)
        expect(not answer and peers.moved(engine, "carried") > 5)


def main():
    # Levels keep rings from closing: by switches, without the subnet manager's paths, and by LIDs, of which VMs
    # may have none that the engine knows.
    for engine, topology, how in (("lash", RING, {}),
                                  ("lash", RING, {"sm_sl": "on", "conf": "lash_start_vl 1\nsm_sl 0"}),
                                  ("dfsssp", RING, {}),
                                  ("nue", RING, {"conf": "nue_max_num_vls 4"}),
                                  ("dfsssp", "torus:6,hosts=1,vswitch=1", {"vswitch": "dynamic"})):
        told, odd = levels(engine, topology, **how)
        expect(told > 20 and not odd, engine, how, told, odd)
    # They hold up little else, or nothing of another tenant; where packets turn is enough for tables to be mixed.
    mixed = 0
    for engine, topology, how in (("vftree", TREE, {}), ("vftree", TREE, {"vswitch": "dynamic"}),
                                  ("pftree", "xgft:3,3/1,1,vswitch=1", {"kind": Tenants}),
                                  ("pftree", "xgft:3,3/1,1,vswitch=1", {"kind": Tenants, "vswitch": "dynamic"}),
                                  ("voqsw", RING, {})):
        told, odd = levels(engine, topology, **how)
        expect(told > 20, engine, how, told)
        mixed += odd
    expect(mixed, "some are")
    carried("dfsssp")
    # Without levels there is nothing to tell.
    expect(levels("ftree", TREE)[0] == 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
