# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How long a process is without its HCA, stage by stage, for 1, 16 and 64 queue pairs in traffic,
beside the floor: a plain program that closes and makes the same objects (floor.c), run in the same
guest in each pause, when nothing else uses the device."""

from move import SHIM, moving
from statistic import median, p99
from traffic import Pair, last_json

ROUNDS = 20
DEPTH, SIZE = 2, 256
# As rcheck makes them from depth and size, see rcheck_link.c.
SENDS, RECVS, WRITES, STATICS = DEPTH + 4, DEPTH + 8, 8, 8
REGION = (SENDS + RECVS + WRITES + STATICS) * SIZE + 64
# The check comes before: traffic flows on during it.
STAGES = ("gate", "drain", "release", "open", "recreate", "connect", "replay")


def one_round(mover, guest, qps):
    """({stage: ms}, floor's {step: ms})"""
    stopped = mover.suspend(guest)
    text = guest.run(f"floor -d rxe0 -q {qps} -S {SENDS} -R {RECVS} -s {REGION}")
    resumed = mover.resume(guest, stopped)
    stages = {**stopped["stages"], **resumed["stages"]}
    return {name: stages[name] for name in STAGES}, last_json(text)["ms"]


def bench(bed, record):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for number, qps in enumerate((1, 16, 64)):
            pair = Pair(a, b, f"-q {qps} -n {DEPTH} -s {SIZE} -b", env=SHIM, port=18600 + number)
            pair.wait_running()
            rounds = [one_round(mover, b, qps) for _ in range(ROUNDS)]
            pair.wait_progress()
            pair.finish()
            ours = [sum(stages.values()) for stages, _ in rounds]
            floor = [steps["total"] for _, steps in rounds]
            record(f"blackout of {qps} QPs, median ms", median(ours), median(floor),
                   "at most twice the floor", 2, qps=qps, rounds=ROUNDS,
                   stages={name: median([s[name] for s, _ in rounds]) for name in STAGES},
                   floor={name: median([f[name] for _, f in rounds]) for name in rounds[0][1]})
            record(f"blackout of {qps} QPs, p99 ms", p99(ours), p99(floor), qps=qps,
                   rounds=ROUNDS)
        mover.suspended = mover.resumed = []
