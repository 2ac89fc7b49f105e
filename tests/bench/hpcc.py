# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Table 2 of pFTree's paper with programs that Debian has: hpcc over Open MPI and UCX, a rank on each of the four
hosts of figure 8's program, while eight perftest flows of the other hosts interfere. RC between twelve software
HCAs in one guest, on links that an emulated processor can fill; OpenSM in there has the engine.

What is taken is what the network decides: random access, and the transposition of a matrix. What is of the
processor is skipped over, and hpcc is ended before its bandwidth test, whose messages take minutes here.
`scripts/setup hpcc` installs it. HPCC_RUNS is how often each is run, HPCC_CASES="unaware,pFTree,pFTree-Ext" which."""

import os
import random
import re
import statistics
import time

import bed as beds
import mpi
from pftree import CLUSTER, PROGRAM, start_opensm
from rc_flows import Flows, service_level, slow_links

BED = False
HPCC = "/usr/bin/hpcc"
DIRECTORY = "/run/hpcc"
RUNS = int(os.environ.get("HPCC_RUNS", 3))      # of each, in turn: the median counts
PATIENCE = 900
# Of HPL's matrix, from which hpcc takes the length of all else, and of one more that PTRANS transposes. The seconds
# of the latter are said with two digits behind the point.
SIZE, BLOCK, TRANSPOSED = 140, 20, 200
OTHERS = [host for host in range(1, 13) if host not in PROGRAM]
NOISE = random.Random(1).sample([(a, b) for a in OTHERS for b in OTHERS if a != b], 8)
DIVIDED = {"program": PROGRAM, "others": OTHERS}
CASES = {
    "unaware": ({"all": range(1, 13)}, "", 1),
    "pFTree": (DIVIDED, "", 8),
    "pFTree-Ext": (DIVIDED, "strict\npartition program phy\n", 8),
}
# Line by line, as hpcc reads it: HPL's, and what PTRANS does besides.
INPUT = f"""HPL
hpcc
HPL.out
8
1
{SIZE}
1
{BLOCK}
0
1
2
2
16.0
1
2
1
4
1
2
1
1
1
1
1
1
2
64
0
0
1
8
PTRANS
1
{TRANSPOSED}
0
1
"""
# hpcc's section, and what to take from it, all of its lines together.
TIMES = {
    "MPIRandomAccess": r"^Real time used = ([\d.]+)",
    "MPIRandomAccess_LCG": r"^Real time used = ([\d.]+)",
    "PTRANS": rf"^WALL\s+{TRANSPOSED}(?:\s+\d+){{5}}\s+([\d.]+)\s+PASSED",
}
LAST = "Begin of LatencyBandwidth section"


def seconds(text):
    """What hpcc says that each took."""
    found = {}
    for name, pattern in TIMES.items():
        said, = re.findall(rf"^Begin of {name} section\.$(.*?)^End of {name} section\.$", text, re.M | re.S)
        times = re.findall(pattern, said, re.M)
        if not times:
            raise RuntimeError(f"{name}: {said}")
        found[name] = sum(map(float, times))
    return found


def one_run(fabric, sl):
    """hpcc from its start to its bandwidth test."""
    a = fabric.guest
    places = " ".join(fabric.hosts[f"H{host}"] for host in PROGRAM)
    a.run(f"rm -rf {DIRECTORY}; mkdir {DIRECTORY}; cat > {DIRECTORY}/hpccinf.txt", stdin=INPUT.encode())
    job = a.start(f"""
        cd {DIRECTORY}; export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        exec mpirun -H {a.mgmt_ip}:{len(PROGRAM)} -n {len(PROGRAM)} --mca plm_rsh_agent /usr/bin/mpi-launch \\
            --mca oob_tcp_if_include mgmt --mca mpi_yield_when_idle 1 --bind-to none --mca pml ucx --mca osc ucx \\
            -x UCX_TLS=rc_verbs,ud_verbs:aux,self -x UCX_IB_SL={sl} -x UCX_RC_TIMEOUT=8s -x UCX_UD_TIMEOUT=600s \\
            sh -c 'set -- {places}; shift $OMPI_COMM_WORLD_RANK; UCX_NET_DEVICES=$1:1 exec hpcc'""")
    end = time.monotonic() + PATIENCE
    # The guest is busy, and so may the machine be.
    while LAST not in (text := a.run(f"cat {DIRECTORY}/hpccoutf.txt", PATIENCE, check=False)):
        if not job.running or time.monotonic() > end:
            raise RuntimeError(f"hpcc: {text[-1000:]} {job.output()[:3000]}")
        time.sleep(3)
    job.kill()
    job.wait(60, check=False)
    a.wait_until("! pidof hpcc")
    return seconds(text)


def level(fabric):
    """Of all paths between the program's hosts: UCX takes one for all."""
    levels = {service_level(fabric, f"H{a}", f"H{b}") for a in PROGRAM for b in PROGRAM if a != b}
    if len(levels) > 1:
        raise RuntimeError(f"paths of the program have SLs {levels}")
    return levels.pop()


def case(name, runs=RUNS):
    """{program: (seconds of each run alone, beside the flows)}"""
    taken = {program: ([], []) for program in TIMES}
    with beds.Bed() as bed:
        mpi.bring(bed)
        bed.files["usr/bin/hpcc"] = HPCC
        fabric = bed.fabric(CLUSTER, opensm=None, memory=1280)
        start_opensm(fabric, *CASES[name])
        flows = [(f"H{a}", f"H{b}") for a, b in NOISE]
        flows = [(a, b, service_level(fabric, a, b)) for a, b in flows]
        sl = level(fabric)
        slow_links(fabric)
        for _ in range(runs):
            for beside in range(2):
                running = Flows(fabric, flows) if beside else None
                if running:
                    running.rates(3)
                found = one_run(fabric, sl)
                print(f"{name}, {'beside' if beside else 'alone'}: {found}", flush=True)
                for program, took in found.items():
                    taken[program][beside].append(took)
                if running:
                    running.stop()
    return taken


def tell(record, name, taken):
    for program, runs in taken.items():
        alone, beside = map(statistics.median, runs)
        record(f"table 2, hpcc's {program}, {name}: seconds beside eight flows, and alone", beside, alone,
               runs_alone=runs[0], runs_beside=runs[1])


def bench(record):
    if not os.path.exists(HPCC):
        raise beds.Skip("needs Debian's package hpcc: scripts/setup hpcc")
    beside = {}
    for name in os.environ.get("HPCC_CASES", ",".join(CASES)).split(","):
        taken = case(name)
        tell(record, name, taken)
        beside[name] = {program: statistics.median(runs[1]) for program, runs in taken.items()}
        for program in TIMES if name != "unaware" and "unaware" in beside else ():
            record(f"table 2, hpcc's {program}: seconds beside eight flows with {name}, and unaware",
                   beside[name][program], beside["unaware"][program])
