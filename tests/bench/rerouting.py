# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What signalling adds to the subnet manager's rerouting, by method (paper II, figure 7b): the papers' mesh,
stock OpenSM with LASH, five hosts that listen and answer; S4-S5 goes down, which changes no path, or S2-S5,
which does. From the first trap in OpenSM's log to its last "SUBNET UP"; medians. No guests."""

import re
import statistics

from fabric_clocks import managed, of_sm

BED = False
ROUNDS = 3
METHODS = ("none", "wildcard", "repath-only", "hybrid", "affected", "auto")
TRAP = r"num:128\b"     # of a switch, whose link has changed
DAY = 86400
FAULTS = (("no path changes", '"S4"[3]'), ("paths change", '"S2"[3]'))


def stamped(log):
    """[(second of the day, what OpenSM says)]"""
    return [((int(h) * 60 + int(m)) * 60 + int(s) + int(us) / 1e6, text) for h, m, s, us, text in
            re.findall(r"^\w+ +\d+ (\d+):(\d+):(\d+) (\d+) \[\w+\] \w+ -> (.*)$", log, re.M)]


def seconds(log):
    """(from the first trap to the last time that the subnet was up, how often it was)"""
    said = stamped(log)
    traps = [at for at, text in said if re.search(TRAP, text)]
    up = [at for at, text in said if "SUBNET UP" in text]
    return (up[-1] - traps[0]) % DAY, len(up)


def measure(method):
    """{fault: [(seconds, sweeps)]}"""
    sm, hosts = managed(), of_sm("hosts")
    found = {what: [] for what, _ in FAULTS}
    # Who tells nobody compares all the same.
    options = {"method": "hybrid", "dry_run": "on"} if method == "none" else {"method": method}
    with sm.Managed(f"{sm.NETS}/mesh3x2.net", "-R lash", **options) as fabric:
        with hosts.Hosts(fabric) as listeners:
            for what, cable in FAULTS * ROUNDS:
                before = len(fabric.sm_log())
                listeners.fault(f"Unlink {cable}")
                found[what].append(seconds(fabric.sm_log()[before:]))
                listeners.fault(f"ReLink {cable}")
    return found


def bench(record):
    found = {method: measure(method) for method in METHODS}
    for what, _ in FAULTS:
        alone = statistics.median(taken for taken, _ in found["none"][what])
        for method in METHODS:
            taken, sweeps = zip(*found[method][what])
            record(f"{what}, {method}: seconds of rerouting", statistics.median(taken), alone,
                   least_of_rounds=min(taken), most_of_rounds=max(taken), sweeps=statistics.median(sweeps))
