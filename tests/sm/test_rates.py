#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What flows get after a reroute, in virtual time: each what it would get had all been started then, those whose lane
changed and those whose did not.

The papers' flows on the 3x2 mesh, S2-S5 goes down, then S3-S4, and both come back. While hosts have not heard of the
first fault there is a deadlock; what has waited for a millisecond is dropped. Then they go to the lanes that the
plugin's reports tell, and the host of the subnet manager, to which nobody reports, asks.
"""

import json
import sys

from hosts import Hosts
from managed import NETS, Managed, expect

FLOWS = tuple((f"H{a}", f"H{b}") for a, b in ((1, 3), (2, 4), (3, 5), (4, 6), (5, 1), (6, 2)))
# As much as the fabric takes. With a window, what was lost decides how two share a link: 15/16 and 9/8 of it, together 1.
GREEDY = "message=20000 sl=sa"
LIFETIMES = "head_of_queue_lifetime 0x8\nleaf_head_of_queue_lifetime 0x8\npacket_life_time 0x8\n"
UNHEARD, SETTLE, MEASURED = 3000, 30000, 20000      # us
PART = 0.95
RING, LINE = 'Unlink "S2"[3]', 'Unlink "S3"[2]'


class Rated(Managed):
    def __init__(self):
        super().__init__(f"{NETS}/mesh3x2.net", "-R lash -Q", method="auto", conf=LIFETIMES)

    def start_flows(self):
        for a, b in FLOWS:
            self.command(f'Flow "{a}" "{b}" {GREEDY}')

    def rates(self, settle=SETTLE, measured=MEASURED):
        """Gbit/s of each flow, when all has settled. Those that were stopped come first."""
        self.command(f"Advance {settle}")
        self.command("Measure 1000")
        self.command(f"Advance {measured}")
        return {(f["from"], f["to"]): f["gbps"] for f in json.loads(self.command("Results json"))["flows"]}


class Lanes:
    """What hosts have been told of lanes, and what they have done about it."""

    def __init__(self, fabric, hosts):
        self.fabric, self.hosts = fabric, hosts
        self.sl = self.truth()

    def truth(self):
        records = self.hosts.records()
        return {(a, b): records[self.hosts.lid[a], self.hosts.lid[b]][0] for a, b in FLOWS}

    def told(self, truth):
        """{flow: service level} that hosts were told last, or have asked for."""
        sm, last = self.fabric.sm_host, {}
        for name in self.hosts.listeners:
            for notice in sorted(self.hosts.heard(name), key=lambda n: n.serial):
                if notice.trap == 69:
                    expect(notice.mask, "by record:", notice)
                    last[notice.slid, notice.dlid] = notice.sl
        return {(a, b): truth[a, b] if a == sm else
                last.get((self.hosts.lid[a], self.hosts.lid[b]), self.sl[a, b]) for a, b in FLOWS}

    def obey(self):
        """Those whose lane has changed go there; returns which."""
        truth = self.truth()
        told = self.told(truth)
        expect(told == truth, "what they are told is true:", told, truth)
        moved = [flow for flow in FLOWS if told[flow] != self.sl[flow]]
        for a, b in moved:
            self.fabric.command(f'Lane "{a}" "{b}" {told[a, b]}')
        self.sl = told
        return moved


def fresh():
    """What flows get that have never been on other lanes: on the ring, on the line, and when both are back."""
    found = []
    with Rated() as fabric:
        with Hosts(fabric) as hosts:
            for faults in ([RING], [LINE], [RING.replace("Un", "Re"), LINE.replace("Un", "Re")]):
                for fault in faults:
                    hosts.fault(fault)
                fabric.start_flows()
                found.append(fabric.rates())
                fabric.command("Stop")
                fabric.command(f"Advance {UNHEARD}")
    return found


def judge(what, rates, wanted, moved):
    got, kept = ({f"{a}-{b}": round(rates[a, b] / wanted[a, b], 4) for a, b in FLOWS if ((a, b) in moved) == which}
                 for which in (True, False))
    expect(min([*got.values(), *kept.values()]) >= PART, what, "those that were moved:", got, "others:", kept)
    return {"moved": got, "others": kept}


def main():
    ring, line, mesh = fresh()
    result = {}
    with Rated() as fabric:
        with Hosts(fabric) as hosts:
            lanes = Lanes(fabric, hosts)
            fabric.start_flows()
            fabric.rates()
            hosts.fault(RING)
            # Or else nothing here shows that anybody had to be moved.
            unheard = fabric.rates(UNHEARD, UNHEARD)
            expect(sum(unheard.values()) < sum(ring.values()) / 2, "nobody has heard of it:", unheard, ring)
            moved = lanes.obey()
            expect(0 < len(moved) < len(FLOWS), "some have another lane:", moved)
            result["ring"] = judge("S2-S5 down", fabric.rates(), ring, moved)
            hosts.fault(LINE)
            moved = lanes.obey()
            result["line"] = judge("S3-S4 down", fabric.rates(), line, moved)
            for fault in RING, LINE:
                hosts.fault(fault.replace("Un", "Re"))
            moved = lanes.obey()
            result["mesh"] = judge("both are back", fabric.rates(), mesh, moved)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
