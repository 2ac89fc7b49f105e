# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What routing engines cost in stock OpenSM on full fat trees of switches with 36 ports: the plugin's beside
OpenSM's ftree and dfsssp. The time is the processor's for the hop counts, with which ftree makes its tree and
dfsssp its graph, and for the tables; the memory is the most that OpenSM ever had."""

import math
import re
import time

from paths import Large

BED = False
TREES = {324: "xgft:18,18/1,18", 648: "tree:36,2", 5832: "xgft:18,18,18/1,18,18", 11664: "tree:36,3"}
OPENSM = ("ftree", "dfsssp")
# Ours, with what each needs.
ENGINES = {
    "pftree": {},
    "updown": {},
    "vftree": {},
    "voqsw": {},
}


def settle(fabric):
    """The status when all that was computed is set."""
    while True:
        paths = fabric.status()["paths"]
        if paths["routings"] == paths["told"] > 0:
            return paths
        time.sleep(0.5)


def cost(topology, engine, options):
    """Seconds for the hop counts and for tables, and megabytes."""
    with Large(topology, f"-R {engine},no_fallback -Q", conf="max_wire_smps 64", **options) as fabric:
        paths = settle(fabric)
        if f"{engine} tables configured" not in fabric.sm_log():
            raise RuntimeError(f"{engine} did not route {topology}: {fabric.sm_log()[-1000:]}")
        with open(f"/proc/{fabric.sm.pid}/status", encoding="utf-8") as file:
            memory = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) / 1e3
    return paths["cpu"]["hops_us"] / 1e6, paths["cpu"]["tables_us"] / 1e6, memory


def bench(record):
    seconds = {}
    for hosts, topology in TREES.items():
        beside = None
        for engine, options in [*((name, {}) for name in OPENSM), *ENGINES.items()]:
            matrices, tables, memory = cost(topology, engine, options)
            total = seconds[engine, hosts] = matrices + tables
            beside = beside or (total, memory, tables)
            aim = ("not slower", 1.0) if engine in ENGINES else ()
            record(f"{hosts} hosts, {engine}: processor seconds to route beside ftree", total, beside[0], *aim,
                   hop_counts_s=matrices, tables_s=tables, ftree_tables_s=beside[2], mb=memory,
                   ftree_mb=beside[1])
    sizes = sorted(TREES)
    for engine in ENGINES:
        first, last = seconds[engine, sizes[1]], seconds[engine, sizes[-1]]
        record(f"{engine}: power of the number of hosts that its time grows with, 648 to 11664",
               math.log(last / first) / math.log(sizes[-1] / sizes[1]))
