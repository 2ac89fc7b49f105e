# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The cells of the matrix in docs/message-faults.md: a message, a stage at which it is said, a fault."""

import time

from faults import FAULTS
from move import repath
from traffic import json_lines
from trouble import start, wait_final

BOTH_SAY = {("READY", "move"), ("INFO", "move")}
MOVING = ("PREPARE", "PREPARED", "GATE", "READY", "INFO", "CONNECTED")


class Cells:
    """Runs them, and notes what came of each: {(message, stage, fault): verdict}."""

    def __init__(self, a, b, relay, mover):
        self.a, self.b, self.relay, self.mover = a, b, relay, mover
        self.dropped = None     # (message, guest): what that one says is lost besides
        self.fault = None       # what is done to messages now
        self.verdicts = {}
        # Who has a part in the moves; see disturbed.py.
        self.pair = self.stuck = self.rails = self.holder = self.words = None

    def _drop(self, mad):
        return (self.dropped and not mad.answer and mad.type == self.dropped[0]
                and mad.source == self.dropped[1].nics[0].ip)

    def run(self, kind, stage, name, action):
        """@action(cells) with the first frames of @kind disturbed: what it returns came of it."""
        fault = self.fault = FAULTS[name](kind)
        self.relay.rule = lambda relay, mad: not self._drop(mad) and fault(relay, mad)
        try:
            verdict = action(self)
        finally:
            self.relay.rule = None
            self.dropped = None
        assert fault.hits, f"{kind}, {stage}, {name}: no such message was seen"
        self.verdicts[kind, stage, name] = verdict
        assert (kind, stage) not in BOTH_SAY or len(fault.hits) == 2, f"{kind}, {stage}, {name}: only from {fault.hits}"
        print(f"  {kind}, {stage}, {name}: {verdict}; {len(fault.hits)} said it", flush=True)

    def wait_seen(self, timeout=30):
        """Until the kind of message that is disturbed has been said."""
        end = time.monotonic() + timeout
        while not self.fault.hits and time.monotonic() < end:
            time.sleep(0.1)

    def lose(self, kind, guest, action):
        """@action() while nothing of @kind gets away from @guest."""
        self.dropped = kind, guest
        self.relay.rule = lambda _relay, mad: not self._drop(mad)
        try:
            action()
        finally:
            self.relay.rule = self.dropped = None

    def ask(self, guest, words):
        """A suspend, to its end: what repath says. It may be refused once, by name, and nothing was touched."""
        for first in (True, False):
            status, op, text = repath(guest, f"suspend rxe0 timeout 30 {words}")
            if status == 0:
                return op
            assert first and "its peer" in op["reason"], text
            print(f"  refused at first: {op['reason']}", flush=True)
        return None

    def suspend(self, guest=None):
        return self.ask(guest or self.b, "")

    def move(self, guest=None):
        guest = guest or self.b
        self.mover.resume(guest, self.suspend(guest))
        return "moved"

    def found(self, stages):
        """{(message, stage): {fault: verdict}}: all of @stages have been played."""
        rows = {row: {} for row in stages}
        for (kind, stage, name), verdict in self.verdicts.items():
            if (kind, stage) in rows:
                rows[kind, stage][name] = verdict
        assert all(rows.values()), rows
        return rows


def give_up(cells, point="before msg READY", seen=False):
    """A suspend that waits for a peer which stopped answering is taken back; @seen: when what is disturbed has
    been said."""
    cells.holder.arm("stop", point)
    op = start(cells.b, "suspend rxe0 timeout 30")
    cells.holder.wait_hit()
    if seen:
        cells.wait_seen()
    cells.b.run(f"repath abort {op} nowait")
    cells.holder.signal(18)
    state, text = wait_final(cells.b, op)
    assert state == "failed", text
    return "taken back"


def push_key(cells, who=1):
    """Memory that is registered after a move: the peer hears of its key before it is used."""
    job = cells.rails[who]
    before = len(json_lines(job.output(), "registered"))
    job.kill(10)
    job.wait_for(rf'(?s)("registered".*){{{before + 1}}}', 60)
    return "key known"
