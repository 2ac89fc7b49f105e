# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""pFTree, its paper's tables and figures.

Figure 7, in virtual time, with the tables and lanes that stock OpenSM gets from the plugin's engine: a flow
of partition one while none, one and two flows of partition two go to its neighbour. So is what there is of
table 2: not its programs, but what they send in an iteration, and four hosts that all send to all, beside
eight flows. The rest by counting flows on links of table 3's trees, with no time (tests/bench/partitions.c): table 4
and figure 10 (what patterns of the victims are delayed), figure 11 (what the others pay), figures 13 to 15 (weights).
Figure 7 once more with perftest's RC traffic between software HCAs, in a guest.

The delay is ORCS's dep_max_delay: of the victims' flows, how many share the fullest link that one of them uses.
PFTREE_PARTS="figure_7 figure_7_programs table_2 counted" are all parts.
"""

import functools
import json
import os
import random
import shlex
import subprocess

import bed as beds
import image
from fabric_clocks import managed
from rc_flows import Flows, LINK as SLOW_LINK, service_level, slow_links

BED = False
SETS, PATTERNS = 20, 2500       # 50000 patterns, as the paper's
LINK = 32.0                     # Gbit/s
TREE = "xgft:3,3/1,2"           # figure 5: three leaves of three hosts, two spines
PARTITIONS = {"one": (1, 5), "two": (2, 6, 9), "three": (3, 4, 7, 8)}
VICTIM, OTHERS = (1, 5), ((2, 6), (9, 6))
FIGURE_7 = {
    "pFTree, one lane": (PARTITIONS, "", 1),
    "pFTree": (PARTITIONS, "", 8),
    "pFTree-Ext": (PARTITIONS, "strict\npartition one phy\n", 8),
}
PAPER_7 = {"pFTree": (1, 0.607, 0.406), "pFTree-Ext": (1, 1, 1)}
# Figure 8: four leaves, the first host of each runs the program.
CLUSTER, PROGRAM, SEEDS = "xgft:3,4/1,2", (1, 4, 7, 10), range(1, 6)
# Table 4 names 64, 128 and 256 nodes; by its text, and table 3, these are 128, 192 and 256. With all-to-all
# of the others, the mean.
PAPER_4 = {
    128: {"bisect": (99.9, 2), "bisect_fb_sym": (106.6, 2.6), "gather": (66.2, 31), "scatter": (29.2, 15.6),
          "alltoall": (122.4, 30)},
    192: {"bisect": (275.8, 2.2), "bisect_fb_sym": (284.5, 2.9), "gather": (204.8, 47),
          "scatter": (80.5, 26.8), "alltoall": (309.8, 46)},
    256: {"bisect": (509.3, 2.5), "bisect_fb_sym": (551.9, 3.6), "gather": (254.9, 63),
          "scatter": (131.3, 34), "alltoall": (593.3, 111.2)},
}

Managed = managed().Managed


class Tenants(Managed):
    """OpenSM is started when its partition file is there."""

    def __init__(self, tree, members, policy, lanes):
        super().__init__(tree, "-R pftree,no_fallback -Q", pftree_lanes=lanes)
        self.members, self.policy = members, policy

    def start_opensm(self, options):
        self.options_of_plugin["pftree_policy"] = f"{self.dir}/policy"
        with open(f"{self.dir}/policy", "w", encoding="utf-8") as file:
            file.write(self.policy)
        self.write_partitions((name, key, [self.port_guid(f"H{host}") for host in hosts])
                              for key, (name, hosts) in enumerate(self.members.items(), 0x101))
        return super().start_opensm(options)


def rates(fabric, flows):
    """Gbit/s by flow."""
    for a, b in flows:
        fabric.command(f'Flow "H{a}" "H{b}" message=20000 window=32 sl=sa')
    fabric.command("Advance 3000")
    fabric.command("Measure")
    fabric.command("Advance 20000")
    return {(int(flow["from"][1:]), int(flow["to"][1:])): flow["gbps"]
            for flow in json.loads(fabric.command("Results json"))["flows"]}


def victims_part(members, policy, lanes):
    """Of a link, with none, one and two flows of the others."""
    parts = []
    for n in range(len(OTHERS) + 1):
        with Tenants(TREE, members, policy, lanes) as fabric:
            parts.append(rates(fabric, (VICTIM, *OTHERS[:n]))[VICTIM] / LINK)
    return parts


def figure_7(record):
    for name, case in FIGURE_7.items():
        parts = victims_part(*case)
        record(f"figure 7, {name}: the victim's part of its link beside two flows", parts[2], parts[0],
               beside_none_one_two=[round(part, 3) for part in parts], paper=PAPER_7.get(name))


def start_opensm(fabric, members, policy, lanes):
    """With the partitions and the policy of a case."""
    lines = ["Default=0x7fff : ALL=full;"]
    for key, (name, hosts) in enumerate(members.items(), 0x101):
        guids = ", ".join(f"{fabric.port_guid(f'H{host}'):#x}=full" for host in hosts)
        lines.append(f"{name}={key:#x} : {guids};")
    for path, text in (("/run/partitions", "\n".join(lines)), ("/run/policy", policy)):
        fabric.guest.run(f"printf '%s\\n' {shlex.quote(text)} > {path}")
    fabric.repath = f"pftree_lanes {lanes}\npftree_policy /run/policy"
    fabric.start_opensm("-R pftree,no_fallback -Q", conf="partition_config_file /run/partitions")
    try:
        fabric.wait_active()
    except TimeoutError:
        print(fabric.sm_log()[-2000:], flush=True)
        raise


def programs_parts(fabric, flows):
    """Of a link, what the victim and its neighbours receive."""
    ways = [(f"H{a}", f"H{b}") for a, b in flows]
    running = Flows(fabric, [(a, b, service_level(fabric, a, b)) for a, b in ways])
    running.rates(6)
    found = [rate / SLOW_LINK for rate in running.rates(12)]
    running.stop()
    return found[0]


def figure_7_programs(record):
    for name, case in FIGURE_7.items():
        with beds.Bed() as bed:
            fabric = bed.fabric(TREE, opensm=None)
            slow_links(fabric)
            start_opensm(fabric, *case)
            parts = [programs_parts(fabric, (VICTIM, *OTHERS[:n])) for n in range(len(OTHERS) + 1)]
        record(f"figure 7, {name}, perftest: the victim's part of its link beside two flows", parts[2],
               parts[0], beside_none_one_two=[round(part, 3) for part in parts],
               paper=PAPER_7.get(name))


ALL_PAIRS = tuple((a, b) for a in PROGRAM for b in PROGRAM if a != b)
RING = tuple((a, b) for i, a in enumerate(PROGRAM) for b in (PROGRAM[i - 1], PROGRAM[(i + 1) % 4]))
LARGE = 1 << 19         # bytes; what is more takes so many times as long
ROUNDS = 10


def grids(side, levels):
    """MG: faces of the four processes of a host, three exchanges a level."""
    return [(3, RING, 4 * (side // 2 >> level) ** 2 * 8) for level in range(levels)]


# Table 2's programs, 16 processes, four on a host one after the other: the paper's seconds with pFTree and
# pFTree-Ext, iterations, and what hosts send in one of them: (how often, who to whom, bytes). CG: vectors are
# transposed, rows are summed up inside of hosts. FT and IS: all arrays, or keys, to their new places.
PROGRAMS = {
    "CG A": (0.228, 0.140, 15 * 26, [(1, ALL_PAIRS, 14000 * 2)]),
    "CG B": (10.382, 8.936, 75 * 26, [(1, ALL_PAIRS, 75000 * 2)]),
    "CG C": (28.276, 25.902, 75 * 26, [(1, ALL_PAIRS, 150000 * 2)]),
    "FT A": (0.744, 0.712, 6, [(1, ALL_PAIRS, 256 * 256 * 128)]),
    "FT B": (8.890, 8.394, 20, [(1, ALL_PAIRS, 512 * 256 * 256)]),
    "FT C": (36.310, 34.088, 20, [(1, ALL_PAIRS, 512 ** 3)]),
    "IS A": (0.164, 0.120, 10, [(1, ALL_PAIRS, 2 ** 23 // 4)]),
    "IS B": (0.646, 0.484, 10, [(1, ALL_PAIRS, 2 ** 25 // 4)]),
    "IS C": (2.820, 2.156, 10, [(1, ALL_PAIRS, 2 ** 27 // 4)]),
    "MG A": (0.274, 0.262, 4, grids(256, 7)),
    "MG B": (1.284, 1.230, 20, grids(256, 7)),
    "MG C": (10.612, 10.568, 20, grids(512, 8)),
}


def exchange(fabric, flows, size):
    """Milliseconds until all have all, the mean of some rounds."""
    took = []
    for _ in range(ROUNDS):
        for a, b in flows:
            fabric.command(f'Flow "H{a}" "H{b}" message={size} messages=1 window=32 sl=sa')
        found = [{}]
        while not all("took_us" in flow for flow in found):
            fabric.command(f"Advance {10 + size * len(flows) / len(PROGRAM) / (LINK * 125)}")
            found = json.loads(fabric.command("Results json"))["flows"][-len(flows):]
        took.append(max(flow["took_us"] for flow in found))
    return sum(took) / len(took) / 1000


def network_seconds(fabric):
    """What the exchanges of each program take."""
    @functools.lru_cache(None)
    def known(flows, size):
        return exchange(fabric, flows, size)

    def phase(flows, size):
        return known(flows, min(size, LARGE)) * max(1, size / LARGE)

    return {program: rounds * sum(n * phase(flows, size) for n, flows, size in phases) / 1000
            for program, (_, _, rounds, phases) in PROGRAMS.items()}


def programs(record, cases, noises):
    """Seconds with Ext are the paper's; of them, what the network takes alone and beside the eight flows."""
    for name, case in cases.items():
        times = []
        for noise in ((), *noises):
            with Tenants(CLUSTER, *case) as fabric:
                fabric.command("Measure")
                for a, b in noise:
                    fabric.command(f'Flow "H{a}" "H{b}" message=20000 window=32 sl=sa')
                fabric.command("Advance 1000")
                times.append(network_seconds(fabric))
        for program, (paper, ext, _, _) in PROGRAMS.items():
            alone, *beside = (found[program] for found in times)
            mean = sum(beside) / len(beside)
            record(f"table 2, {program}, {name}: seconds beside eight flows, by the paper's with Ext and the "
                   "network's part here", ext + mean - alone, ext, network=alone, network_beside=beside,
                   saved_percent=round((mean - alone) / (ext + mean - alone) * 100, 1),
                   paper_saved_percent=round((paper - ext) / paper * 100, 1))


