# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A mover or a peer stops answering, exactly before each word that it says: the operation is taken
back or parked in time and says who is waited for; when it wakes up, all data are right."""

from move import moving
from trouble import Case, kernel_says, start, wait_final

TIMEOUT = 600
# who, where; what `repath` says; what the operation is then, and when the process is awake again.
SUSPENDING = [
    ("peer", "before msg PREPARED", "has not gone on after stage start", "failed", "failed"),
    ("peer", "before msg GATE/READY", "has not gone on after stage", None, "failed"),
    ("peer", "before msg READY", "has not gone on after stage", None, "failed"),
    ("mover", "before reply check", "has not gone on after stage start", "failed", "failed"),
    ("mover", "before msg GATE/READY", "has not gone on after stage", "parked", "failed"),
    ("mover", "before msg READY", "has not gone on after stage", "parked", "failed"),
    ("mover", "before reply release", "has not gone on after stage", "parked", "failed"),
]
RESUMING = [
    ("peer", "before msg INFO", "has not gone on after stage", "parked", "resumed"),
    ("mover", "before reply open", "has not gone on after stage", "parked", "resumed"),
    ("mover", "before msg INFO", "has not gone on after stage", "parked", "resumed"),
    ("mover", "before reply replay", "has not gone on after stage", "parked", "resumed"),
]


def wait_state(guest, op, wanted):
    guest.wait_until(f"repath -j status {op} | grep -q '\"state\":\"{wanted}\"'")


def go(guest, case, words, says, held, awake):
    case.arm("stop")
    op = start(guest, f"{words} timeout 2")
    case.wait_hit()
    state, text = wait_final(guest, op)
    print(f"  {case}: {state}", flush=True)
    assert says in text, f"{case}: not said: {says!r}\n{text}"
    assert state == held or (held is None and state in ("failed", "parked")), f"{case}: {text}"
    case.signal(18)
    wait_state(guest, op, awake)
    case.pair.wait_progress(50)
    return op


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        bystander = Case(a, b, 0)
        cases = {who: Case(a, b, 1 + i, who) for i, who in enumerate(("mover", "peer"))}
        for case in (bystander, *cases.values()):
            case.pair.wait_running()
        for who, point, *rest in SUSPENDING:
            cases[who].point = point
            go(b, cases[who], "suspend rxe0", *rest)
            bystander.pair.wait_progress(50)
        for who, point, *rest in RESUMING:
            cases[who].point = point
            op = mover.suspend(b)
            go(b, cases[who], f"resume {op['op']} on rxe0", *rest)
            bystander.pair.wait_progress(50)
        kernel_says(b, r"parked: PID \d+ \(rcheck\) has not gone on after stage recreate")
        kernel_says(b, r"failed: PID \d+ \(rcheck\) has not gone on after stage start")
        for case in (bystander, *cases.values()):
            case.pair.finish()
