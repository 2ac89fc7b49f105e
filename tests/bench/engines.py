# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What routing engines cost in stock OpenSM on full fat trees of switches with 36 ports: the plugin's beside
OpenSM's ftree and dfsssp. The time is the processor's for the hop counts, with which ftree makes its tree and
dfsssp its graph, and for the tables; the memory is the most that OpenSM ever had."""

import math
import re
import statistics
import time

from paths import Large

BED = False
TREES = {324: "xgft:18,18/1,18", 648: "tree:36,2", 5832: "xgft:18,18,18/1,18,18", 11664: "tree:36,3"}
TIMES = {324: 7, 648: 7}    # what takes milliseconds is measured again: the median counts
OPENSM = ("ftree", "dfsssp")
# Ours, with what each needs.
ENGINES = {
    "pftree": {},
    "updown": {},
    "vftree": {},
    "voqsw": {},
}


class Patient(Large):
    """dfsssp takes minutes of the processor for the largest tree."""

    def wait_sm(self, mark, want="", patience=3600):
        return super().wait_sm(mark, want, patience)


def settle(fabric):
    """The status when all that was computed is set."""
    while True:
        paths = fabric.status()["paths"]
        if paths["routings"] == paths["told"] > 0:
            return paths
        time.sleep(0.5)


def cost(topology, engine, options):
    """Seconds for the hop counts and for tables, and megabytes."""
    with Patient(topology, f"-R {engine},no_fallback -Q", conf="max_wire_smps 64", **options) as fabric:
        paths = settle(fabric)
        if f"{engine} tables configured" not in fabric.sm_log():
            raise RuntimeError(f"{engine} did not route {topology}: {fabric.sm_log()[-1000:]}")
        with open(f"/proc/{fabric.sm.pid}/status", encoding="utf-8") as file:
            memory = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) / 1e3
    return paths["cpu"]["hops_us"] / 1e6, paths["cpu"]["tables_us"] / 1e6, memory


def growth(of):
    """Power of the number of hosts, from the second size on: the first is over too soon."""
    sizes = sorted(of)
    return math.log(of[sizes[-1]] / of[sizes[1]]) / math.log(sizes[-1] / sizes[1])


def bench(record):
    engines = [*((name, {}) for name in OPENSM), *ENGINES.items()]
    seconds, memory = ({name: {} for name, _ in engines} for _ in range(2))
    for hosts, topology in TREES.items():
        for engine, options in engines:
            matrices, tables, mb = (statistics.median(column) for column in zip(*(
                cost(topology, engine, options) for _ in range(TIMES.get(hosts, 1)))))
            seconds[engine][hosts], memory[engine][hosts] = matrices + tables, mb
            aim = ("not slower", 1.0) if engine in ENGINES else ()
            beside = {f"beside_{name}": (matrices + tables) / seconds[name][hosts] for name in OPENSM
                      if hosts in seconds[name]}
            record(f"{hosts} hosts, {engine}: processor seconds to route beside ftree", matrices + tables,
                   seconds["ftree"][hosts], *aim, hop_counts_s=matrices, tables_s=tables, mb=mb,
                   ftree_mb=memory["ftree"][hosts], **beside)
    for engine, _ in engines:
        for what, of in (("time", seconds), ("OpenSM's memory", memory)):
            record(f"{engine}: power of the number of hosts that its {what} grows with, 648 to 11664, "
                   "beside ftree's", growth(of[engine]), growth(of["ftree"]))
