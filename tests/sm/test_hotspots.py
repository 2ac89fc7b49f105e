#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""dFtree closed: stock OpenSM reads counters, the plugin finds the hot spot and who contributes, hosts
change lanes, the victim is free, and the lanes return when the hot spot is over."""

import sys

from experiments import BUS, Experiment
from managed import Managed, expect

PATIENCE = 60


def all_told(x):
    """Whether every host that was sent to the slow lane has been told that it is over."""
    def told(trap):
        return sorted((name, hot) for _, number, name, hot, _ in x.flows.told if number == trap)
    return told(69) == told(68)


def freed(x):
    """What flows get in the first second in which the victim has all that it wants, or in the last
    that was waited for: what is queued before the hot spot must have gone first."""
    for _ in range(PATIENCE):
        found = x.flows.gbps(1)
        if found[x.victim] > 0.9 * BUS:
            break
    return found


def separate(x):
    """Before the hosts obey, and after."""
    lane, x.flows.lane = x.flows.lane, lambda *_: None
    x.load()
    expect(x.flows.run(PATIENCE, x.separated), "contributors were told", x.flows.told, x.hot_now())
    x.flows.run(0.5)
    one = x.flows.gbps(1)
    x.flows.lane = lane
    for _, trap, name, hot, sl in x.flows.told:
        expect(trap == 69 and hot == x.spot and sl == 1, "slow lane only", x.flows.told)
        lane(name, hot, sl)
    return one, freed(x)


def first():
    with Experiment("I") as x:
        one, two = separate(x)
        expect(one[x.victim] < 1.1 * one[x.hot[0]], "the victim has its neighbour's share", one)
        expect(two[x.victim] > 0.9 * BUS, "and all that it wants beside the slow lane", two)
        for flow in x.hot:
            expect(0.9 * one[flow] < two[flow] < 1.1 * one[flow], "contributors have the same", one,
                   two)
        hot = x.hot_now()
        expect(hot["now"] == 1 and hot["begun"] == 1 and hot["contributors"] >= 3, hot)
        x.stop()
        expect(x.flows.run(PATIENCE, lambda: x.hot_now()["now"] == 0 and all_told(x)),
               "lanes return", x.flows.told, x.hot_now())
        hot = x.hot_now()
        expect(hot["contributors"] == 0 and hot["to_slow_lane"] == hot["to_fast_lane"], hot)


def link_fails():
    with Experiment("II") as x:
        x.load()
        expect(x.flows.run(PATIENCE, x.separated), "contributors were told", x.flows.told)
        x.fail_uplink()
        found = freed(x)
        expect(found[x.victim] > 0.9 * BUS, "beside 1-5 on one uplink, and still free", found)


def other_engine():
    """A policy on any engine: the same hosts are told, by another one's tables."""
    with Experiment("I", engine="dfsssp") as x:
        expect("dfsssp tables configured" in x.fabric.sm_log(), x.fabric.sm_log()[-1000:])
        x.load()
        expect(x.flows.run(PATIENCE, x.separated), "contributors were told", x.flows.told)
        expect(all(hot == x.spot and sl == 1 for *_, hot, sl in x.flows.told), x.flows.told)
        x.stop()
        expect(x.flows.run(PATIENCE, lambda: x.hot_now()["now"] == 0 and all_told(x)),
               "lanes return", x.flows.told, x.hot_now())


def nothing_to_see():
    """Without the performance manager there are no readings, which is said."""
    with Managed("mesh:3x2", "-R lash", slow_sl=1) as fabric:
        expect(any("perfmgr is not" in line for line in fabric.plugin_log()), fabric.plugin_log())
        expect(fabric.status()["hot_spots"]["sweeps"] == 0, fabric.status())


def main():
    nothing_to_see()
    first()
    other_engine()
    link_fails()
    return 0


if __name__ == "__main__":
    sys.exit(main())
