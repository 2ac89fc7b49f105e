# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""dFtree's four experiments, with stock OpenSM, its performance manager and the plugin: hosts that
are told to, change their lanes.

	   R1      R2			    R
	  / | \\   / | \\		         // | \\\\		all leaves by two links
	 A     B     C		        A   B   C
	1 2   3 4   5 6		      1-4  5-8  9-12		uplinks twice as fast

I	1, 3 and 6 send to 5; the victim 2-3 leaves A by the uplink of 1-5
II	the victim 2-4 does not, until the other uplink of A fails
III	1, 5 and 10 send to 9; the victim leaves A by the uplink of 1-9, to B
IV	the same, but it goes to C and comes down by the link of 1-9, too

In real time on links that are slower than they say. The hot spot's bus is slower than its link, which
makes the switch before it wait, as in the papers' hosts; with @buses all hosts send no faster either, so that one
that was held up does not catch up.

As a program: measures those that are named, without the plugin's hot spots and with them, and
prints a line of JSON for each.
"""

import contextlib
import json
import re
import sys
import time

from bed import NETS
from flows import Flows
from managed import Managed

SLOW = 100              # times
LINK = 16.0             # Gbit/s, 4x DDR
BUS = 12.9              # Gbit/s, the papers' hosts
PERCENT = round(LINK / BUS * 100)       # of the link's time that it takes
SWEEPS = "perfmgr TRUE\nperfmgr_sweep_time_s 1"
SMALL, LARGE = "xgft:2,3/1,2,speed=2", f"{NETS}/oversubscribed.net"


class Experiment:
    """A fabric with a hot spot: hosts that send to it, and a flow that is in the way."""

    def __init__(self, name, slow_sl=1, engine="ftree", buses=False, sl=0, **options):
        self.small = name in ("I", "II")
        self.name, self.slow_sl, self.sl = name, slow_sl, sl
        self.sending = PERCENT if buses else 100
        self.spot = "H5" if self.small else "H9"
        senders = ("H1", "H3", "H6") if self.small else ("H1", "H5", "H10")
        self.hot = [(sender, self.spot) for sender in senders]
        options |= {"slow_sl": slow_sl, "hotspot_mbit": round(LINK * 1000 / SLOW), "hotspot_calm": 3}
        options.setdefault("method", "hybrid")
        self.fabric = Managed(SMALL if self.small else LARGE, f"-R {engine} -Q", conf=SWEEPS,
                              sm_host="H4" if self.small else "H12", vfabric=("-r",), **options)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.fabric)
            self.flows = stack.enter_context(
                Flows(self.fabric, SLOW, {self.spot: PERCENT}, self.sending))
            self.lid = {name: lid for lid, name in self.flows.name_of.items()}
            self.victim = ("H2", self.victims_destination())
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        return self.stack.__exit__(*exception)

    def ports(self, a, b):
        """By which ports of switches the way from a to b goes, without the last."""
        way = self.fabric.command(f"Route {self.lid[a]} {self.lid[b]}")
        numbers = [int(n) for n in re.findall(r"^\[(\d+)\] ->", way, re.M)]
        nodes = re.findall(r'-> "([^"]+)"', way)
        return list(zip(nodes, numbers[1:]))[:-1]

    def victims_destination(self):
        """Who is reached from H2 by the links that the experiment wants."""
        shared = self.ports("H1", self.spot)
        if self.name == "I":
            return next(to for to in ("H3", "H4") if self.ports("H2", to)[0] == shared[0])
        if self.name == "II":
            return next(to for to in ("H3", "H4") if self.ports("H2", to)[0] != shared[0])
        if self.name == "III":
            return next(to for to in ("H5", "H6", "H7", "H8")
                        if self.ports("H2", to)[0] == shared[0])
        return next(to for to in ("H10", "H11", "H12") if self.ports("H2", to) == shared)

    def load(self):
        """The victim alone, then the hot spot. Returns when that was."""
        self.flows.start(self.victim, rate=BUS, sl=self.sl)
        self.flows.run(2)
        began = time.monotonic()
        self.flows.start(*self.hot, rate=BUS, sl=self.sl)
        return began

    def hot_now(self):
        return self.fabric.status()["hot_spots"]

    def separated(self):
        """Whether all that have to have been told, and have done it."""
        slow = {(name, hot) for _, trap, name, hot, _ in self.flows.told if trap == 69}
        return slow >= set(self.hot)

    def fail_uplink(self):
        """II: the victim's uplink goes; OpenSM finds it the other one."""
        node, port = self.ports(*self.victim)[0]
        mark = self.fabric.sm_mark()
        self.fabric.command(f'Unlink "{node}"[{port}]')
        self.fabric.wait_sm(mark)

    def stop(self):
        """Nobody sends any more. Returns when that was."""
        self.fabric.command("Stop")
        return time.monotonic()

    def rates(self):
        """The victim's, and the contributors' in their order."""
        self.flows.run(0.5)
        found = self.flows.gbps(2)
        return [round(found[flow], 2) for flow in [self.victim, *self.hot]]


def without(name):
    with Experiment(name, slow_sl=0, buses=True) as x:
        x.load()
        x.flows.run(1)
        if name == "II":
            x.fail_uplink()
        return x.rates()


def separation(name, rounds=4):
    """Rates, and seconds from onset until all are told, and from the end until all lanes are back."""
    to_slow, to_fast = [], []
    with Experiment(name, buses=True) as x:
        for turn in range(rounds):
            x.flows.told.clear()
            began = x.load()
            if not x.flows.run(60, x.separated):
                raise SystemExit(f"experiment {name}: nobody was told: {x.hot_now()}")
            to_slow.append(max(t for t, *_ in x.flows.told) - began)
            if name == "II" and not turn:
                x.fail_uplink()
            rates = x.rates()
            ended = x.stop()
            x.flows.run(60, lambda: not x.hot_now()["now"])
            x.flows.run(0.2)
            to_fast.append(max(t for t, *_ in x.flows.told) - ended)
            x.flows.run(0.37 * turn)        # another time of the sweep
    return rates, to_slow, to_fast


def main(names):
    for name in names:
        one = without(name)
        rates, to_slow, to_fast = separation(name)
        print(json.dumps({"experiment": name, "one_lane": one, "slow_lane": rates,
                          "to_slow_lane_s": [round(t, 2) for t in to_slow],
                          "to_fast_lane_s": [round(t, 2) for t in to_fast]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["I", "II", "III", "IV"]))
