#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Hosts that believe each RePath have what the SA would tell them, and none is told in vain.

Random cables go and come back, on meshes with lanes, on a fat tree, and on a random fabric whose
cables have different rates.
"""

import os
import random
import re
import subprocess
import sys
import tempfile

from hosts import Hosts
from managed import NETS, Managed, expect
from bed import TOP

FAULTS = 4


def mixed_rates(path, topology, chance):
    """Writes a topology with cables of all rates."""
    text = subprocess.run([f"{TOP}/build/vfabric/vfabric", "-w", "-q", topology], text=True,
                          check=True, capture_output=True).stdout
    speed, lines, node = {}, [], None
    for line in text.splitlines():
        head = re.match(r'(?:Switch|Hca)\s+\d+ "([^"]+)"', line)
        cable = re.match(r'\[(\d+)\]\t"([^"]+)"\[(\d+)\]', line)
        node = head[1] if head else node
        if cable:
            key = frozenset([(node, cable[1]), (cable[2], cable[3])])
            speed.setdefault(key, chance.choice((1, 2, 4)))
            line = re.sub(r"s=\d", f"s={speed[key]}", line)
        lines.append(line)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def switch_cables(fabric, hosts):
    """{a port as the console wants it: (switch, switch)} of all cables between switches."""
    found, node = {}, None
    for line in fabric.command("Dump").splitlines():
        head = re.match(r'(Switch|Hca)\s+\d+ "([^"]+)"', line)
        if head:
            node = head[2] if head[1] == "Switch" else None
        cable = re.match(r'\[(\d+)\]\t"([^"]+)"', line)
        if node and cable and node < cable[2] and cable[2] not in hosts.lid:
            found[f'"{node}"[{cable[1]}]'] = (node, cable[2])
    return found


def connected(cables, pulled):
    """Whether every switch can still be reached."""
    switches = {switch for pair in cables.values() for switch in pair}
    reached, ahead = set(), [min(switches)]
    while ahead:
        at = ahead.pop()
        if at not in reached:
            reached.add(at)
            ahead += [other for port, pair in cables.items() if port not in pulled and at in pair
                      for other in pair]
    return reached == switches


class Belief:
    """What the listening hosts believe of their paths."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.sm_lid = hosts.lid[hosts.fabric.sm_host]
        self.told = 0
        self.numbers, self.serials = set(), {}
        routings = None
        while routings != hosts.settle():
            routings = hosts.settle()
            self.records = hosts.records()
            self.seen = {name: len(hosts.heard(name)) for name in hosts.listeners}

    def hear(self):
        for name in self.hosts.listeners:
            heard = self.hosts.heard(name)
            for notice in heard[self.seen[name]:]:
                self.believe(name, notice)
            self.seen[name] = len(heard)

    def believe(self, name, notice):
        """A repetition is no news, nor is what came after a later routing's."""
        pair = (notice.slid, notice.dlid)
        if (name, notice.number) in self.numbers or notice.serial < self.serials.get(pair, 0):
            return
        self.numbers.add((name, notice.number))
        self.serials[pair] = notice.serial
        expect(notice.slid == self.hosts.lid[name], name, "is told of its own paths", notice)
        if notice.trap == 68:
            expect(self.records.pop(pair, None), "UnPath without flags: there was a path", notice)
            return
        now = (notice.sl, notice.mtu, notice.rate)
        expect(self.records.get(pair) != now, "told in vain", notice)
        self.records[pair] = now
        self.told += 1

    def check(self, when):
        """A sweep may come late: then what was asked before and after it does not fit together."""
        routings, truth = None, None
        while routings != self.hosts.settle():
            routings = self.hosts.settle()
            self.hear()
            truth = self.hosts.records()
        wrong = {pair: (self.records.get(pair), truth.get(pair))
                 for pair in self.records.keys() | truth.keys()
                 if pair[0] != self.sm_lid and self.records.get(pair) != truth.get(pair)}
        expect(not wrong, when, "(believed, true):", wrong)


def run(topology, engine, seed):
    chance = random.Random(seed)
    with Managed(topology, f"-R {engine}", method="repath-only") as fabric:
        with Hosts(fabric) as hosts:
            belief = Belief(hosts)
            cables = switch_cables(fabric, hosts)
            pulled = []
            for _ in range(FAULTS):
                spare = [port for port in cables
                         if port not in pulled and connected(cables, [*pulled, port])]
                if not spare or (pulled and chance.random() < 0.4):
                    command = f"ReLink {pulled.pop()}"
                else:
                    pulled.append(chance.choice(spare))
                    command = f"Unlink {pulled[-1]}"
                hosts.fault(command)
                belief.check(f"{topology} {engine} after {command}")
            status = fabric.status()
            expect(status["signal"]["repath"] >= belief.told, status)
            return belief.told


def main():
    told = run(f"{NETS}/mesh3x2.net", "lash", 1)
    told += run("mesh:4x3", "lash", 2)
    told += run("tree:4,3", "minhop", 3)
    with tempfile.TemporaryDirectory() as directory:
        mixed = os.path.join(directory, "mixed.net")
        for seed in (1, 2):
            mixed_rates(mixed, f"random:8,degree=3,hosts=2,seed={seed}", random.Random(seed))
            told += run(mixed, "minhop", seed)
    expect(told > 20, "something did change:", told)
    print(told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
