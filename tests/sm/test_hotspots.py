#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""dFtree closed: stock OpenSM reads counters, the plugin finds the hot spot and who contributes, hosts
change lanes, the victim is free, and the lanes return when the hot spot is over."""

import json
import re
import sys
import time

from experiments import BUS, SWEEPS, Experiment
from managed import Managed, expect, until

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
        expect(trap == 69 and hot == x.spot and sl == x.slow_sl, "slow lane only", x.flows.told)
        lane(name, hot, sl)
    return one, freed(x)


def first():
    with Experiment("I", method="auto") as x:
        one, two = separate(x)
        expect(one[x.victim] < 1.1 * one[x.hot[0]], "the victim has its neighbour's share", one)
        expect(two[x.victim] > 0.9 * BUS, "and all that it wants beside the slow lane", two)
        for flow in x.hot:
            expect(0.9 * one[flow] < two[flow] < 1.1 * one[flow], "contributors have the same", one,
                   two)
        hot = x.hot_now()
        expect(hot["now"] == 1 and hot["begun"] == 1 and hot["contributors"] >= 3, hot)
        back = {(to, name, 0) for _, _, name, to, _ in x.flows.told}
        expect(x.flows.run(PATIENCE, lambda: x.flows.ways_back >= back), "their hot spot hears of the way back as it is",
               x.flows.ways_back, back)
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


def freed_by(x, engine, queues=False):
    """The victim is free by that engine's tables, and no credit loop comes of it: the service levels of its paths.
    @queues: it is mostly so before."""
    expect(f"{engine} tables configured" in x.fabric.sm_log(), x.fabric.sm_log()[-1000:])
    one, two = separate(x)
    if not queues:
        expect(one[x.victim] < 1.1 * one[x.hot[0]], engine, "the victim has its neighbour's share", one)
    expect(two[x.victim] > 0.9 * BUS, engine, "and all that it wants beside the slow lane", two)
    lanes, loops = in_slow_lane(x.fabric, x.lid[x.spot], x.slow_sl)
    expect(not loops, engine, lanes, loops)
    return lanes


def other_engine():
    """A policy on any engine: the same hosts are told, by another one's tables, and the victim is free. dfsssp has
    paths in all lanes, the slow one too: no credit loop comes of that in a tree."""
    with Experiment("I", engine="dfsssp") as x:
        lanes = freed_by(x, "dfsssp")
        expect({"0", "1"} < lanes, lanes)
        x.stop()
        expect(x.flows.run(PATIENCE, lambda: x.hot_now()["now"] == 0 and all_told(x)),
               "lanes return", x.flows.told, x.hot_now())


def engines_of_ours():
    """By updown it is as by ftree. Lanes of vFtree do not help the victim, whose path is in the same as the hot
    spot's next to it; the slow one does, which no path is in."""
    for engine, name, lanes, how in (("updown", "I", {"0"}, {}),
                                     ("vftree", "IV", {"0", "1"}, {"slow_sl": 3, "sl": "sa", "vftree_lanes": 2})):
        with Experiment(name, engine=engine, **how) as x:
            found = freed_by(x, engine)
            expect(x.flows.fast[x.victim] == x.flows.fast[x.hot[0]], "one lane", x.flows.fast)
            expect(found == lanes, engine, found)


def every_engine():
    """By the tables of all others that route a tree. VOQsw's queues keep most of a victim free by themselves."""
    for engine, how in (("minhop", {}), ("updn", {}), ("dnup", {}), ("lash", {"sl": "sa"}), ("nue", {}), ("pftree", {"sl": "sa"}),
                        ("voqsw", {"slow_sl": 8, "sl": "sa"})):
        with Experiment("I", engine=engine, **how) as x:
            freed_by(x, engine, queues=engine == "voqsw")


def in_slow_lane(fabric, hot, slow):
    """The service levels of paths, and credit loops when all to that LID are in the slow lane."""
    fabric.repath_fabric_check(fabric.sm_host, "save", "state")
    with open(f"{fabric.dir}/state", encoding="utf-8") as file:
        text = file.read()
    paths = re.findall(r"^sl (\d+) (.*)$", text, re.M)
    expect(paths, text)
    with open(f"{fabric.dir}/slow", "w", encoding="utf-8") as file:
        file.write(re.sub(r"^sl .*\n", "", text, flags=re.M))
        for source, ranges in paths:
            levels = {lid: sl for first, last, sl in re.findall(r"(\d+)-(\d+):(\d+)", ranges)
                      for lid in range(int(first), int(last) + 1)}
            if int(source) != hot:
                levels[hot] = slow
            file.write(f"sl {source} " + " ".join(f"{lid}-{lid}:{levels[lid]}" for lid in sorted(levels)) + "\n")
    found = json.loads(fabric.repath_fabric_check(fabric.sm_host, "from", "slow").stdout)
    expect(not found["unreachable"], found)
    return set(re.findall(r"-\d+:(\d+)", text)), found["credit_loops"]


def one_lane_loops():
    """Where dfsssp needs its lanes the slow one closes a loop: nobody is told to use it. By up-down routing all
    paths may be in one lane."""
    with Managed("torus:5x5,hosts=1", "-R dfsssp -Q", slow_sl=1, conf=SWEEPS) as fabric:
        hosts = [int(lid) for lid in re.findall(r'Hca 1 "H\d+".*\n\[1\]\t.*?\tlid (\d+)', fabric.command("Dump"))]
        expect(any(in_slow_lane(fabric, lid, 1)[1] for lid in hosts), "a credit loop in the slow lane")
        expect(any("slow_sl is set, but paths of dfsssp have credit loops in one lane" in line
                   for line in fabric.plugin_log()), *fabric.plugin_log())
        until(lambda: fabric.status()["hot_spots"]["sweeps"] > 1, fabric.status())
        expect(fabric.status()["hot_spots"]["links"] == 0, fabric.status())
    with Managed("torus:5x5,hosts=1", "-R updown -Q", slow_sl=1, conf=SWEEPS) as fabric:
        expect(not any("slow_sl" in line for line in fabric.plugin_log()), *fabric.plugin_log())
        until(lambda: fabric.status()["hot_spots"]["links"] == 25, fabric.status())


def nothing_to_see():
    """Without the performance manager there are no readings, which is said."""
    with Managed("mesh:3x2", "-R lash", slow_sl=1, conf="perfmgr_sweep_time_s 1") as fabric:
        expect(any("perfmgr is not" in line for line in fabric.plugin_log()), fabric.plugin_log())
        time.sleep(3)
        expect(fabric.status()["hot_spots"]["sweeps"] == 0, fabric.status())


def main():
    nothing_to_see()
    one_lane_loops()
    first()
    other_engine()
    engines_of_ours()
    every_engine()
    link_fails()
    return 0


if __name__ == "__main__":
    sys.exit(main())
