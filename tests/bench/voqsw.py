# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""VOQsw: table 1 and figures 6 to 11. Random networks of 8-port switches, 4 hosts each, 1x links, 100 ns in
a switch and in a cable, 1 KB for each lane, packets of 32 bytes; up-down routing that takes the first of
several ways; 1 ms until networks that break down have done so, and 1 ms measured. tests/sm/voqsw.c,
virtual time. Against as many virtual networks: each packet takes any lane and keeps it. A host's packets of
one lane wait for each other. Hosts choose the first lane by the path, which no table of InfiniBand can, but
where it says so.

A curve is a list of [offered, accepted, ns], bytes of payload/ns/switch; throughput is what is accepted
at the highest load, where the virtual networks of the paper have broken down, too.

VOQSW_PARTS="hot_spots percents table engine figures" are all parts; tests/bench/plot draws the last."""

import functools
import json
import os
import statistics
import subprocess

import image

BED = False
PROGRAM = os.path.join(image.TOP, "build", "tests", "sm", "voqsw")
SEEDS = range(1, 9)
LOADS = {8: (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5),
         16: (0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.5),
         32: (0.02, 0.04, 0.05, 0.06, 0.08, 0.1, 0.5),
         64: (0.01, 0.02, 0.03, 0.04, 0.06, 0.1, 0.5)}
# Service levels that a full VOQ takes, percent of it with 8 and 4, throughput beside 8 virtual networks.
PAPER = {8: (12, 58, 12, 1.82, 1.87, 1.75), 16: (40, 15, 8, 1.86, 1.61, 1.58),
         32: (108, 16, 10, 1.74, 1.47, 1.46), 64: (257, 16, 9, 3.35, 3.29, 3.14)}
FULL = 511
# Figures: parts of the load at which virtual networks break down, and the highest load; and hot spots' loads.
KNEES = {8: 0.2, 16: 0.1, 32: 0.05, 64: 0.025}
PARTS = (0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3)
HOT_LOADS = (0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
KINDS = {"8 virtual networks": (0, 8), "full VOQ": (FULL, 8, "free=1"), "8 SLs, 8 VLs": (8, 8, "free=1"),
         "8 SLs, 8 VLs, evenly": (8, 8, "free=1", "even=1"), "4 SLs, 8 VLs": (4, 8, "free=1"),
         "4 SLs, 4 VLs": (4, 4, "free=1")}
SOME, FEWER = list(KINDS)[:4], ("8 virtual networks", "8 SLs, 8 VLs", "4 SLs, 8 VLs", "4 SLs, 4 VLs")
# Which figures of the paper, switches, traffic, kinds.
FIGURES = (
    ("6a, 9a, 10a, 11a", 8, (), ("8 virtual networks", "full VOQ", *FEWER[1:])),
    ("6b", 16, (), SOME), ("6c, 9b", 32, (), SOME), ("6d", 64, (), SOME),
    *(("7", 8, (f"hot={hot}",), FEWER[:2]) for hot in (10, 20, 40, 70)),
    ("8", 8, ("hot=20", "spots=4"), FEWER[:2]), ("10b, 11b", 8, ("hot=40", "spots=4"), FEWER))


@functools.lru_cache(None)
def run(size, seed, sls, vls, *options, loads=None):
    """The first row tells of service levels, if there are any; then the points of the curve."""
    loads = LOADS[size] if loads is None else loads
    text = subprocess.run([PROGRAM, *map(str, (size, seed, sls, vls, *loads, *options))],
                          check=True, text=True, stdout=subprocess.PIPE).stdout
    rows = [json.loads(line) for line in text.splitlines()]
    levels = rows[0] if sls else None
    rows = rows[1:] if sls else rows
    if any(row["deadlock"] for row in rows):
        raise RuntimeError(f"a deadlock: {size} switches, seed {seed}, {sls} SLs, {vls} VLs")
    return levels, rows


def curve(rows):
    return [[row["load"], row["accepted"], row["latency_ns"]] for row in rows]


def most(rows):
    return max(row["accepted"] for row in rows)


def percent(levels, which):
    """How many crossings have a queue; None where there are none."""
    queued, of = levels[which]
    return 100 * queued / of if of else None


def compare(record, text, size, sls, vls, *options, paper=None):
    """One kind of VOQ beside 8 virtual networks, the mean of all seeds."""
    ours, theirs, peaks, shares, used, curves = [], [], [], [], [], None
    traffic = [word for word in options if word.split("=")[0] in ("hot", "spots", "plain")]
    for seed in SEEDS:
        _, base = run(size, seed, 0, 8, *traffic)
        levels, rows = run(size, seed, sls, vls, *options)
        ours.append(rows[-1]["accepted"])
        theirs.append(base[-1]["accepted"])
        peaks.append(most(rows) / most(base))
        shares.append(percent(levels, "crossings"))
        used.append(levels["used_sls"])
        curves = curves or {"curve": curve(rows), "curve_8_vns": curve(base)}
    record(f"{size} switches, {text}: throughput, bytes/ns/switch, beside 8 virtual networks",
           statistics.mean(ours), statistics.mean(theirs), by_seed=[a / b for a, b in zip(ours, theirs)],
           most_accepted=statistics.mean(peaks), percent_of_voq=round(statistics.mean(shares), 1),
           percents=[round(share) for share in shares], sls=used, paper=paper, **curves)


def table(record):
    for size, (full, eight, four, *factors) in PAPER.items():
        compare(record, "full VOQ", size, FULL, 8, "free=1", "plain=1",
                paper={"sls": full, "percent": 100, "factor": factors[0]})
        for sls, percent, factor in ((8, eight, factors[1]), (4, four, factors[2])):
            paper = {"percent": percent, "factor": factor}
            compare(record, f"{sls} SLs, lowest first", size, sls, 8, "free=1", "plain=1", paper=paper)
            compare(record, f"{sls} SLs, evenly", size, sls, 8, "free=1", "plain=1", "even=1", paper=paper)
        compare(record, "16 SLs, evenly, hosts with tables", size, 16, 8, "hosts=1", "even=1", "plain=1")
        compare(record, "8 SLs, evenly, links used evenly", size, 8, 8, "free=1", "even=1")


def engine(record):
    """As InfiniBand can have it: the lane goes by the service level alone. The first of each size are the engine's
    defaults, the second are with voqsw_hosts off."""
    for size in PAPER:
        for sls in (8, 16, 4):
            for options in (("hosts=1",), ()):
                compare(record, f"the engine, {sls} SLs, hosts {'with' if options else 'without'} tables", size, sls, 8,
                        "even=1", *options)


def percents(record):
    """Table 1's, of crossings between switches alone, and of those that come from a switch; and how many service
    levels the former would need if nothing else had queues."""
    for size, (full, *paper, _, _, _) in PAPER.items():
        for sls, theirs in zip((8, 4), paper):
            levels = [run(size, seed, sls, 8, "free=1", "plain=1", loads=())[0] for seed in SEEDS]
            for which in ("between_switches", "from_switches"):
                shares = [share for share in (percent(of, which) for of in levels) if share is not None]
                record(f"{size} switches, {sls} SLs, lowest first: percent of crossings {which.replace('_', ' ')} that "
                       "have a queue, beside the paper's", statistics.mean(shares), theirs,
                       percents=[round(share) for share in shares], counted=[of[which] for of in levels])
        levels = [run(size, seed, FULL, 8, "plain=1", "inner=1", loads=())[0] for seed in SEEDS]
        record(f"{size} switches: SLs for queues of all crossings between switches, beside the paper's full VOQ",
               statistics.mean(of["used_sls"] for of in levels), full, sls=[of["used_sls"] for of in levels])


def mean_curve(size, kind, traffic):
    """Of all seeds; and what hot hosts receive at the highest load."""
    loads = HOT_LOADS if traffic else (*(round(part * KNEES[size], 4) for part in PARTS if part * KNEES[size] < 0.5),
                                       0.5)
    rows = [run(size, seed, *KINDS[kind], "plain=1", *traffic, loads=loads)[1] for seed in SEEDS]
    points = [[statistics.mean(column) for column in zip(*points)] for points in zip(*map(curve, rows))]
    return points, statistics.mean(of[-1]["at_hot"] for of in rows)


def figures(record):
    for number, size, traffic, kinds in FIGURES:
        base = None
        for kind in kinds:
            points, at_hot = mean_curve(size, kind, traffic)
            base = base or points
            record(f"figure {number}, {size} switches, {' '.join(traffic) or 'uniform'}, {kind}: bytes/ns/switch at "
                   "the highest load, beside 8 virtual networks", points[-1][1], base[-1][1], figure=number,
                   switches=size, traffic=traffic, kind=kind, curve=points, at_hot=at_hot)


def hot_spots(record):
    for hot in (10, 20, 40, 70):
        compare(record, f"8 SLs, lowest first, {hot} % to a hot spot", 8, 8, 8, "free=1", "plain=1",
                f"hot={hot}")
        compare(record, f"16 SLs, evenly, hosts with tables, {hot} % to a hot spot", 8, 16, 8, "hosts=1",
                "even=1", "plain=1", f"hot={hot}")
    for hot, sls, vls in ((20, 8, 8), (40, 8, 8), (40, 4, 8), (40, 4, 4)):
        compare(record, f"{sls} SLs, {vls} VLs, lowest first, {hot} % to 4 hot spots", 8, sls, vls,
                "free=1", "plain=1", f"hot={hot}", "spots=4")
    compare(record, "4 SLs, 4 VLs, lowest first", 8, 4, 4, "free=1", "plain=1")


def bench(record):
    record.parts(hot_spots, percents, table, engine, figures)
