# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What routing engines cost in stock OpenSM on full fat trees of switches with 36 ports: the plugin's beside
OpenSM's ftree and dfsssp, and its lash where that is asked for (ENGINES_CASES, with ENGINES_BOUND in
seconds: it takes hours). The time is the processor's for the hop counts, with which ftree makes its tree and
dfsssp its graph, and for the tables; the memory is the most that OpenSM ever had. Other trees are what
ENGINES_TREES="216=xgft:6,6,6/1,6,6" says, by hosts, for ENGINES_CASES="216:lash". "648:pftree/100" is with 100 partitions,
of one of which each host is a member by lot."""

import math
import os
import random
import re
import statistics
import time

from paths import Large

BED = False
TREES = {324: "xgft:18,18/1,18", 648: "tree:36,2", 5832: "xgft:18,18,18/1,18,18", 11664: "tree:36,3"}
TREES |= {int(n): tree for n, tree in (word.split("=", 1) for word in os.environ.get("ENGINES_TREES", "").split())}
TIMES = {324: 7, 648: 7}    # what takes milliseconds is measured again: the median counts
OPENSM = ("ftree", "dfsssp")
# Ours, with what each needs.
ENGINES = {
    "pftree": {},
    "updown": {},
    "vftree": {},
    "voqsw": {},
}


class Unfinished(Exception):
    """When it was waited for long enough: with the processor seconds that OpenSM had by then."""

    def __init__(self, seconds):
        super().__init__(seconds)
        self.seconds = seconds


class Patient(Large):
    """dfsssp takes minutes of the processor for the largest tree."""
    bound = 3600

    def wait_sm(self, mark, want="", patience=None):
        try:
            return super().wait_sm(mark, want, self.bound)
        except Exception as failed:
            if self.sm.poll() is not None:
                raise
            with open(f"/proc/{self.sm.pid}/stat", encoding="ascii") as file:
                ticks = file.read().rpartition(")")[2].split()[11:13]
            raise Unfinished(sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")) from failed


def settle(fabric):
    """The status when all that was computed is set."""
    while True:
        paths = fabric.status()["paths"]
        if paths["routings"] == paths["told"] > 0:
            return paths
        time.sleep(0.5)


def split(name):
    """The engine of a case, and its number of partitions, 0: none but OpenSM's own."""
    engine, _, partitions = name.partition("/")
    return engine, int(partitions or 0)


def cost(hosts, engine, options, bound=Patient.bound):
    """Seconds for the hop counts, for tables and, of these, for the copy that is kept of them; megabytes, and the
    copy's."""
    engine, partitions = split(engine)
    patient = (Tenants if partitions else Patient)(TREES[hosts], f"-R {engine},no_fallback -Q", conf="max_wire_smps 64",
                                                   **options)
    patient.partitions, patient.hosts = partitions, hosts
    patient.bound = bound
    with patient as fabric:
        paths = settle(fabric)
        if f"{engine} tables configured" not in fabric.sm_log():
            raise RuntimeError(f"{engine} did not route {hosts} hosts: {fabric.sm_log()[-1000:]}")
        with open(f"/proc/{fabric.sm.pid}/status", encoding="utf-8") as file:
            memory = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) / 1e3
    cpu = paths["cpu"]
    return cpu["hops_us"] / 1e6, cpu["tables_us"] / 1e6, cpu["keep_us"] / 1e6, memory, cpu["kept"] / 1e6


class Tenants(Patient):
    """With partitions, of one of which each host is a full member."""

    def start_opensm(self, options):
        rng = random.Random(7)
        members = [[] for _ in range(self.partitions)]
        for host in range(1, self.hosts + 1):
            rng.choice(members).append(self.port_guid(f"H{host}"))
        self.write_partitions((f"p{n}", n + 0x101, guids) for n, guids in enumerate(members) if guids)
        return super().start_opensm(options)


def growth(of):
    """Power of the number of hosts, from the second size on: the first is over too soon."""
    sizes = sorted(of)
    return math.log(of[sizes[-1]] / of[sizes[1]]) / math.log(sizes[-1] / sizes[1])


def wanted(name):
    """ENGINES_CASES="11664:ftree 11664:lash" are some of what there is; by themselves all but lash."""
    cases = os.environ.get("ENGINES_CASES")
    return name in cases.split() if cases else not name.endswith(":lash")


def tell(record, hosts, engine, found):
    hop_counts, tables, keep, mb, kept = found[engine][hosts]
    both = hop_counts + tables
    theirs = {name: found[name][hosts] for name in OPENSM if hosts in found[name]}
    ftree = theirs.get("ftree")
    aim = ("not slower", 1.0) if split(engine)[0] in ENGINES and ftree else ()
    record(f"{hosts} hosts, {engine}: processor seconds to route beside ftree", both, ftree and sum(ftree[:2]), *aim,
           hop_counts_s=hop_counts, tables_s=tables, mb=mb, ftree_mb=ftree and ftree[3],
           **{f"beside_{name}": both / sum(of[:2]) for name, of in theirs.items()})
    if split(engine)[0] in ENGINES:
        record(f"{hosts} hosts, {engine}: processor seconds to keep a copy of the tables beside making them", keep,
               tables, kept_mb=kept, of_hop_counts_too=keep / both)


def bounded(record, hosts, engine, ftree):
    """For an engine that may take hours: how much of the processor OpenSM had when it was ended."""
    seconds = float(os.environ.get("ENGINES_BOUND", Patient.bound))
    try:
        return cost(hosts, engine, {}, seconds)
    except Unfinished as unfinished:
        record(f"{hosts} hosts, {engine}: processor seconds without an end beside what ftree took for all",
               unfinished.seconds, ftree and sum(ftree[:2]), waited_s=seconds)
        return None


def bench(record):
    asked = {name.partition(":")[2] for name in os.environ.get("ENGINES_CASES", "").split() if "/" in name}
    names = (*OPENSM, *ENGINES, *sorted(asked), "lash")
    found = {name: {} for name in names}
    for hosts in TREES:
        for engine in (name for name in names if wanted(f"{hosts}:{name}")):
            if engine == "lash":
                of = bounded(record, hosts, engine, found["ftree"].get(hosts))
            else:
                of = [statistics.median(column) for column in zip(*(
                    cost(hosts, engine, ENGINES.get(split(engine)[0], {})) for _ in range(TIMES.get(hosts, 1))))]
            if of:
                found[engine][hosts] = of
                tell(record, hosts, engine, found)
    for engine, of in found.items():
        for what, number in (("time", lambda row: row[0] + row[1]), ("OpenSM's memory", lambda row: row[3])):
            grown, ftrees = ({hosts: number(row) for hosts, row in rows.items()} for rows in (of, found["ftree"]))
            if len(grown) == len(ftrees) == len(TREES):
                record(f"{engine}: power of the number of hosts that its {what} grows with, 648 to 11664, "
                       "beside ftree's", growth(grown), growth(ftrees))
