# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The whole of scripts/repath-migrate with a checked program in full traffic: the HCA is taken away
before the copy of memory (early detach) and just before the machine stops (late detach)."""

import agent
from migrate import Migration
from move import SHIM, moving, numbers
from traffic import Pair

PROCESSORS = 1
TIMEOUT = 300


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b):
        job = agent.start(b)
        pair = Pair(a, b, "-q 4 -n 8 -b -k 4", env=SHIM)
        pair.wait_running()
        exchanged = []
        for mode in ("early", "late"):
            before = numbers(b, "rcheck")
            move = Migration(b, mode)
            assert move.wait() == 0, move.text
            move.adopt()
            pair.wait_progress()
            after = numbers(b, "rcheck")
            # The address goes along by the hook: what is new is the NIC, and with it the MAC's GID, and
            # the keys, of which a device may give out the same by chance: 8 bits are random.
            exchanged.append(all(before[kind] != after[kind] for kind in ("lkey", "rkey")))
            assert before["gid"] != after["gid"], before
            stages = {stage["stage"]: stage for stage in move.report["stages"]}
            parts = stages["suspend"]["parts"]
            print(f"  {mode}: blackout {move.report['blackout_ms']} ms, suspend {parts}",
                  flush=True)
        assert any(exchanged), "the keys are the same after both moves: it proves nothing"
        assert job.running, job.output()
        pair.finish()