def table_2(record):
    others = [host for host in range(1, 13) if host not in PROGRAM]
    program = ALL_PAIRS
    noises = [random.Random(seed).sample([(a, b) for a in others for b in others if a != b], 8)
              for seed in SEEDS]
    divided = {"program": PROGRAM, "others": others}
    cases = {
        "unaware": ({"all": range(1, 13)}, "", 1),
        "pFTree": (divided, "", 8),
        "pFTree-Ext": (divided, "strict\npartition program phy\n", 8),
    }
    programs(record, cases, noises)
    for name, case in cases.items():
        found = []
        for noise in ((), *noises):
            with Tenants(CLUSTER, *case) as fabric:
                got = rates(fabric, (*program, *noise))
            found.append(sum(got[flow] for flow in program))
        record(f"table 2, {name}: Gbit/s of all-to-all beside eight flows, the mean of {len(noises)} choices",
               sum(found[1:]) / len(noises), found[0], least=min(found[1:]), most=max(found[1:]))


def patterns(record, row):
    name = f"{row['nodes']} nodes, {row['engine']}"
    if "ebb" in row:
        record(f"figure 11, {name}: effective bisection bandwidth of the others", row["ebb"][1],
               least_mean_most=row["ebb"])
    elif "pattern" in row:
        paper = PAPER_4.get(row["nodes"], {}).get(row["pattern"])
        record(f"figure 10, {name}, {row['pattern']}: dep_max_delay beside all-to-all, and beside nothing",
               row["noisy"][1], row["quiet"][1], noisy=row["noisy"], quiet=row["quiet"], nodes=row["nodes"],
               engine=row["engine"], pattern=row["pattern"], paper=paper and paper["Ext" in row["engine"]])
    else:
        for figure, key in ((13, "contention_down"), (13, "contention_up"), (14, "contended_down"),
                            (14, "contended_up"), (15, "interference")):
            record(f"figure {figure}, {name}: {key}", row[key][1], least_mean_most=row[key])


def counted(record):
    with subprocess.Popen([os.path.join(image.TOP, "build", "bench", "partitions"), str(SETS),
                           str(PATTERNS)], stdout=subprocess.PIPE, text=True) as process:
        for row in map(json.loads, process.stdout):
            patterns(record, row)
    if process.returncode:
        raise RuntimeError(f"partitions: status {process.returncode}")


def bench(record):
    record.parts(figure_7, figure_7_programs, table_2, counted)
