# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A man in the middle loses, doubles, delays, reorders, alters, forges and cuts each message of the
modules, one kind at a time, at the stage of a move at which it is sent: every move succeeds, and all
data are right. What comes of each is a column in docs/message-faults.md, which the tests write.

    def test(bed):
        disturb(bed, "guests-lost", ["lost", "answer lost"])
"""

import collections
import re
import time

import faults_doc
from move import SHIM, moving, repath
from relay import STRANGER, Relay
from test_move_one_of_two import wait_more as wait_rails
from traffic import Pair, json_lines
from trouble import OPTIONS, Case, start, wait_final

MOVING = ("PREPARE", "PREPARED", "GATE", "READY", "INFO", "CONNECTED")
KINDS = ("HELLO", *MOVING, "DRAINED", "ABORT", "ABORTED", "KEYS", "KEYS_ACK", "GONE")
TIMES = 2           # how many frames of a kind are disturbed
REC_AT = 48         # of the first record in a message: its tokens
STUCK_DEPTH = 8


class Fault:
    """Disturbs the first frames of one kind of message; hits: how many."""

    def __init__(self, kind):
        self.kind = kind
        self.hits = collections.Counter()
        self.kept = []

    def __call__(self, relay, mad):
        if mad.type != self.kind or self.hits[mad.answer] >= TIMES:
            return True
        if mad.answer != self.answers:
            return True
        self.hits[mad.answer] += 1
        return self.disturb(relay, mad)

    answers = False

    def disturb(self, relay, mad):
        raise NotImplementedError


class Lost(Fault):
    """It does not arrive; the CM repeats it."""

    def disturb(self, relay, mad):
        return False


class AnswerLost(Fault):
    """It arrives, but its answer does not."""
    answers = True

    def disturb(self, relay, mad):
        return False


class Doubled(Fault):
    """It arrives twice, and once more as another message."""

    def disturb(self, relay, mad):
        relay.send(mad)
        relay.send(mad.copy(msg_id=relay.fresh(), cm=relay.fresh()), 0.05)
        return True


class Delayed(Fault):
    """It arrives when the CM has repeated it already."""

    def disturb(self, relay, mad):
        relay.send(mad, 0.4)
        return False


class Reordered(Fault):
    """It comes again as another message, after those that follow it."""

    def disturb(self, relay, mad):
        relay.send(mad.copy(msg_id=relay.fresh(), cm=relay.fresh()), 0.3)
        return True


class Altered(Fault):
    """Its tokens are damaged on the way; HELLO's of one of two connections, as each end says it."""

    def __init__(self, kind):
        super().__init__(kind)
        self.connection = None

    def __call__(self, relay, mad):
        if mad.type == self.kind == "HELLO" and not mad.answer:
            ends = {mad.data[16:20], mad.data[20:24]}
            self.connection = self.connection or ends
            if ends != self.connection:
                return True
        return super().__call__(relay, mad)

    def disturb(self, relay, mad):
        at = 24 if mad.type == "HELLO" else REC_AT
        relay.send(mad.copy(flip=range(at, at + 4)))
        return False


class Forged(Fault):
    """A stranger has seen it, and says it from another address, with other tokens, before it."""

    def disturb(self, relay, mad):
        at = 24 if mad.type == "HELLO" else REC_AT
        for flip in ((), range(at, at + 16)):
            relay.send(mad.copy(msg_id=relay.fresh(), cm=relay.fresh(), source=STRANGER, flip=flip))
        relay.send(mad, 0.02)
        return False


class Truncated(Fault):
    """It says to be shorter than it is, in the middle of a record; then it comes as it was."""

    def disturb(self, relay, mad):
        for total in (mad.total - 8, 20, 1):
            relay.send(mad.copy(msg_id=relay.fresh(), cm=relay.fresh(), total=max(1, total)))
        return True


class OtherVersion(Fault):
    """It is of another version of the protocol."""

    def disturb(self, relay, mad):
        relay.send(mad.copy(version=7))
        return False


FAULTS = collections.OrderedDict([
    ("lost", Lost), ("answer lost", AnswerLost), ("doubled", Doubled), ("delayed", Delayed),
    ("reordered", Reordered), ("altered", Altered), ("forged", Forged), ("truncated", Truncated),
    ("other version", OtherVersion)])


class Cells:
    """Runs them, and notes what came of each: {(message, fault): verdict}."""

    def __init__(self, a, b, relay, mover, pair):
        self.a, self.b, self.relay, self.mover, self.pair = a, b, relay, mover, pair
        self.verdicts = {}

    def run(self, kind, name, action):
        fault = FAULTS[name](kind)
        self.relay.rule = fault
        try:
            verdict = action()
        finally:
            self.relay.rule = None
        assert fault.hits, f"{kind} {name}: no such message was seen"
        self.verdicts[kind, name] = verdict
        print(f"  {kind} {name}: {verdict}", flush=True)

    def suspend(self):
        status, op, text = repath(self.b, "suspend rxe0 timeout 30")
        if status == 0:
            return op
        # By name, and nothing was touched: asked again it goes.
        assert "its peer" in op["reason"], text
        print(f"  refused at first: {op['reason']}", flush=True)
        return self.mover.suspend(self.b)

    def move(self):
        self.mover.resume(self.b, self.suspend())
        return "moved"


