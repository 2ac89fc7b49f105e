# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Early against late detach (papers/001, paper V, 5.5): for how long the connections stand still
while a guest is migrated by repath-migrate over a link of 64 MB/s, and how many bytes the guest's
processes moved between the start of the migration and the suspend. Then the same guest with the same
traffic is migrated with nothing detached, which soft RoCE survives: QEMU's own downtime. At last the
cycle that one would write by hand for one program (floor.c), with the same objects: close, unplug,
migrate, plug, open."""

import time

import agent
from migrate import Migration
from move import SHIM
from statistic import median, p99
from traffic import Pair, json_lines

QPS, DEPTH, SIZE = 4, 4, 1024
# As rcheck makes them, see rcheck_link.c.
SENDS, RECVS = DEPTH + 4, DEPTH + 8
REGION = (SENDS + RECVS + 16) * SIZE + 64
ROUNDS = 5
TRIES, NOT_MOVED = 3, 1
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
    """(blackout in ms, bytes, ms of the whole move, {stage: ms})"""
    offset = clock_offset(peer)
    sampler = peer.start(SAMPLER)
    for left in reversed(range(TRIES)):
        move = Migration(guest, mode, options=("--quiet", "--max-bandwidth", str(BANDWIDTH)))
        status = move.wait()
        # Of a guest that wrote too little just then the copy is complete before it is suspended.
        if status != NOT_MOVED or not left:
            break
        move.forget()
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
    stages = {stage["stage"]: stage["ms"] for stage in report["stages"]
              if stage["start_ms"] >= suspend["start_ms"]}
    return report["blackout_ms"], flowed, report["total_ms"], stages


def plain(guest, pair):
    """QEMU's figures of the same migration with nothing detached and nothing suspended."""
    figures = guest.migrate(bandwidth=BANDWIDTH)
    pair.wait_progress()
    return figures


def by_hand(guest, peer, number):
    """ms from the word to stop until the traffic is posted again, and what the program's own steps
    took of them."""
    server = peer.start("exec floor -d rxe0")
    peer.wait_until("netstat -ltn | grep -q ':18700'")
    guest.run("rm -f /tmp/go; mkfifo /tmp/go")
    job = guest.start(f"exec floor -w -d rxe0 -q {QPS} -S {SENDS} -R {RECVS} -n {DEPTH} "
                      f"-s {REGION} {peer.mgmt_ip} <> /tmp/go")
    job.wait_for("ready")
    start = time.monotonic()
    guest.run("echo > /tmp/go")
    job.wait_for("closed")
    guest.rxe_del()
    guest.unplug(guest.nics[0])
    guest.migrate(bandwidth=BANDWIDTH)
    guest.rxe_add(nic=guest.plug(ip=f"10.0.0.{guest.number + 10 * number}"))
    guest.run("echo > /tmp/go")
    job.wait_for(r'"ms".*\n')
    took = (time.monotonic() - start) * 1e3
    job.wait()
    server.wait()
    return took, json_lines(job.output(), "ms")[-1]["ms"]["total"]


def bench(bed, record):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
    agent.start(b)
    pair = Pair(a, b, f"-q {QPS} -n {DEPTH} -s {SIZE} -b", env=SHIM)
    pair.wait_running()
    moves = {"early": [], "late": []}
    for _ in range(ROUNDS):
        for mode, done in moves.items():
            done.append(one_move(b, a, mode, pair))
    plains = [plain(b, pair) for _ in range(ROUNDS)]
    pair.finish()
    blackout = {mode: [row[0] for row in rows] for mode, rows in moves.items()}
    flowed = {mode: [row[1] for row in rows] for mode, rows in moves.items()}
    total = {mode: [row[2] for row in rows] for mode, rows in moves.items()}
    downtime = [row["downtime_ms"] for row in plains]
    for name, of in (("median", median), ("p99", p99)):
        record(f"late detach against early, {name} blackout in ms", of(blackout["late"]),
               of(blackout["early"]), "less", 1, rounds=ROUNDS, bandwidth=BANDWIDTH)
        record(f"late detach, blackout against the VM downtime of a plain migration, {name} ms",
               of(blackout["late"]), of(downtime), "below twice", 2, rounds=ROUNDS,
               bandwidth=BANDWIDTH)
    # From the suspend on.
    stages = {mode: {name: median(row[3][name] for row in rows) for name in rows[0][3]}
              for mode, rows in moves.items()}
    print(stages, flush=True)
    record("late detach against early, median ms of the whole move", median(total["late"]),
           median(total["early"]), rounds=ROUNDS, bandwidth=BANDWIDTH, stages=stages)
    record("late detach, whole move against a plain migration, median ms", median(total["late"]),
           median(row["total_ms"] for row in plains), rounds=ROUNDS, bandwidth=BANDWIDTH)
    record("late detach, median MB between the start of the migration and the suspend",
           median(flowed["late"]) / 1e6, rounds=ROUNDS, bandwidth=BANDWIDTH,
           early=median(flowed["early"]) / 1e6)
    cycles = [by_hand(b, a, number) for number in range(1, ROUNDS + 1)]
    for name, of in (("median", median), ("p99", p99)):
        record(f"early detach, whole move against the cycle by hand, {name} ms", of(total["early"]),
               of([took for took, _ in cycles]), rounds=ROUNDS, bandwidth=BANDWIDTH,
               program=of([steps for _, steps in cycles]))
        record(f"early detach, blackout against the cycle by hand, {name} ms", of(blackout["early"]),
               of([took for took, _ in cycles]), rounds=ROUNDS, bandwidth=BANDWIDTH)
