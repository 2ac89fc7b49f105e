# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""vFtree, its paper's figures, in virtual time with the tables and lanes that stock OpenSM gets from the
plugin's engine.

Figures 5 and 6: a hot spot behind a cable that a victim shares: nothing done, InfiniBand's congestion
control, the victim in a lane of its own. Figures 7 to 9: a hot spot on a tree of three leaves, one lane, victims in a lane of their own by hand,
and vFtree's three. Figure 10: 648 hosts send 5 % of their packets to the hot spot of their part of the
tree and the rest to anybody, as fast as they can. The paper does not say for how long it looked; with one
lane that matters. So there are the first 100 us, in which buffers fill, and what stays.

VFTREE_PARTS="congestion small_figures figures_10 even_lanes" are all parts. VFTREE_LANES="1 8" and VFTREE_SEEDS="1 2"
are some of figure 10's; VFTREE_CONTROL="threshold=8 marking=3 increase=4 limit=127 timer=20" are other parameters of
congestion control.
"""

import json
import os

from fabric_clocks import managed, received

BED = False
HOSTS = 648
HOT = 5                 # percent
TREES = {"full": "tree:36,2", "2:1": "xgft:18,36/1,9"}
# Percent more than with one lane.
PAPER = {("full", 1): {2: 459, 4: 676, 6: 744, 8: 757}, ("full", 9): {8: 221},
         ("2:1", 1): {8: 503}, ("2:1", 3): {8: 270}, ("2:1", 9): {6: 97, 8: 90}}
LANES = [int(n) for n in os.environ.get("VFTREE_LANES", "1 2 4 6 8").split()]
SEEDS = [int(n) for n in os.environ.get("VFTREE_SEEDS", "1 2 3 4 5 6 7 8").split()]     # as many as the paper's
EVEN_SEEDS = (1, 2)
START, REST = 100, 1000         # us
CONTROL = os.environ.get("VFTREE_CONTROL", "threshold=15 marking=0 increase=1 limit=127 timer=150")
LINK, BUS = 16.0, 12.9          # Gbit/s: 4x DDR, and the papers' hosts

Managed = managed().Managed
NETS = managed().NETS
# Flows by figure, and their lanes by hand.
SMALL = {
    "8": {"net": "xgft:2,3/1,2,speed=2", "flows": ((1, 5), (3, 5), (6, 5), (2, 3), (4, 1)),
          "by hand": {2: (0, 0, 0, 1, 1)}},
    "9": {"net": f"{NETS}/oversubscribed.net", "flows": ((1, 9), (6, 9), (10, 9), (8, 11)),
          "by hand": {2: (0, 0, 0, 1), 4: (0, 1, 2, 3)}},
}


def small(figure, lanes, levels=None):
    """Gbit/s of each flow; @levels: their service levels, else those of path records."""
    net, flows = figure["net"], figure["flows"]
    with Managed(net, "-R vftree,no_fallback -Q", vftree_lanes=lanes) as fabric:
        for host in {b for _, b in flows}:
            fabric.command(f'Fault "H{host}" drain={round(LINK / BUS * 100)}')
        for i, (a, b) in enumerate(flows):
            level = "sa" if levels is None else levels[i]
            fabric.command(f'Flow "H{a}" "H{b}" message=20000 rate={BUS} sl={level}')
        fabric.command("Advance 3000")
        fabric.command("Measure")
        fabric.command("Advance 20000")
        found = json.loads(fabric.command("Results json"))["flows"]
    rates = {(flow["from"], flow["to"]): round(flow["gbps"], 2) for flow in found}
    return [rates[f"H{a}", f"H{b}"] for a, b in flows]


def small_figures(record):
    for name, figure in SMALL.items():
        one = small(figure, 1)
        cases = {f"{lanes} lanes by hand": small(figure, lanes, levels)
                 for lanes, levels in figure["by hand"].items()}
        for case, rates in {"one lane": one, **cases, "vFtree, 3 lanes": small(figure, 3)}.items():
            record(f"figure {name}, {case}: Gbit/s of all flows beside one lane", sum(rates), sum(one),
                   flows=dict(zip((f"{a}-{b}" for a, b in figure["flows"]), rates)))


def two_switches(lane, control=None):
    """Gbit/s of the victim 1-5 and of those to 6, and of the victim each millisecond."""
    with Managed(f"{NETS}/two_switches.net", "-R vftree,no_fallback -Q") as fabric:
        slow = round(LINK / BUS * 100)
        fabric.command(f'Fault "H6" drain={slow}')
        for host in (1, 2, 7, 8):
            fabric.command(f'Fault "H{host}"[1] slow={slow}')
        if control:
            fabric.command(f"Congestion {control}")
        for a, b, level in ((1, 5, lane), (2, 6, 0), (7, 6, 0), (8, 6, 0)):
            fabric.command(f'Flow "H{a}" "H{b}" message=20000 sl={level}')
        fabric.command("Advance 10000")
        fabric.command("Measure 1000")
        fabric.command("Advance 100000")
        rates = [round(flow["gbps"], 2) for flow in json.loads(fabric.command("Results json"))["flows"]]
        series = [float(line.split(",")[2]) for line in fabric.command("Results series").splitlines()[1:]]
    return rates, [min(series), max(series)]


def congestion(record):
    (none, _), *_ = cases = [two_switches(0), two_switches(0, CONTROL), two_switches(1)]
    for name, (rates, victim) in zip(("nothing", CONTROL, "a lane by hand"), cases):
        record(f"figure 5, {name}: Gbit/s of the victim beside nothing done", rates[0], none[0],
               flows=rates, least_and_most=victim)
        record(f"figure 6, {name}: Gbit/s of all flows beside nothing done", sum(rates), sum(none))


def load(fabric, spots):
    """Hosts of the same size of part; the first of each is its hot spot."""
    size = HOSTS // spots
    for first in range(1, HOSTS + 1, size):
        fabric.command(f'Hotspot "H{first}" {HOT} hosts={first}-{first + size - 1} sl=sa')
        fabric.command(f"Uniform hosts={first}-{first} sl=sa")


def large(net, spots, lanes, seed, even="off"):
    """What a host receives on the average, Gbit/s: at first, and then."""
    with Managed(net, "-R vftree,no_fallback -Q", vftree_lanes=lanes, vftree_even=even,
                 vfabric=("-s", str(seed))) as fabric:
        load(fabric, spots)
        return received(fabric, HOSTS, ((0, START), (REST / 2, REST / 2)))


def mean(rows):
    return [sum(column) / len(column) for column in zip(*rows)]


def figure_10(record, tree, spots):
    one = None
    for lanes in LANES:
        rows = [large(TREES[tree], spots, lanes, seed) for seed in SEEDS]
        found = mean(rows)
        one = one or found
        for when, ours, beside, seeds in zip(("first 100 us", "then"), found, one, zip(*rows)):
            record(f"figure 10, {tree}, {spots} hot spots, {lanes} lanes, {when}: Gbit/s a host "
                   "beside one lane", ours, beside, percent=round((ours / beside - 1) * 100),
                   least_and_most=[min(seeds), max(seeds)],
                   paper_percent=PAPER.get((tree, spots), {}).get(lanes))


def even_lanes(record):
    """What the paper's lanes lose since some leaves have most others in one of them."""
    for tree, spots in (("full", 1), ("full", 9), ("2:1", 1)):
        for lanes in (2, 4, 8):
            paper, even = (mean([large(TREES[tree], spots, lanes, seed, even) for seed in EVEN_SEEDS])
                           for even in ("off", "on"))
            for when, ours, beside in zip(("first 100 us", "then"), even, paper):
                record(f"{tree}, {spots} hot spots, {lanes} lanes, {when}: Gbit/s a host with vftree_even "
                       "beside the paper's lanes", ours, beside)


def figures_10(record):
    for tree in TREES:
        for spots in (1, 3, 9):
            figure_10(record, tree, spots)


def bench(record):
    record.parts(congestion, small_figures, figures_10, even_lanes)
