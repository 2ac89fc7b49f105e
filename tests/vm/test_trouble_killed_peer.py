# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A peer is killed, exactly before each word that it says in a move, and either end while everything is
suspended, or when a move is given up, or both wait for receives, where some exit, too: all others go on, and their
data are right."""

from move import moving
from test_trouble_killed import armed, running, settle
from trouble import Case, kernel_says, start, stuck_case, toggle_receives, wait_final, wait_stuck

GUESTS = 2
PEERS = [("peer", "before msg PREPARED"), ("peer", "before msg GATE/READY"),
         ("peer", "before msg READY"), ("peer", "before msg INFO")]
ABORTING = [("mover", "before msg ABORT"), ("mover", "before reply abort"),
            ("peer", "before msg ABORTED"), ("peer", "before msg ABORTED")]
EXITS = len(ABORTING) - 1       # this one destroys what it has


def killed_in_a_move(mover, a, b):
    victims, witness = armed(a, b, 0, PEERS)
    parked = [Case(a, b, 20 + i, who, "before reply none")
              for i, who in enumerate(("mover", "peer"))]
    for case in parked:
        case.pair.wait_running()
        case.mover_pid()
    op = mover.suspend(b, timeout=60)
    for case in parked:
        case.signal(9)
        case.victim.wait(check=False)
    mover.resume(b, op, timeout=60)
    settle(victims + parked, witness)
    kernel_says(b, rf"operation {op['op']} on rxe0: suspended")
    kernel_says(b, rf"operation {op['op']} on rxe0: resumed")


def killed_going_back(a, b):
    """Nobody's peer has said READY when the move is given up: all have to ask for that."""
    victims, witness = running(a, b, 30, ABORTING)
    everybody = [*victims, witness]
    for case in everybody:
        case.arm("stop", "before msg READY", a)
        if case.who == "mover":
            case.arm("kill")
    op = start(b, "suspend rxe0 timeout 60")
    for i, case in enumerate(everybody):
        case.wait_hit(a)
        if case.who == "peer":
            case.arm("exit" if i == EXITS else "kill")
    b.run(f"repath abort {op} nowait")
    victims[0].wait_hit()
    for case in everybody:
        case.pair.server.kill(18)
    for case in victims:
        case.wait_hit()
    state, text = wait_final(b, op)
    assert state == "failed", text
    settle(victims, witness)
    kernel_says(b, rf"operation {op} on rxe0: failed: aborted by the administrator")


def killed_stuck(mover, a, b):
    """Before DRAINED, which is said where both wait for a receive, by who finds out first: if that is the other one it
    is held. A peer exits, too; a mover can not before it is resumed."""
    victims = [stuck_case(a, b, 40 + i, who) for i, who in enumerate(("mover", "peer", "peer"))]
    for case in victims:
        case.pair.wait_running()
        case.mover_pid()
    for case in victims:
        toggle_receives(case)
        wait_stuck(case.pair)
    for i, case in enumerate(victims):
        case.arm("kill" if i < 2 else "exit")
        case.arm("stop", "before msg DRAINED/READY", case.other_guest)
    op = start(b, "suspend rxe0 timeout 60")
    for case in victims:
        case.wait_hit()
        case.victim.wait(60, check=False)
        case.other_guest.run(f"rm -f {case.trap}")  # who is killed may have been the first
        case.survivor.kill(18)
    state, text = wait_final(b, op)
    assert state == "suspended", text
    mover.resume(b, {"op": op})
    for case in victims:
        print(f"  {case}, {case.ending}: {case.check_dead()}", flush=True)


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        killed_in_a_move(mover, a, b)
        killed_going_back(a, b)
        killed_stuck(mover, a, b)
        for guest in (a, b):
            guest.rxe_del("rxe0")       # nobody holds it
