# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How long a connection stands still when a cable comes back, by which its new path leads: with RePath that waits until
OpenSM has made the link active (link_wait), and with RePath as soon as tables are set. Two guests with three hosts each
of the papers' 3x2 mesh, S2-S5 pulled and put back, checked traffic between two hosts whose path changes, and two whose path
does not; each queue pair has 30 messages a second, and tries again after two seconds."""

import statistic
from rc_flows import service_levels
from test_sm_plugin import LINK, mesh, reroute, start_flows, told, wait_heard

import bed as beds

BED = False
ROUNDS = 5
WAITS = (1000, 0)


def gaps(link_wait):
    """([ms without a message of who follows, each time that the cable is back], the same of who stays, the plugin's word)"""
    found = [], []
    with beds.Bed() as bed:
        fabric = mesh(bed, f"method auto\nlink_wait {link_wait}")
        old = service_levels(fabric)
        fabric.command(f"Unlink {LINK}")
        new = wait_heard(fabric, told(fabric)["signal"]["repath"])
        for _ in range(ROUNDS):
            pairs = start_flows(fabric, old, new)
            reroute(fabric, "ReLink", old)
            told(fabric)
            for pair, to in zip(pairs, found):
                pair.wait_progress(30)
                to.append(pair.finish()[0]["max_gap_ms"])
            reroute(fabric, "Unlink", new)
            status = told(fabric)
    return *found, status["paths"]


def bench(record):
    (follow, stay, paths), (at_once, _, none) = map(gaps, WAITS)
    assert paths["waits"] >= ROUNDS and not none["waits"], (paths, none)
    record("ms without a message when a cable is back", statistic.median(follow), statistic.median(at_once),
           aim="not longer than without waiting", most=1, longest=max(follow), longest_at_once=max(at_once),
           who_stays=statistic.median(stay), waited_ms=paths["waited_ms"], late=paths["late"])
