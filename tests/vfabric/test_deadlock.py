#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The papers' deadlock, out of credits alone, on tables and service levels of stock OpenSM.

Six flows (1-3 2-4 3-5 4-6 5-1 6-2) cross the 3x2 mesh on one lane. The link S2-S5 goes down, LASH
reroutes with two lanes. Who keeps the old service level stops; who asks the SA again runs. Nothing
in vfabric knows of this case. (Messages are no multiple of the MTU: with packets of one size the six
symmetric flows fall into lock-step and no buffer ever fills.)
"""

import json
import sys

from bed import NETS, Fabric, expect

FLOWS = ((1, 3), (2, 4), (3, 5), (4, 6), (5, 1), (6, 2))
BEFORE, AFTER = 2000, 60000         # us of virtual time
MINUTE = 60000000
LONG = 3000000                      # several times HOQLife's default of 1 s


# As queue pairs of vhca send, which tests/vm/test_vhca_deadlock.py holds against these: parts of a link.
QUEUE_PAIRS = "window=32 ack=16"
MESH, NEW_LANES = 2.925, 2.601
LINK = 32.0                         # Gbit/s of data on 4x QDR


def start_flows(fabric, how=""):
    return [int(fabric.command(f'Flow "H{a}" "H{b}" message=20000 sl=sa {how}').split()[1])
            for a, b in FLOWS]


def measure(fabric, us, sample):
    fabric.command(f"Measure {sample}")
    fabric.command(f"Advance {us}")
    return json.loads(fabric.command("Results json"))


def reroute(fabric):
    mark = fabric.sm_mark()
    fabric.command('Unlink "S2"[3]')
    fabric.wait_sm(mark, "Lanes needed: 2")


def old_lanes(*options, long=AFTER):
    with Fabric(f"{NETS}/mesh3x2.net", *options, opensm="-R lash -Q") as fabric:
        levels = start_flows(fabric)
        before = measure(fabric, BEFORE, 100)
        reroute(fabric)
        after = measure(fabric, AFTER, 1000)
        expect(len(set(levels)) == 1, "one lane in the mesh:", levels)
        expect(before["deadlock_at_us"] is None, "no deadlock in the mesh")
        late = measure(fabric, long, long / 60)
        named = fabric.command("Deadlock")
        freed = None
        if not late["received"]:
            freed = remove_one(fabric, after["deadlock"])
        return before, after, late, named, freed


def discarded(result):
    """Packets that had waited too long, since the fabric began."""
    return result["drops"]["hoq_lifetime"] + result["drops"]["switch_lifetime"]


def only_discards(before, after, late):
    """With OpenSM's lifetimes: what moves is what a discard lets through. Return: part of the mesh's."""
    share = late["gbps"] / before["gbps"]
    gone = discarded(late) - discarded(after)
    moved = [sample for sample in late["series"] if sample["total_gbps"]]
    expect(0 < share < 0.01, "with OpenSM's lifetimes below 1 %:", share)
    expect(0 < len(moved) <= gone, f"{gone} are discarded, it moves in", moved)
    return share


def remove_one(fabric, cycle):
    """One packet out of the ring by hand: does it move again?"""
    queue = cycle[0]
    fabric.command("Measure 1000")
    fabric.command(f'Remove "{queue["node"]}"[{queue["port"]}] {queue["vl"]}')
    fabric.command("Advance 1000")
    return json.loads(fabric.command("Results json"))["received"]


def new_lanes():
    with Fabric(f"{NETS}/mesh3x2.net", opensm="-R lash -Q") as fabric:
        reroute(fabric)
        levels = start_flows(fabric)
        result = measure(fabric, AFTER, 1000)
        expect(len(set(levels)) == 2, "two lanes in the ring:", levels)
        expect(result["deadlock_at_us"] is None, "no deadlock on new lanes")
        return result


def queue_pairs():
    """What all six get together in the mesh, and on the new lanes when the link is down."""
    parts = []
    for down in (False, True):
        with Fabric(f"{NETS}/mesh3x2.net", opensm="-R lash -Q") as fabric:
            if down:
                reroute(fabric)
            start_flows(fabric, QUEUE_PAIRS)
            fabric.command("Advance 3000")
            parts.append(measure(fabric, 20000, 1000)["gbps"] / LINK)
    for found, wanted in zip(parts, (MESH, NEW_LANES)):
        expect(abs(found - wanted) < 0.01, "sources like queue pairs:", parts)


def main():
    before, after, late, named, freed = old_lanes("-i", long=MINUTE)
    expect(not late["received"], "with infinite lifetimes nothing moves for a minute, but:", late["received"])
    expect(after["deadlock_at_us"] is not None, "the detector saw it")
    nodes = [queue["node"] for queue in after["deadlock"]]
    expect(sorted(nodes) == ["S1", "S2", "S3", "S4", "S5", "S6"], "the cycle is the ring:", nodes)
    expect("deadlock of 6 queues" in named, named)
    expect(freed > 0, "a packet less frees the ring for a while")
    fresh = new_lanes()
    expect(fresh["gbps"] > 0.4 * before["gbps"], "new lanes carry traffic:", fresh["gbps"])
    default_share = only_discards(*old_lanes(long=LONG)[:3])
    queue_pairs()
    print(json.dumps({
        "mesh_gbps": before["gbps"], "deadlock_after_us": after["deadlock_at_us"],
        "cycle": nodes, "old_lanes_endless": late["gbps"], "old_lanes_default_lifetimes": default_share,
        "packets_after_removing_one": freed, "new_lanes_gbps": fresh["gbps"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