def abort(cells, holder):
    """A suspend that waits for a peer which stopped answering is taken back."""
    holder.arm("stop")
    op = start(cells.b, "suspend rxe0 timeout 30")
    holder.wait_hit()
    cells.b.run(f"repath abort {op} nowait")
    holder.signal(18)
    state, text = wait_final(cells.b, op)
    assert state == "failed", text
    return "taken back"


def push_key(cells, rails):
    """Memory that is registered after a move: the peer hears of its key before it is used."""
    before = len(json_lines(rails[1].output(), "registered"))
    rails[1].kill(10)
    rails[1].wait_for(rf'(?s)("registered".*){{{before + 1}}}', 60)
    return "key known"


def connect_and_die(cells, name, number):
    """HELLO and GONE: a new pair connects; its mover dies suspended."""
    case = Case(cells.a, cells.b, number, "mover", "before reply none")

    def connect():
        case.pair.wait_running()
        # Its process, among those of the same name.
        pid = cells.b.run(f"""for p in $(pidof rcheck); do
            tr '\\0' ' ' < /proc/$p/cmdline | grep -q -e '-p {case.pair.port} ' && echo $p
            done; true""").strip()
        ready = f"repath connection pid {pid} | grep -q 'state ready'"
        if name == "other version":     # an answer for good, until somebody asks again
            cells.b.wait_until(f"repath suspend rxe0 dry-run >/dev/null; {ready}")
            return "connected when a move asks again"
        cells.b.wait_until(ready)
        return "connected"

    def die():
        op = cells.suspend()
        case.signal(9)
        case.victim.wait(30, check=False)
        cells.mover.resume(cells.b, op)
        error = case.check_dead()
        return "error " + ("as the API says" if error else "missing")
    cells.run("HELLO", name, connect)
    cells.run("GONE", name, die)


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
    return stages


def is_stuck(job):
    """It has had no receive left for some time, and nobody has any for what it has posted."""
    lines = json_lines(job.output(), "waiting")[-3:]
    return len(lines) == 3 and all(not line["recvs"] and line["waiting"] >= STUCK_DEPTH
                                   for line in lines)


def wait_stuck(pair, timeout=60):
    end = time.monotonic() + timeout
    while not all(is_stuck(job) for job in pair.jobs):
        for job in pair.jobs:
            assert job.running, f"not stuck:\n{job.output()[-1500:]}"
            if time.monotonic() > end:
                raise TimeoutError(f"not stuck:\n{job.output()[-1500:]}")
        time.sleep(0.1)


def check_drained(cells, stuck, names):
    """DRAINED is said where both have work that waits for a receive."""
    for job in stuck.jobs:
        job.kill(10)
    wait_stuck(stuck)
    for name in names:
        cells.run("DRAINED", name, cells.move)
    for job in stuck.jobs:
        job.kill(10)
    stuck.wait_progress(20)
    stuck.finish()


def recorded_move(cells):
    """What is said in a move that nobody disturbs."""
    frames = []

    def record(_relay, mad):
        if not mad.answer and mad.offset == 0:
            frames.append(mad)
        return True
    cells.relay.rule = record
    cells.mover.resume(cells.b, cells.mover.suspend(cells.b))
    cells.relay.rule = None
    assert {mad.type for mad in frames} >= set(MOVING), {mad.type for mad in frames}
    return frames


def disturb(bed, section, names, replay=False):
    """Each kind of message is disturbed by each fault of @names; @replay: and then all that was said
    in a move is said again in another."""
    a, b = bed.guests("a", "b")
    relay = Relay(bed.networks)
    try:
        with moving(a, b) as mover:
            pair = Pair(a, b, OPTIONS, "-i 0.2 --tail", env=SHIM)
            stuck = Pair(a, b, f"-q 1 -n {STUCK_DEPTH} -s 256 -b -r 300 -m send,send_imm",
                         "-i 0.2 --no-recv-ms 600000 --overrun", env=SHIM, port=18601)
            rails = [a.start(f"exec env {SHIM} rails -d rxe0"),
                     b.start(f"exec env {SHIM} rails -d rxe0 {a.mgmt_ip}")]
            holder = Case(a, b, 90, "peer", "before msg READY")
            for each in (pair, stuck, holder.pair):
                each.wait_running()
            wait_rails(rails, (0,), 10)
            cells = Cells(a, b, relay, mover, pair)
            old = recorded_move(cells)

            check_drained(cells, stuck, names)
            for name in names:
                for kind in MOVING:
                    cells.run(kind, name, cells.move)
                for kind in ("ABORT", "ABORTED"):
                    cells.run(kind, name, lambda: abort(cells, holder))
                for kind in ("KEYS", "KEYS_ACK"):
                    cells.run(kind, name, lambda: push_key(cells, rails))
                pair.wait_progress(20)
            for number, name in enumerate(names):
                connect_and_die(cells, name, 100 + number)
            if replay:
                print(f"  replayed: {dict(replay_old(cells, old))} frames", flush=True)

            pair.finish()
            holder.pair.finish()
            rails[1].kill(15)
            for job in rails:
                job.wait(60)
            if "forged" in names:
                dropped = re.findall(r'"rx-bad-token":(\d+)', a.run("repath -j stats"))
                assert sum(map(int, dropped)) > 0, "no forged message was counted"
            faults_doc.check(section, [
                ["message", *names],
                *([kind, *(cells.verdicts[kind, name] for name in names)] for kind in KINDS)])
    finally:
        relay.close()
