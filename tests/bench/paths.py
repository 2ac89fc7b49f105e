# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What OpenSM's plugin costs in a sweep, and what one fault changes (paper II, figures 9 and 10).

On vfabric, with stock OpenSM. The fat trees are the largest whose routing does not take minutes:
648 and 11664 hosts. The meshes are n x n with one host a switch, LASH, and a cable in the middle
is pulled. Their messages are the paper's equations 3 to 6 with the measured number of paths.
SIDES="18 20" (n of the meshes; LASH takes half a minute a routing for 20), TREES="648" (hosts, or nothing) and
STEADY="on" choose.

What the plugin really says is counted where all hosts but OpenSM's subscribe, to 100 switches (HEARD="4 12 14 16 18 20":
to 400), with each method. What hosts ask for then, and how the answer is cut, is not said: it is as the kernel does it (the bench
methods counts that with six hosts), a question for each report that names no path, RMPP's packets of 200 bytes
for the 64 of each LID of the subnet, and its ACKs. tests/bench/plot paths draws both beside the equations.
"""

import os
import re
import time

from fabric_clocks import managed, of_sm

BED = False
PATIENCE = 900
QUIET = 4      # seconds
MAD = 256
TREES = {"648": "tree:36,2", "11664": "tree:36,3"}
HOSTS = os.environ.get("TREES", "648 11664").split()
SIDES = [int(n) for n in os.environ.get("SIDES", "4 6 8 10 12 14 16").split()]
STEADY = os.environ.get("STEADY", "on off").split()
HEARD = [int(n) for n in os.environ.get("HEARD", "4 6 8 10").split()]
METHODS = ("wildcard", "repath-only", "hybrid", "affected", "auto")
RECORD, PACKET = 64, 200    # bytes of a path record, and of records in a packet
ACKED = 64                  # packets after the first that one ACK is for; the last has one in any case
REPATH = 69


hosts_of = of_sm("hosts")
hosts_of.PATIENCE = PATIENCE


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
        with open(f"/proc/{fabric.sm.pid}/status", encoding="utf-8") as file:
            peak = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) / 1e3
        record(f"{hosts} hosts: MB of all of OpenSM, at most", peak)


def mesh(record, side):
    n, changed = side * side, {}
    middle = side // 2 * side + side // 2
    for steady in STEADY:
        with Large(f"mesh:{side}x{side}", "-R lash", method="hybrid", steady=steady) as fabric:
            paths, m, routings = pull(fabric, f'"S{middle}"[2]')
        record(f"{n} switches: paths changed by one fault, steady {steady}", m, n * (n - 1),
               switches=n, steady=steady, routings=routings, routing_us=paths["routing_us"])
        changed.setdefault(n, m)
    ideal = 4 * n + n * n / 4
    for method, messages in (("wildcard", 2 * ideal), ("repath-only", changed[n]), ("hybrid", ideal)):
        record(f"{n} switches: kB of management messages, {method}", messages * MAD / 1e3)


def heard(side, method):
    """(hosts that listen, paths of theirs that changed, routings, reports, questions)"""
    with Large(f"mesh:{side}x{side}", "-R lash", method=method, steady="on") as fabric:
        quiet(fabric)   # who subscribes while LASH routes is not answered in time
        with hosts_of.Hosts(fabric) as hosts:
            lids = {hosts.lid[name] for name in hosts.listeners}
            # What is told of each path is what has changed, and all of it: by the SA, which takes a while with many.
            old = hosts.records() if side == HEARD[0] or method == "repath-only" else {}
            told = {}
            before = hosts.settle()
            middle = side // 2 * side + side // 2
            hosts.fault(f'Unlink "S{middle}"[2]')
            signal, paths = fabric.status()["signal"], fabric.status()["paths"]
            for name in hosts.listeners:
                told[name] = list({notice.number: notice for notice in hosts.heard(name)}.values())
            reports = [notice for notices in told.values() for notice in notices]
            if len(reports) != signal["reports"] - signal["repeated"] or signal["given_up"]:
                raise RuntimeError(f"{len(reports)} reports heard of {signal}")
            named = {(notice.slid, notice.dlid) for notice in reports if notice.trap == REPATH and notice.dlid}
            asks = {hosts.lid[name] for name, notices in told.items()
                    if any(notice.trap == REPATH and not notice.dlid for notice in notices)}
            if old and named:
                new = hosts.records()
                wanted = {path for path in old if path[0] in lids - asks and old[path] != new[path]}
                if named != wanted:
                    raise RuntimeError(f"{method}: told {named ^ wanted} wrongly")
            questions = sum(notice.trap == REPATH and not notice.dlid for notice in reports)
            return len(told), len(named), paths["routings"] - before, len(reports), questions


def signals(record, side):
    """All methods beside paper II's equations, with the hosts that listen as n."""
    switches, changed = side * side, 0
    packets = -(-2 * switches * RECORD // PACKET)
    answer = packets + 1 + -(-(packets - 1) // ACKED)
    for method in sorted(METHODS, key=lambda name: name != "repath-only"):
        n, named, routings, reports, questions = heard(side, method)
        changed = changed or named
        ideal = 4 * n + n * n / 4
        equation = {"repath-only": changed, "hybrid": ideal, "wildcard": routings * ideal}.get(method)
        messages = reports + questions * (1 + answer)
        record(f"{switches} switches, {method}: messages beside the paper's equation", messages, equation, switches=switches,
               method=method, hosts=n, reports=reports, questions=questions, changed=changed, routings=routings,
               kilobytes=messages * MAD / 1e3)


def bench(record):
    for hosts in HOSTS:
        cost(record, TREES[hosts], hosts)
    for side in SIDES:
        mesh(record, side)
    for side in HEARD:
        signals(record, side)
