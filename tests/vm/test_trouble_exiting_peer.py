# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A peer's program destroys its queue pairs and exits, at each word that it says in a move, and while
the mover is away: all others go on, their data are right, and the mover gets the error that verbs
define."""

from move import moving
from trouble import Case, kernel_says

PROCESSORS = 1
PEERS = ["before msg PREPARED", "before msg GATE/READY", "before msg READY"]
# It says that word while it leaves: the connection may be up again when its queue pair goes, and the
# mover learns of it as without us.
CONNECTED = "before msg INFO"


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        leavers = [Case(a, b, i, "peer", point) for i, point in enumerate(PEERS)]
        connected = Case(a, b, 10, "peer", CONNECTED)
        parked = Case(a, b, 20, "peer", "before reply none")
        witness = Case(a, b, 30)
        for case in (*leavers, connected, parked, witness):
            case.pair.wait_running()
        for case in (*leavers, connected):
            case.arm("exit")
        parked.ending = "exit"
        op = mover.suspend(b, timeout=60)
        parked.signal(3)
        for case in (*leavers, parked):
            case.victim.wait(60, check=False)
        mover.resume(b, op, timeout=60)
        for case in (*leavers, connected, parked):
            print(f"  {case}: {case.check_dead(case is connected)}", flush=True)
        kernel_says(b, rf"operation {op['op']} on rxe0: suspended")
        kernel_says(b, rf"operation {op['op']} on rxe0: resumed")
        witness.pair.wait_progress()
        witness.pair.finish()
        for guest in (a, b):
            guest.rxe_del("rxe0")       # nobody holds it
