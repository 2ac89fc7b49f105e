# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a move and an adoption leave in the kernel's trace: each event, with fields that are true."""

import re

import tracking
from move import SHIM, moving
from traffic import Pair

TRACE = "/sys/kernel/tracing"
EVENT = re.compile(r": (qp|op|op_stage|peer_tx|peer_rx|adopt): (.*)")


def traced(guest):
    """Those of this guest, as {name: [text]}."""
    found = {}
    for name, text in EVENT.findall(guest.run(f"cat {TRACE}/trace")):
        found.setdefault(name, []).append(text)
    return found


def numbers(lines):
    return [[int(number) for number in re.findall(r"-?\b\d+\b", line)] for line in lines]


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for guest in (a, b):
            guest.run(f"mountpoint -q {TRACE} || mount -t tracefs none {TRACE};"
                      f"echo 1 > {TRACE}/events/repath/enable; echo 1 > {TRACE}/tracing_on")
        pair = Pair(a, b, "-q 2 -n 8", "-i 0.5 --numbers", env=SHIM, port=18640)
        pair.wait_running()
        pid = int(b.run("pidof rcheck"))
        qpns = {qp["qpn"] for qp in tracking.repath(b, "qp") if qp.get("pid") == pid}
        mover.swap(b)
        pair.wait_progress(50)
        pair.finish()
        b.run("repath adopt")
        here, there = traced(b), traced(a)

    states = [re.fullmatch(r"op (\d+) dev (\S+) state (\d+) -> (\d+) err (\d+)", line).groups()
              for line in here["op"]]
    assert len({op for op, *_ in states}) == 1, states
    steps = [(int(was), int(state)) for _, _, was, state, _ in states]
    assert steps == [(0, 0), (0, 1), (1, 2), (2, 3), (3, 4)], states
    assert all(dev.startswith("rxe") and err == "0" for _, dev, _, _, err in states), states

    stages = [re.fullmatch(r"op (\d+) pid (\d+) stage (\d+) err (\d+)", line).groups()
              for line in here["op_stage"]]
    assert {(op, int(owner), err) for op, owner, _, err in stages} == {(states[0][0], pid, "0")}
    order = [int(stage) for _, _, stage, _ in stages]
    assert order == sorted(order) and set(order) == set(range(1, 9)), order

    # What one says has been sent of a move (PREPARE to CONNECTED), and taken, the other one has got.
    for sender, receiver in ((here, there), (there, here)):
        sent = {(kind, size) for _, kind, size, err, status in numbers(sender["peer_tx"])
                if not err and not status and 2 <= kind <= 8}
        got = {(kind, size) for _, kind, size, _ in numbers(receiver["peer_rx"])}
        assert sent and sent <= got, (sent, got)

    seen = {int(qpn): line for line in here["qp"] for qpn in re.findall(r"qpn (\d+) ", line)}
    assert qpns and qpns <= set(seen), (qpns, seen)
    assert any(line.endswith("del") for line in here["qp"]), here["qp"]
    assert not any("incomplete" in line for line in here["adopt"]), here["adopt"]
