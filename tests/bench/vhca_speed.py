# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two software HCAs on two switches beside rxe in the same run: in one guest, where vfabric is a program of it,
while what one rxe sends to itself does not even leave that driver; and between two, where vfabric is outside."""

import re

from statistic import median

ROUNDS = 3
AIM = "within a factor of two"


def run(ends, command, options):
    """A server and its client, (guest, guest), with the options of each; what the client said."""
    a, b = ends
    server = a.start(f"exec {command} {options[0]}")
    a.wait_until("netstat -ltn | grep -q ':18515'")
    text = b.run(f"{command} {options[1]} {a.mgmt_ip}", timeout=120)
    server.wait()
    return text


def round_trip(text):
    """us"""
    return float(re.search(r"iters in .* = ([\d.]+) usec/iter", text)[1])


def megabyte(text):
    """us for a megabyte"""
    return 1e6 / float(re.search(r"^\s*65536\s+\d+\s+[\d.]+\s+([\d.]+)", text, re.M)[1])


def compare(record, where, ends, vhca):
    for metric, command, roce, read in (
            (f"RC ping-pong of 4 KiB by events, {where}, us a round",
             "ibv_rc_pingpong -e -n 500", "-d rxe0 -g 1", round_trip),
            (f"ib_write_bw of 64 KiB, {where}, us for a megabyte",
             "ib_write_bw -F -s 65536 -n 300", "-d rxe0 -x 1", megabyte)):
        values = {vhca: [], (roce, roce): []}
        for _ in range(ROUNDS):
            for options, found in values.items():
                found.append(read(run(ends, command, options)))
        ours, against = (median(found) for found in values.values())
        record(metric, ours, against, AIM, 2, rounds=ROUNDS)


def bench(bed, record):
    a = bed.fabric("mesh:2").guest
    a.run("rdma link add rxe0 type rxe netdev mgmt")
    compare(record, "in one guest", (a, a), ("-d vhca1", "-d vhca2"))
    pair = bed.fabric("mesh:2", guests={"b": ["H1"], "c": ["H2"]}).guests
    for guest in pair:
        guest.run("rdma link add rxe0 type rxe netdev mgmt")
    compare(record, "between two guests", pair, ("-d vhca1", "-d vhca2"))
