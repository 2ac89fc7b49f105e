# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How long a process is without its HCA, stage by stage, for 1 to 4096 queue pairs in traffic and
up to 1 GB of registered memory, beside the floor: the cycle that one would write by hand for one
program (floor.c), between the same guests, with the same objects, depths and bytes, in each
pause."""

import os

from move import LIBRARY, moving
from statistic import median, p99
from traffic import Pair, json_lines

DEPTH, SIZE = 2, 256
# As rcheck makes them from depth and size, see rcheck_link.c.
SENDS, RECVS, WRITES, STATICS = DEPTH + 4, DEPTH + 8, 8, 8
REGION = (SENDS + RECVS + WRITES + STATICS) * SIZE + 64
# Not READs and atomics: rxe of Linux 6.1 completes one without its data when the response was lost,
# and with more under way than the bed's network holds some are (tests/vm/test_rcheck_traffic.py).
MIX = "send,send_imm,write,write_imm"
# The check comes before: traffic flows on during it.
STAGES = ("gate", "drain", "release", "open", "recreate", "connect", "replay")
# Queue pairs, MB registered beside theirs, rounds.
CASES = ((1, 0, 20), (16, 0, 20), (64, 0, 20), (1, 1, 20), (1, 64, 20), (1, 1024, 20), (512, 0, 20),
         (4096, 0, 5))
# With more in full traffic soft RoCE breaks down by itself (docs/measurements.md): these have RATE
# messages a second at each end, all together, and none under way by hand.
BUSY, RATE = 1024, 200
MEMORY = 3072
# A completion queue of soft RoCE holds 32767; a few are for the shim's own.
ENTRIES = 32000
SHIM = f"LD_PRELOAD={LIBRARY}"     # and no log


def chosen():
    """All cases, or those that the environment names: "64:0:5 1:1024:5"."""
    text = os.environ.get("BLACKOUT_CASES")
    return [tuple(map(int, case.split(":"))) for case in text.split()] if text else CASES


def completion_queues(qps):
    return -(-qps * (SENDS + RECVS) // ENTRIES)


def floor(mover, peer, qps, ballast):
    """{step: ms} of a cycle by hand."""
    server = peer.start("exec floor -d rxe0")
    peer.wait_until("netstat -ltn | grep -q ':18700'")
    depth = DEPTH if qps <= BUSY else 0
    text = mover.run(f"floor -d rxe0 -q {qps} -c {completion_queues(qps)} -S {SENDS} "
                     f"-R {RECVS} -n {depth} -s {REGION} -M {ballast << 20} {peer.mgmt_ip}",
                     timeout=200)
    server.wait(120)
    return json_lines(text, "ms")[-1]["ms"]


def one_round(mover, guest, peer, qps, ballast):
    stopped = mover.suspend(guest, timeout=60)
    by_hand = floor(guest, peer, qps, ballast)
    resumed = mover.resume(guest, stopped, timeout=60)
    stages = {**stopped["stages"], **resumed["stages"]}
    return {name: stages[name] for name in STAGES}, by_hand


def bench(bed, record):
    a, b = bed.guests("a", "b", memory=MEMORY)
    env = os.environ.get("BLACKOUT_ENV", SHIM)
    with moving(a, b) as mover:
        for number, (qps, ballast, count) in enumerate(chosen()):
            rate = f"-r {RATE}" if qps > BUSY else ""
            pair = Pair(a, b, f"-q {qps} -n {DEPTH} -s {SIZE} -b -m {MIX} --ballast {ballast} {rate}",
                        each_options=f"-i 0.5 --cqs {completion_queues(qps)}", env=env,
                        port=18600 + number)
            pair.wait_running(300)
            rounds = []
            for _ in range(count):
                rounds.append(one_round(mover, b, a, qps, ballast))
                pair.wait_progress(4 * min(qps, BUSY), 120)
            pair.finish()
            ours = [sum(stages.values()) for stages, _ in rounds]
            by_hand = [steps["total"] for _, steps in rounds]
            what = f"blackout of {qps} QPs" + (f" and {ballast} MB" if ballast else "")
            record(f"{what}, median ms", median(ours), median(by_hand),
                   "at most 1.25 times the floor", 1.25, qps=qps, mb=ballast, rounds=count,
                   stages={name: median([s[name] for s, _ in rounds]) for name in STAGES},
                   floor={name: median([f[name] for _, f in rounds]) for name in rounds[0][1]})
            record(f"{what}, p99 ms", p99(ours), p99(by_hand), qps=qps, mb=ballast, rounds=count)
            print({name: round(median([s[name] for s, _ in rounds]), 1) for name in STAGES},
                  {name: round(median([f[name] for _, f in rounds]), 1) for name in rounds[0][1]},
                  flush=True)
        mover.suspended = mover.resumed = []
