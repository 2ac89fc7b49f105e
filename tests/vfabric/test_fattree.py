#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The 648-port fat tree, 36 + 18 switches of 36 ports, on the tables of OpenSM's ftree: what hosts get that
all send as fast as they can, to anybody and with a fifth of it to one, on one lane and on eight."""

import json
import sys

from bed import Fabric, expect

HOSTS = 648
LINK = 32.0                                     # Gbit/s of data on 4x QDR
HOT = LINK / (0.2 * (HOSTS - 1))                # a source waits in its one queue for the hot spot


def per_host(pattern, lanes):
    """Gbit/s"""
    with Fabric("tree:36,2", "-v", str(lanes), opensm="-R ftree") as fabric:
        expect(fabric.all_active(), "all ports are active")
        fabric.nothing_wrong("sl", "0", "require", "minimal")
        fabric.command(f"{pattern} spread={lanes}")
        fabric.command("Advance 100")
        fabric.command("Measure")
        fabric.command("Advance 200")
        found = json.loads(fabric.command("Results json"))
        expect(not sum(found["drops"].values()), "nothing is lost:", found["drops"])
        expect(found["deadlock_at_us"] is None, "a tree has no deadlock")
        return found["gbps"] / HOSTS


def main():
    one = per_host("Uniform", 1)
    eight = per_host("Uniform", 8)
    hot = per_host('Hotspot "H1" 20', 8)
    # An input-queued switch with a queue for each input passes 59 % at most.
    expect(0.5 * LINK < one < 0.59 * LINK, "one lane:", one)
    expect(0.88 * LINK < eight < LINK, "eight lanes:", eight)
    expect(0.9 * HOT < hot < 1.1 * HOT, "all wait for the hot spot:", hot, HOT)
    print(json.dumps({"uniform_1": one, "uniform_8": eight, "hotspot_8": hot}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
