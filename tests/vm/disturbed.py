# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A man in the middle loses, doubles, delays, reorders, alters, forges and cuts each message of the
modules, one kind at a time, at each stage at which it is sent: every move succeeds, and all data are
right. What comes of each is a column in docs/message-faults.md, which the tests write.

    def test(bed):
        disturb(bed, "guests-lost", ["lost", "answer lost"])

LONG=1: at all stages, those of disturbed_stages.py too, which have a table of their own, two minutes a fault. FAULTS=lost,doubled:
by these only.
"""

import collections
import os
import re
import time

import disturbed_stages
import faults_doc
from bed import Skip
from cells import MOVING, Cells, give_up, push_key
from datagrams import Words
from faults import FAULTS
from move import LONG, SHIM, moving
from relay import Relay
from test_move_one_of_two import wait_more as wait_rails
from traffic import Pair, json_lines
from trouble import OPTIONS, STUCK_DEPTH, Case, start, wait_final, wait_stuck

STAGES = (
    ("HELLO", "a pair connects"),
    *((kind, "move") for kind in (*MOVING, "DRAINED")),
    ("ABORT", "given up while queues empty"), ("ABORTED", "given up while queues empty"),
    ("KEYS", "memory registered after a move"), ("KEYS_ACK", "memory registered after a move"),
    ("GONE", "killed suspended"),
    ("RESOLVE", "connecting to one that has moved"), ("RESOLVE", "the first datagram"),
    ("MOVED", "move"))


def connect_and_die(cells, name, number):
    """HELLO and GONE: a new pair connects; its mover dies suspended."""
    case = Case(cells.a, cells.b, number, "mover", "before reply none")

    def connect(_cells):
        case.pair.wait_running()
        ready = f"repath connection pid {case.mover_pid()} | grep -q 'state ready'"
        if name == "other version":     # an answer for good, until somebody asks again
            cells.b.wait_until(f"repath suspend rxe0 dry-run >/dev/null; {ready}")
            return "connected when a move asks again"
        cells.b.wait_until(ready)
        return "connected"

    def die(_cells):
        op = cells.suspend()
        case.signal(9)
        case.victim.wait(30, check=False)
        cells.mover.resume(cells.b, op)
        error = case.check_dead()
        return "error " + ("as the API says" if error else "missing")
    cells.run("HELLO", "a pair connects", name, connect)
    cells.run("GONE", "killed suspended", name, die)


def replay_old(cells, frames):
    """What was said in a move before is said again, as new messages, at every stage of another."""
    stages = collections.Counter()

    def inject(stage):
        for mad in frames:
            cells.relay.inject(mad.copy(msg_id=cells.relay.fresh(), cm=cells.relay.fresh()))
            stages[stage] += 1
    inject("running")
    cells.pair.wait_progress(20)
    op = start(cells.b, "suspend rxe0 timeout 30")
    inject("suspending")
    state, text = wait_final(cells.b, op)
    assert state == "suspended", text
    inject("suspended")
    cells.a.run("sleep 0.3")
    start(cells.b, f"resume {op} on rxe0 timeout 30")
    inject("resuming")
    cells.b.wait_until(f"repath -j status {op} | grep -q '\"state\":\"resumed\"'")
    inject("resumed")
    cells.pair.wait_progress(20)
    cells.words.reach_all()
    return stages


def toggle_receives(cells):
    for job in cells.stuck.jobs:
        job.kill(10)


def disturb_drained(cells, names):
    """DRAINED is said where both have work that waits for a receive."""
    toggle_receives(cells)
    wait_stuck(cells.stuck)
    for name in names:
        cells.run("DRAINED", "move", name, Cells.move)
        if LONG:
            disturbed_stages.disturb_drained(cells, name)
    toggle_receives(cells)
    cells.stuck.wait_progress(20)
    cells.stuck.finish()


def recorded_move(cells):
    """What is said in a move that nobody disturbs."""
    frames = []

    def record(_relay, mad):
        if not mad.answer and mad.offset == 0:
            frames.append(mad)
        return True
    cells.relay.rule = record
    cells.words.reach(cells.words.given)
    cells.move()
    cells.words.reach_all()
    cells.relay.rule = None
    wanted = {*MOVING, "RESOLVE", "MOVED"}
    assert {mad.type for mad in frames} >= wanted, {mad.type for mad in frames}
    return frames


def move_and_reach(cells):
    """Who sends datagrams is told."""
    cells.move()
    cells.words.reach_all()
    return "told"


def disturb_one(cells, name, number):
    """Each kind, by one fault."""
    for kind in MOVING:
        if kind == "GATE":
            cells.pair.wait_progress(20)    # nobody says it whose queue is empty
        cells.run(kind, "move", name, Cells.move)
    for kind in ("ABORT", "ABORTED"):
        cells.run(kind, "given up while queues empty", name, give_up)
    for kind in ("KEYS", "KEYS_ACK"):
        cells.run(kind, "memory registered after a move", name, push_key)
    cells.run("RESOLVE", "connecting to one that has moved", name,
              lambda cells: cells.words.connect())
    cells.run("RESOLVE", "the first datagram", name, lambda cells: cells.words.first())
    cells.run("MOVED", "move", name, move_and_reach)
    cells.pair.wait_progress(20)
    connect_and_die(cells, name, 100 + number)
    if LONG:
        disturbed_stages.disturb_one(cells, name, number)


def disturb(bed, section, columns, replay=False):
    """Each kind of message is disturbed by each fault of @columns; @replay: and then all that was said
    in a move is said again in another."""
    names = os.environ.get("FAULTS", ",".join(columns)).split(",")
    names = [name for name in columns if name in names]
    if not names:
        raise Skip("none of FAULTS")
    a, b = bed.guests("a", "b")
    relay = Relay(bed.networks)
    try:
        with moving(a, b) as mover:
            cells = Cells(a, b, relay, mover)
            cells.pair = Pair(a, b, OPTIONS, "-i 0.2 --tail", env=SHIM)
            cells.stuck = Pair(a, b, f"-q 1 -n {STUCK_DEPTH} -s 256 -b -r 300 -m send,send_imm",
                               "-i 0.2 --no-recv-ms 600000 --overrun", env=SHIM, port=18601)
            cells.rails = [a.start(f"exec env {SHIM} rails -d rxe0 -w 20"),
                           b.start(f"exec env {SHIM} rails -d rxe0 -w 20 {a.mgmt_ip}")]
            cells.holder = Case(a, b, 90, "peer", "before msg READY")
            cells.words = Words(a, b, len(names) * (disturbed_stages.WORDS if LONG else 1))
            for each in (cells.pair, cells.stuck, cells.holder.pair):
                each.wait_running()
            wait_rails(cells.rails, (0,), 10)
            old = recorded_move(cells)

            disturb_drained(cells, names)
            for number, name in enumerate(names):
                disturb_one(cells, name, number)
            if replay:
                print(f"  replayed: {dict(replay_old(cells, old))} frames", flush=True)

            cells.words.end()
            cells.pair.finish()
            cells.holder.pair.finish()
            cells.rails[1].kill(15)
            for job in cells.rails:
                job.wait(60)
            if "forged" in names:
                dropped = re.findall(r'"rx-bad-token":(\d+)', a.run("repath -j stats"))
                assert sum(map(int, dropped)) > 0, "no forged message was counted"
            if LONG:
                faults_doc.check("guests-stages", list(FAULTS), cells.found(disturbed_stages.STAGES))
            faults_doc.check(section, columns, cells.found(STAGES))
    finally:
        relay.close()
