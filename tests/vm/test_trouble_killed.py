# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A mover is killed, exactly before each word that it says in a move: the operation goes on for all
others, whose data are right; the other end gets the error that verbs define. The kernel's log says of each how far it
had come."""

from move import moving
from trouble import Case, kernel_says

GUESTS = 2
SUSPENDING = [("mover", "before reply check"), ("mover", "before msg PREPARE"),
              ("mover", "before msg GATE/READY"), ("mover", "before reply gate"),
              ("mover", "before msg READY"),
              ("mover", "before reply drain"), ("mover", "before reply release")]
RESUMING = [("mover", "before reply open"), ("mover", "before reply recreate"),
            ("mover", "before msg INFO"), ("mover", "before msg CONNECTED"),
            ("mover", "before reply connect"), ("mover", "before reply replay")]
# Here the other end's queue pair is not suspended yet, or not any more.
GATE_OPEN = [("mover", "before reply check"), ("mover", "before msg PREPARE"),
             ("mover", "before msg GATE/READY"),
             ("mover", "before reply connect"), ("mover", "before reply replay"),
             ("mover", "before reply abort")]

# The stage behind which a mover's module has it leave: GATE of the peer may come with its READY, the mover's CONNECTED go
# with its reply.
LEFT = {"reply check": "start", "msg PREPARE": "start", "msg GATE/READY": "check", "reply gate": "check",
        "msg READY": "check|gate", "reply drain": "gate", "reply release": "drain", "reply none": "release",
        "reply open": "release", "reply recreate": "open", "msg INFO": "recreate",
        "msg CONNECTED": "recreate|connect", "reply connect": "recreate", "reply replay": "connect",
        "msg ABORT": "check|gate", "reply abort": "check|gate"}


def is_open(case):
    return (case.who, case.point) in GATE_OPEN


def running(a, b, base, points):
    """Pairs that are to come to grief at @points, and one to which nothing happens."""
    made = [Case(a, b, base + i, *point) for i, point in enumerate(points)]
    made.append(Case(a, b, base + len(points)))
    for case in made:
        case.pair.wait_running()
        if case.who == "mover":
            case.mover_pid()
    return made[:-1], made[-1]


def armed(a, b, base, points):
    victims, witness = running(a, b, base, points)
    for case in victims:
        case.arm("kill")
    return victims, witness


def settle(victims, witness):
    for case in victims:
        print(f"  {case}: {case.check_dead(is_open(case))}", flush=True)
        if case.who == "mover":
            stage = LEFT[case.point.partition(" ")[2]]
            kernel_says(case.guest, rf"(?m)operation \d+ on rxe0: PID {case.pid} has left after stage ({stage})$")
    witness.pair.wait_progress()
    witness.pair.finish()


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        # Many in one operation: nobody's death may hinder the others.
        for base, points in ((0, SUSPENDING), (30, RESUMING)):
            victims, witness = armed(a, b, base, points)
            op = mover.resume(b, mover.suspend(b, timeout=60), timeout=60)
            settle(victims, witness)
            kernel_says(b, rf"operation {op['op']} on rxe0: suspended")
            kernel_says(b, rf"operation {op['op']} on rxe0: resumed")
