# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Early against late detach (papers/001, paper V, 5.5): for how long the connections stand still
while a guest is migrated by repath-migrate over a link of 64 MB/s, and how many bytes the guest's
processes moved between the start of the migration and the suspend."""

import time

import agent
from migrate import Migration
from move import SHIM
from statistic import median, p99
from traffic import Pair

ROUNDS = 5
BANDWIDTH = 64 << 20
SAMPLER = """
cd /sys/class/net/rdma0/statistics
while :; do
    read -r up _ </proc/uptime; read -r rx <rx_bytes; read -r tx <tx_bytes
    echo "sample $up $((rx + tx))"; usleep 20000
done"""


def clock_offset(guest):
    """What to add to the guest's uptime to get this machine's time."""
    best = None
    for _ in range(10):
        before = time.time()
        uptime = float(guest.run("cat /proc/uptime").split()[0])
        after = time.time()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) / 2 - uptime)
    return best[1]


def bytes_between(sampler, offset, start, end):
    """Bytes on the wire between two times of this machine."""
    samples = [line.split() for line in sampler.output().splitlines()[:-1]]
    points = [(float(row[1]) + offset, int(row[2])) for row in samples if len(row) == 3]
    inside = [count for when, count in points if start <= when <= end]
    return inside[-1] - inside[0] if len(inside) > 1 else 0


def one_move(guest, peer, mode, pair):
    """(blackout in ms, bytes, ms of the whole move)"""
    offset = clock_offset(peer)
    sampler = peer.start(SAMPLER)
    move = Migration(guest, mode, options=("--quiet", "--max-bandwidth", str(BANDWIDTH)))
    status = move.wait()
    sampler.kill()
    assert status == 0, move.text
    move.adopt()
    report = move.report
    begin = {stage["stage"]: stage["start_ms"] for stage in report["stages"]}
    suspend = next(stage for stage in report["stages"] if stage["stage"] == "suspend")
    closed = suspend["start_ms"] + suspend["parts"].get("check", 0)
    # Late: copying begins first. Early: with the suspend, so that there is nothing in between.
    start = begin.get("copy", closed)
    flowed = bytes_between(sampler, offset, report["started"] + start / 1e3,
                           report["started"] + closed / 1e3)
    pair.wait_progress()
    return report["blackout_ms"], flowed, report["total_ms"]


def bench(bed, record):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
    agent.start(b)
    pair = Pair(a, b, "-q 4 -n 4 -b", env=SHIM)
    pair.wait_running()
    moves = {"early": [], "late": []}
    for _ in range(ROUNDS):
        for mode, done in moves.items():
            done.append(one_move(b, a, mode, pair))
    pair.finish()
    blackout = {mode: [row[0] for row in rows] for mode, rows in moves.items()}
    flowed = {mode: [row[1] for row in rows] for mode, rows in moves.items()}
    total = {mode: [row[2] for row in rows] for mode, rows in moves.items()}
    for name, of in (("median", median), ("p99", p99)):
        record(f"late detach against early, {name} blackout in ms", of(blackout["late"]),
               of(blackout["early"]), "less", 1, rounds=ROUNDS, bandwidth=BANDWIDTH)
    record("late detach against early, median ms of the whole move", median(total["late"]),
           median(total["early"]), rounds=ROUNDS, bandwidth=BANDWIDTH)
    record("late detach, median MB between the start of the migration and the suspend",
           median(flowed["late"]) / 1e6, rounds=ROUNDS, bandwidth=BANDWIDTH,
           early=median(flowed["early"]) / 1e6)
