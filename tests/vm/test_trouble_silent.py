# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A mover or a peer stops answering, exactly before each word that it says: the operation is taken
back or parked in time and says who is waited for; when it wakes up, all data are right. A mover and the peer
of another one stop in one operation. LONG=1: at more words."""

from move import LONG, moving
from trouble import Case, kernel_says, start, stuck_case, toggle_receives, wait_final, wait_state, wait_stuck

TIMEOUT = 600
# Of each operation: who stops where, with the stages after one of which its mover is said to hang (the peer's GATE may
# come with its READY, the mover's CONNECTED go with its reply); and what the operation is then.
CHECKING = [
    ([("mover", "before reply check", "start"), ("peer", "before msg PREPARED", "start")], "failed"),
    ([("mover", "before msg PREPARE", "start")], "failed"),
]
SUSPENDING = [
    ([("mover", "before msg GATE/READY", "check"), ("peer", "before msg GATE/READY", "check")], "parked"),
    ([("mover", "before msg READY", "check gate"), ("peer", "before msg READY", "check gate")], "parked"),
    ([("mover", "before reply drain", "gate")], "parked"),
    ([("mover", "before reply release", "drain")], "parked"),
]
# In a suspend that an administrator takes back while neither peer has said READY.
ABORTING = [
    ([("mover", "before msg ABORT", "check gate"), ("peer", "before msg ABORTED", "check gate")], "parked"),
]
RESUMING = [
    ([("mover", "before reply open", "release")], "parked"),
    ([("mover", "before reply recreate", "open")], "parked"),
    ([("mover", "before msg INFO", "recreate"), ("peer", "before msg INFO", "recreate")], "parked"),
    ([("mover", "before msg CONNECTED", "recreate connect")], "parked"),
    ([("mover", "before reply replay", "connect")], "parked"),
]
if LONG:
    SUSPENDING += [([("mover", "before reply gate", "check")], "parked")]
    ABORTING += [([("mover", "before reply abort", "check gate")], "parked")]
    RESUMING += [([("mover", "before reply connect", "recreate")], "parked")]
# Where both have work that waits for a receive.
STUCK = [("mover", "before msg DRAINED", "check gate"), ("peer", "before msg DRAINED", "check gate")]


def stopping(cases, points):
    """The cases of @points, that are to stop there."""
    for who, point, _ in points:
        cases[who].point = point
    return [cases[who] for who, _, _ in points]


def named(cases, points, text):
    for case, (_, _, stages) in zip(cases, points):
        says = [f"PID {case.mover_pid()} (rcheck) has not gone on after stage {stage}" for stage in stages.split()]
        assert any(each in text for each in says), f"{case}: not said: {says}\n{text}"


def held(guest, op, cases, points, ends, awake):
    """@op ends while they are stopped, with the name of each; and goes on with them."""
    for case in cases:
        case.wait_hit()
    state, text = wait_final(guest, op)
    print(f"  {', '.join(map(repr, cases))}: {state}", flush=True)
    assert state == ends, f"{cases}: {text}"
    named(cases, points, text)
    for case in cases:
        case.signal(18)
    wait_state(guest, op, awake)
    if awake == "failed":   # and why is still known
        named(cases, points, wait_final(guest, op)[1])
    for case in cases:
        if "DRAINED" in case.point:
            toggle_receives(case)
        case.pair.wait_progress(50)


def go(guest, cases, words, points, ends, awake):
    stopped = stopping(cases, points)
    for case in stopped:
        case.arm("stop")
    op = start(guest, f"{words} timeout 2")
    held(guest, op, stopped, points, ends, awake)


def give_up(guest, cases, points, ends):
    """The peers are held before READY, so that they have to be asked by ABORT."""
    stopped = stopping(cases, points)
    for case in stopped:
        case.arm("stop", "before msg READY", case.server_guest)
    op = start(guest, "suspend rxe0 timeout 4")
    for case in stopped:
        case.wait_hit(case.server_guest)
        case.arm("stop")
    guest.run(f"repath abort {op} nowait")
    for case in stopped:
        if "msg" in case.point and case.who == "mover":
            case.wait_hit()
        case.pair.server.kill(18)
    held(guest, op, stopped, points, ends, "failed")


def go_stuck(a, b):
    """DRAINED is said by who finds out first that both wait for receives; the other one has to be held as long."""
    cases = {who: stuck_case(a, b, 5 + i, who) for i, who in enumerate(("mover", "peer"))}
    for case in cases.values():
        case.pair.wait_running()
    stopped = stopping(cases, STUCK)
    for case in stopped:
        toggle_receives(case)
        wait_stuck(case.pair)
        case.arm("stop")
        case.arm("stop", "before msg DRAINED/READY", case.other_guest)
    op = start(b, "suspend rxe0 timeout 10")
    for case in stopped:
        case.wait_hit(case.other_guest)
        case.wait_hit()
        case.survivor.kill(18)
    held(b, op, stopped, STUCK, "parked", "failed")
    for case in stopped:
        case.pair.finish()


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        bystander = Case(a, b, 0)
        cases = {who: Case(a, b, 1 + i, who) for i, who in enumerate(("mover", "peer"))}
        for case in (bystander, *cases.values()):
            case.pair.wait_running()
        for points, ends in CHECKING + SUSPENDING:
            go(b, cases, "suspend rxe0", points, ends, "failed")
            bystander.pair.wait_progress(50)
        for points, ends in ABORTING:
            give_up(b, cases, points, ends)
            bystander.pair.wait_progress(50)
        for points, ends in RESUMING:
            op = mover.suspend(b)
            go(b, cases, f"resume {op['op']} on rxe0", points, ends, "resumed")
            bystander.pair.wait_progress(50)
        if LONG:
            go_stuck(a, b)
        kernel_says(b, r"failed: PID \d+ \(rcheck\) has not gone on after stage start")
        kernel_says(b, r"parked: aborted by the administrator; PID \d+ \(rcheck\) has not gone on after stage (check|gate)")
        kernel_says(b, r"parked: PID \d+ \(rcheck\) has not gone on after stage recreate")
        for case in (bystander, *cases.values()):
            case.pair.finish()
