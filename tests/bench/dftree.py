# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""dFtree. Its four experiments, closed, in real time on slow links: tests/sm/experiments.py. And its
simulation: 648 hosts in a fat tree send 5 % of their packets to the hot spot of their part of the tree
and the rest to anybody, all in one lane and with the hot spots' packets in a lane of their own; virtual
time, OpenSM's ftree tables. As with vFtree the paper does not say for how long it looked."""

import json
import os
import subprocess
import sys

import image
from fabric_clocks import received, vfabric

BED = False
HOSTS = 648
LINK = 32.0             # Gbit/s of data on 4x QDR
HOT = 0.05
PAPER = {1: 480.25, 3: 345.32, 9: 169.17}       # percent more throughput with dFtree


def load(fabric, spots, separate):
    """Hosts of the same size of part; the first of each part is its hot spot."""
    size = HOSTS // spots
    for first in range(1, HOSTS + 1, size):
        if not separate:
            fabric.command(f'Hotspot "H{first}" {HOT * 100} hosts={first}-{first + size - 1}')
            fabric.command(f"Uniform hosts={first}-{first}")
            continue
        for host in range(first + 1, first + size):
            fabric.command(f'Flow "H{host}" "H{first}" rate={HOT * LINK} sl=1')
    if separate:
        fabric.command(f"Uniform rate={(1 - HOT) * LINK}")


def throughput(spots, separate):
    """What a host receives on the average, Gbit/s: in the first 100 us, in which buffers fill, as vftree.py has
    them, and in 1 ms of what stays."""
    with vfabric().Fabric("tree:36,2", opensm="-R ftree -Q") as fabric:
        load(fabric, spots, separate)
        return received(fabric, HOSTS, ((0, 100), (400, 1000)))


def experiments(record):
    where = [os.path.join(image.TOP, "tests", name) for name in ("sm", "vfabric")]
    with subprocess.Popen([sys.executable, os.path.join(where[0], "experiments.py")],
                          env=dict(os.environ, PYTHONPATH=":".join(where), VFABRIC_TOP=image.TOP),
                          stdout=subprocess.PIPE, text=True) as process:
        for row in map(json.loads, process.stdout):
            name, one, two = row["experiment"], row["one_lane"], row["slow_lane"]
            record(f"experiment {name}, the victim: Gbit/s with the slow lane beside one lane", two[0],
                   one[0], contributors=two[1:], contributors_one_lane=one[1:],
                   **{key: row[key] for key in ("to_slow_lane_s", "to_fast_lane_s")})
    if process.returncode:
        raise RuntimeError(f"experiments.py: status {process.returncode}")


def bench(record):
    for spots, paper in PAPER.items():
        for when, one, two in zip(("the first 100 us", "later"), throughput(spots, False), throughput(spots, True)):
            record(f"648 hosts, {spots} hot spots, slow lane, {when}: Gbit/s a host beside one lane", two, one,
                   percent=round((two / one - 1) * 100, 2), paper_percent=paper,
                   bound_one_lane=round(LINK / (HOT * (HOSTS // spots - 1)), 3))
    experiments(record)
