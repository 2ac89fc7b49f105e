# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What OpenSM's plugin costs in a sweep, and what one fault changes (paper II, figures 9 and 10).

On vfabric, with stock OpenSM. The fat trees are the largest whose routing does not take minutes:
648 and 11664 hosts. The meshes are n x n with one host a switch, LASH, and a cable in the middle
is pulled. Their messages are the paper's equations 3 to 6 with the measured number of paths.
SIDES="18 20" (n of the meshes; LASH takes half a minute a routing for 20), TREES="648" (hosts, or nothing) and
STEADY="on" choose.
"""

import os
import time

from fabric_clocks import managed

BED = False
PATIENCE = 900
QUIET = 4      # seconds
MAD = 256
TREES = {"648": "tree:36,2", "11664": "tree:36,3"}
HOSTS = os.environ.get("TREES", "648 11664").split()
SIDES = [int(n) for n in os.environ.get("SIDES", "4 6 8 10 12 14 16").split()]
STEADY = os.environ.get("STEADY", "on off").split()


class Large(managed().Managed):
    def wait_sm(self, mark, want="", patience=PATIENCE):
        return super().wait_sm(mark, want, patience)


def quiet(fabric, more_than=0):
    """What the plugin says when OpenSM has routed more than so often, and then not for a while."""
    still, last = 0, None
    while still < QUIET:
        paths = fabric.status()["paths"]
        same = paths == last and paths["routings"] == paths["told"] > more_than
        still, last = still + 1 if same else 0, paths
        time.sleep(1)
    return last


def pull(fabric, cable):
    """Both switches tell of it, and OpenSM may route for each: how many paths changed in all."""
    before = quiet(fabric)
    fabric.command(f"Unlink {cable}")
    after = quiet(fabric, before["told"])
    return after, after["paths"] - before["paths"], after["routings"] - before["routings"]


def cost(record, topology, hosts):
    with Large(topology, "-R minhop", conf="max_wire_smps 64") as fabric:
        for what, paths in (("first", fabric.status()["paths"]),
                            ("after a fault", pull(fabric, '"L1-1"[19]')[0])):
            ours = paths["view_us"] + paths["update_us"] + paths["compare_us"]
            record(f"{hosts} hosts, {what}: microseconds to compare against to route", ours,
                   paths["routing_us"], "below 5 % of the routing time", most=0.05,
                   walked=paths["walked"])
        record(f"{hosts} hosts: MB of tables", paths["memory"] / 1e6)


def mesh(record, side):
    n, changed = side * side, {}
    middle = side // 2 * side + side // 2
    for steady in STEADY:
        with Large(f"mesh:{side}x{side}", "-R lash", method="hybrid", steady=steady) as fabric:
            paths, m, routings = pull(fabric, f'"S{middle}"[2]')
        record(f"{n} switches: paths changed by one fault, steady {steady}", m, n * (n - 1),
               routings=routings, routing_us=paths["routing_us"])
        changed.setdefault(n, m)
    ideal = 4 * n + n * n / 4
    for method, messages in (("wildcard", 2 * ideal), ("repath-only", changed[n]), ("hybrid", ideal)):
        record(f"{n} switches: kB of management messages, {method}", messages * MAD / 1e3)


def bench(record):
    for hosts in HOSTS:
        cost(record, TREES[hosts], hosts)
    for side in SIDES:
        mesh(record, side)
