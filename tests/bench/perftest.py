# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's perftest with and without the shim, in turn: bandwidth and latency."""

import re

from move import SHIM
from statistic import median

ROUNDS = 5
TRIES = 3
BANDWIDTH = [("ib_write_bw", "-s 65536 -n 300"), ("ib_send_bw", "-s 65536 -n 300"),
             ("ib_write_bw", "-s 64 -n 3000")]
LATENCY = [("ib_write_lat", "-s 8 -n 1000"), ("ib_send_lat", "-s 8 -n 1000 -e")]


def run_once(a, b, command, env):
    server = a.start(f"exec env {env} {command}")
    try:
        a.wait_until("netstat -ltn | grep -q ':18515'")
        text = b.run(f"exec env {env} {command} {a.mgmt_ip}")
        server.wait()
        return text
    except TimeoutError:
        server.kill(9)
        server.wait(check=False)
        raise


def run(a, b, command, env):
    """With -e it waits now and then for the event of a completion that it has polled, also without the shim."""
    for _ in range(TRIES - 1):
        try:
            return run_once(a, b, command, env)
        except TimeoutError as error:
            print(f"again: {error}", flush=True)
    return run_once(a, b, command, env)


def bandwidth(text):
    """MB/s on average, or millions of messages where the messages are small."""
    row = re.search(r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)\s+([\d.]+)\s*$", text, re.M)
    return float(row.group(1)) or float(row.group(2))


def latency(text):
    """The typical one, us."""
    row = re.search(r"^\s*\d+\s+\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)(\s+[\d.]+)+\s*$", text, re.M)
    return float(row.group(1))


def compare(a, b, command, read):
    values = {"": [], SHIM: []}
    for number in range(ROUNDS):
        # Who goes first changes, so that neither profits from the order.
        for env in ("", SHIM) if number % 2 else (SHIM, ""):
            values[env].append(read(run(a, b, command, env)))
    return median(values[SHIM]), median(values[""])


def bench(bed, record):
    a, b = bed.guests("a", "b")
    a.load_repath()
    b.load_repath()
    for program, options in BANDWIDTH:
        ours, plain = compare(a, b, f"{program} -d rxe0 -x 1 -F {options}", bandwidth)
        # As time for a byte, so that less is better everywhere.
        record(f"{program} {options}, us for a megabyte", 1e6 / ours, 1e6 / plain,
               "at most 3 % more", 1.03, rounds=ROUNDS)
    for program, options in LATENCY:
        ours, plain = compare(a, b, f"{program} -d rxe0 -x 1 -F {options}", latency)
        record(f"{program} {options}, typical us", ours, plain, "at most 3 % more", 1.03,
               rounds=ROUNDS)
