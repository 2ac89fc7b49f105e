# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two software HCAs on two switches beside rxe, in the same guest and the same run."""

import re

from statistic import median

ROUNDS = 3
AIM = "within a factor of two"


def run(a, command, ours):
    """A client and a server of the same guest; what the client said."""
    server = a.start(f"exec {command} {ours[0]}")
    a.wait_until("netstat -ltn | grep -q ':18515'")
    text = a.run(f"{command} {ours[1]} 127.0.0.1", timeout=120)
    server.wait()
    return text


def round_trip(text):
    """us"""
    return float(re.search(r"iters in .* = ([\d.]+) usec/iter", text)[1])


def megabyte(text):
    """us for a megabyte"""
    return 1e6 / float(re.search(r"^\s*65536\s+\d+\s+[\d.]+\s+([\d.]+)", text, re.M)[1])


def bench(bed, record):
    fabric = bed.fabric("mesh:2")
    a = fabric.guest
    a.run("rdma link add rxe0 type rxe netdev mgmt")
    vhca = ("-d vhca1", "-d vhca2")
    for metric, command, roce, read in (
            ("RC ping-pong of 4 KiB by events, us a round",
             "ibv_rc_pingpong -e -n 500", "-d rxe0 -g 1", round_trip),
            ("ib_write_bw of 64 KiB, us for a megabyte",
             "ib_write_bw -F -s 65536 -n 300", "-d rxe0 -x 1", megabyte)):
        values = {vhca: [], (roce, roce): []}
        for _ in range(ROUNDS):
            for ends, found in values.items():
                found.append(read(run(a, command, ends)))
        ours, against = (median(found) for found in values.values())
        record(metric, ours, against, AIM, 2, rounds=ROUNDS)
