#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Fat trees on the tables of OpenSM's ftree. A 324-port one, 18 + 18 switches, comes up, and a hop of a packet
costs no more than ten copies of 2 KiB. The 648-port one, 36 + 18 switches of 36 ports: what hosts get that
all send as fast as they can, to anybody and with a fifth of it to one, on one lane to eight."""

import json
import re
import sys

from bed import Fabric, expect

HOSTS = 648
LINK = 32.0                                     # Gbit/s of data on 4x QDR
HOT = LINK / (0.2 * (HOSTS - 1))                # a source waits in its one queue for the hot spot


def hop_in_copies(fabric):
    """In the processor's time: the least that each took in several windows."""
    fabric.command("Uniform")
    fabric.command("Advance 50")
    hops, copies = [], []
    for _ in range(5):
        before = json.loads(fabric.command("Time"))
        fabric.command("Advance 50")
        after = json.loads(fabric.command("Time"))
        hops.append((after["run_s"] - before["run_s"]) / (after["hops"] - before["hops"]) * 1e9)
        copies.append(json.loads(fabric.command("Copy"))["copy_ns"])
    return min(hops) / min(copies)


def small():
    """324 ports. Return: what a hop costs."""
    with Fabric("xgft:18,18/1,18", opensm="-R ftree") as fabric:
        expect(fabric.all_active(), "all ports are active")
        fabric.nothing_wrong("require", "minimal")
        lids = re.findall(r"^Hca 1 .*\n\[1\].*\tlid (\d+) ", fabric.command("Dump"), re.M)
        expect(len(set(lids)) == 324 and "0" not in lids, "each host has a LID of its own:", lids)
        return hop_in_copies(fabric)


def per_host(pattern, lanes):
    """Gbit/s"""
    with Fabric("tree:36,2", "-v", str(lanes), opensm="-R ftree") as fabric:
        expect(fabric.all_active(), "all ports are active")
        fabric.nothing_wrong("require", "minimal")
        fabric.command(f"{pattern} spread={lanes}")
        fabric.command("Advance 100")
        fabric.command("Measure")
        fabric.command("Advance 200")
        found = json.loads(fabric.command("Results json"))
        expect(not sum(found["drops"].values()), "nothing is lost:", found["drops"])
        expect("no deadlock" in fabric.command("Deadlock"), "a tree has none")
        return found["gbps"] / HOSTS


def main():
    cost = small()
    # 0.6 on a quiet machine, at most 1.7 on one with a load of 20.
    expect(cost <= 10, "copies of 2 KiB that a hop costs:", cost)
    one, two, four, eight = (per_host("Uniform", lanes) for lanes in (1, 2, 4, 8))
    hot = per_host('Hotspot "H1" 20', 8)
    # An input-queued switch with a queue for each input passes 59 % at most.
    expect(0.5 * LINK < one < 0.59 * LINK, "one lane:", one)
    expect(0.66 * LINK < two < 0.72 * LINK, "two lanes:", two)
    expect(0.80 * LINK < four < 0.86 * LINK, "four lanes:", four)
    expect(0.88 * LINK < eight < LINK, "eight lanes:", eight)
    expect(0.9 * HOT < hot < 1.1 * HOT, "all wait for the hot spot:", hot, HOT)
    print(json.dumps({"copies_per_hop": round(cost, 2), "uniform_1": one, "uniform_2": two,
                      "uniform_4": four, "uniform_8": eight, "hotspot_8": hot}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
