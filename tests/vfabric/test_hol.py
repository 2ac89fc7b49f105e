#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Head-of-line blocking in a fat tree, on the tables of OpenSM's ftree.

	       R1      R2
	      / | \\   / | \\		all leaves to both roots
	     A     B     C
	    1 2   3 4   5 6

1, 3 and 6 send to 5: the hot spot. 2-3 leaves by the uplink of 1-5, 4-1 by that of 3-5. On one VL
the victims get what the congested flow beside them gets; on a VL of their own they get
the rest of the link.
"""

import json
import sys

from bed import Fabric, expect

CONGESTED = ((1, 5), (3, 5), (6, 5))
VICTIMS = {(2, 3): (1, 5), (4, 1): (3, 5)}
LINK = 32.0                                     # Gbit/s of data on 4x QDR


def measured(source, victim_sl, after, every):
    """All flows, with sources of this kind: from so many microseconds on, sampled as often."""
    with Fabric("xgft:2,3/1,2", opensm="-R ftree") as fabric:
        fabric.nothing_wrong("require", "minimal")
        for a, b in CONGESTED:
            fabric.command(f'Flow "H{a}" "H{b}" {source} sl=0')
        for a, b in VICTIMS:
            fabric.command(f'Flow "H{a}" "H{b}" {source} sl={victim_sl}')
        fabric.command(f"Advance {after}")
        fabric.command(f"Measure {every}")
        fabric.command("Advance 20000")
        return json.loads(fabric.command("Results json"))["flows"]


def throughput(victim_sl):
    return {(int(f["from"][1:]), int(f["to"][1:])): f["gbps"]
            for f in measured("message=20000", victim_sl, 2000, 500)}


def ended():
    """So many messages and no more; how long they took, alone and two to one host."""
    with Fabric("xgft:2,3/1,2", opensm="-R ftree") as fabric:
        fabric.command('Flow "H1" "H5" message=20000 messages=3 window=8')
        fabric.command("Advance 500")
        for host in ("H1", "H3"):
            fabric.command(f'Flow "{host}" "H5" message=20000 messages=30')
        fabric.command("Advance 50")
        flows = json.loads(fabric.command("Results json"))["flows"]
        expect("took_us" in flows[0] and "took_us" not in flows[1], "not through yet:", flows)
        fabric.command("Advance 1000")
        flows = json.loads(fabric.command("Results json"))["flows"]
    # 20000 bytes are ten packets, the last of them shorter.
    expect([flow["received"] for flow in flows] == [30, 300, 300], flows)
    alone, *two = (flow["took_us"] for flow in flows)
    expect(60000 / LINK * 0.008 < alone < 1.1 * 60000 / LINK * 0.008, alone)
    for took in two:
        expect(1.9 * 600000 / LINK * 0.008 < took < 2.1 * 600000 / LINK * 0.008, two)


def closed_loop(victim_sl):
    """What the sum of the hot spot and each victim get of a link, with sources like vhca's queue pairs.
    tests/vm/test_vhca_hol.py holds real ones against it."""
    flows = measured("message=20000 window=32 ack=16", victim_sl, 3000, 1000)
    found = [flow["gbps"] / LINK for flow in flows]
    return sum(found[:3]), *found[3:]


def main():
    ended()
    for victim_sl, wanted in ((0, (1, 0.25, 0.25)), (1, (1, 0.75, 0.75))):
        found = closed_loop(victim_sl)
        expect(all(abs(part - share) < 0.01 for part, share in zip(found, wanted)),
               "victims on SL", victim_sl, "in a closed loop:", found)
    one, own = throughput(0), throughput(1)
    for victim, beside in VICTIMS.items():
        expect(one[victim] < 1.1 * one[beside], victim, "falls to its neighbour's share:", one)
        expect(own[victim] > 1.5 * one[victim], victim, "is freed by its own VL:", one, own)
        expect(own[victim] > 0.9 * (LINK - own[beside]), victim, "gets what is left:", own)
    expect(one[6, 5] > 1.5 * one[1, 5], "the parking lot: 6-5 has an input of its own:", one)
    expect(0.9 * LINK < sum(own[f] for f in CONGESTED) < 1.01 * LINK, "the hot spot is full:", own)
    print(json.dumps({"one_vl": {f"{a}-{b}": g for (a, b), g in one.items()},
                      "own_vl": {f"{a}-{b}": g for (a, b), g in own.items()}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
