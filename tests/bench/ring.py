# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What traffic gets that OpenSM's LASH has rerouted, queue pairs and all, beside what queue pairs get that are made
after the fault: the papers' mesh without one link, which leaves a ring (tests/vm/test_repath_mesh.py). RUNS=n does it
n times."""

import os

from bed import Bed
from test_repath_mesh import NET, explain, repaired

BED = False
RUNS = int(os.environ.get("RUNS", 1))


def bench(record):
    with open(NET) as f:
        net = f.read()
    for _ in range(RUNS):
        with Bed() as bed:
            fabric = bed.fabric(net, opensm="-R lash -Q", repath="")
            try:
                parts, _, _ = repaired(fabric)
            except Exception:
                explain(fabric)
                raise
            record("after the fault, all hosts, parts of a link, beside a fresh start", sum(parts["ring"]),
                   sum(parts["fresh start"]), "at least 95 %", most=float("inf"), least=0.95)
            record("the link back, beside before the fault", sum(parts["mesh again"]), sum(parts["mesh"]))
