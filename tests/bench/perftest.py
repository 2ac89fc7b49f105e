# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's perftest with and without the shim, in turn: bandwidth and latency. First with both ends in
one guest whose clock counts instructions, so that what it reports is what all of it takes: programs,
kernel and soft RoCE, at both ends. No noise of the machine is in that. Then between two guests in
time; PERFTEST_ROUNDS says how often."""

import os
import re

import bed as beds
from move import SHIM
from statistic import ENOUGH, median, median_between

BED = False
COUNTED_ROUNDS = 6
ROUNDS = int(os.environ.get("PERFTEST_ROUNDS", "20"))
TRIES = 3
SHORT = 1024    # bytes
BANDWIDTH = [("ib_write_bw", "-s 65536 -n 300"), ("ib_send_bw", "-s 65536 -n 300"),
             ("ib_write_bw", "-s 64 -n 3000")]
# Both ends share a processor: one that waits without sleeping would do so through all of its time slice.
COUNTED = [("ib_write_bw", "-s 65536 -n 300"), ("ib_send_bw", "-s 65536 -n 300 -e"),
           ("ib_write_bw", "-s 64 -n 3000"), ("ib_send_bw", "-s 64 -n 3000 -e"),
           ("ib_send_lat", "-s 8 -n 1000 -e")]
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
    """On average MB/s, or of short messages, where it has more digits, millions of them a second."""
    size, mb, messages = re.search(r"^\s*(\d+)\s+\d+\s+[\d.]+\s+([\d.]+)\s+([\d.]+)\s*$", text,
                                   re.M).groups()
    return float(messages if int(size) < SHORT else mb)


def latency(text):
    """The typical one, us."""
    row = re.search(r"^\s*\d+\s+\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)(\s+[\d.]+)+\s*$", text, re.M)
    return float(row.group(1))


def compare(a, b, command, read, rounds):
    """[(with the shim, without)], each from runs one after the other."""
    pairs = []
    for number in range(rounds):
        values = {}
        # Who goes first changes, so that neither profits from the order.
        for env in ("", SHIM) if number % 2 else (SHIM, ""):
            values[env] = read(run(a, b, command, env))
        pairs.append((values[SHIM], values[""]))
    return pairs


def time_of_byte(text):
    """As time, so that less is better everywhere."""
    return 1e6 / bandwidth(text)


def measure(a, b, record, cases, rounds, how):
    for program, options in cases:
        command = f"{program} -d rxe0 -x 1 -F {options}"
        lat = "_lat" in program
        pairs = compare(a, b, command, latency if lat else time_of_byte, rounds)
        ratios = [ours / plain for ours, plain in pairs]
        low, high = median_between(ratios)
        what = "typical us" if lat else "us for a megabyte or a million messages"
        record(f"{program} {options}, {how}, {what}", median(ours for ours, _ in pairs),
               median(plain for _, plain in pairs), "at most 2 % more", 1 / 0.98, rounds=rounds,
               median_ratio=median(ratios), between=[low, high])
        print(f"  median of the ratios of neighbours {median(ratios):.4f}, between {low:.4f} and "
              f"{high:.4f}" + (" (95 %)" if rounds >= ENOUGH else ""), flush=True)


def bench(record):
    with beds.Bed() as bed:
        bed.icount = True
        a = bed.guest("a")
        a.load_repath()
        measure(a, a, record, COUNTED, COUNTED_ROUNDS, "counted")
    if ROUNDS:
        with beds.Bed() as bed:
            a, b = bed.guests("a", "b")
            a.load_repath()
            b.load_repath()
            measure(a, b, record, BANDWIDTH + LATENCY, ROUNDS, "timed")
