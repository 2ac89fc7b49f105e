# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A mover or a peer is killed, exactly before each word that it says in a move: the operation goes on
for all others, whose data are right; the other end gets the error that verbs define."""

from move import moving
from trouble import Case, kernel_says, start, wait_final

TIMEOUT = 600
PENDING = "it has not run to its end"
SUSPENDING = [("mover", "before reply check"), ("mover", "before msg PREPARE"),
              ("mover", "before msg GATE"), ("mover", "before reply gate"),
              ("mover", "before msg READY"),
              ("mover", "before reply drain"), ("mover", "before reply release")]
PEERS = [("peer", "before msg PREPARED"), ("peer", "before msg GATE"),
         ("peer", "before msg READY"), ("peer", "before msg INFO")]
RESUMING = [("mover", "before reply open"), ("mover", "before reply recreate"),
            ("mover", "before msg INFO"), ("mover", "before msg CONNECTED"),
            ("mover", "before reply connect"), ("mover", "before reply replay")]
ABORTING = [("mover", "before msg ABORT"), ("mover", "before reply abort"),
            ("peer", "before msg ABORTED")]
# Here the other end's queue pair is not suspended yet, or not any more.
GATE_OPEN = [("mover", "before reply check"), ("mover", "before msg PREPARE"),
             ("mover", "before msg GATE"),
             ("mover", "before reply connect"), ("mover", "before reply replay"),
             ("mover", "before reply abort")]


def is_open(case):
    return (case.who, case.point) in GATE_OPEN


def cases(a, b, base, points):
    made = [Case(a, b, base + i, *point, stall=10 if point in GATE_OPEN else 60)
            for i, point in enumerate(points)]
    made.append(Case(a, b, base + len(points)))
    for case in made:
        case.pair.wait_running()
    for case in made[:-1]:
        case.arm("kill")
    return made[:-1], made[-1]


def settle(victims, witness):
    for case in victims:
        print(f"  {case}: {case.check_dead(is_open(case))}", flush=True)
    witness.pair.wait_progress()
    witness.pair.finish()


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        # Many in one operation: nobody's death may hinder the others.
        base = 0
        for points in (SUSPENDING, RESUMING, PEERS):
            victims, witness = cases(a, b, base, points)
            parked = []
            if points is PEERS:     # two more die while everything is suspended
                parked = [Case(a, b, base + 20 + i, who, "before reply none")
                          for i, who in enumerate(("mover", "peer"))]
            for case in parked:
                case.pair.wait_running()
            op = mover.suspend(b, timeout=60)
            for case in parked:
                case.signal(9)
                case.victim.wait(check=False)
            mover.resume(b, op, timeout=60)
            settle(victims + parked, witness)
            base += 30
        kernel_says(b, r"PID \d+ has left after stage recreate")
        kernel_says(b, r"operation \d+ on rxe0: resumed")

        # Going back: a process that stops half-way keeps it from being done before the abort.
        victims, witness = cases(a, b, base, ABORTING)
        holder = Case(a, b, base + 20, "peer", "before msg READY")
        holder.pair.wait_running()
        holder.arm("stop")
        op = start(b, "suspend rxe0 timeout 60")
        holder.wait_hit()
        b.run(f"repath abort {op} nowait")
        for case in victims:
            case.wait_hit()
        holder.signal(18)
        state, text = wait_final(b, op)
        assert state == "failed", text
        holder.pair.wait_progress()
        holder.pair.finish()
        settle(victims, witness)
        kernel_says(b, r"failed: aborted by the administrator")
        for guest in (a, b):
            guest.rxe_del("rxe0")       # nobody holds it
