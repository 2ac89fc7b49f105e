# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A connection of which only one end is connected yet. Neither end is moved: the one that is not connected would have
another number and address than the other one was told, for good. The refusal names the queue pair and says why;
when both are connected it goes on, and each is moved."""

import time

from move import SHIM, moving, repath
from traffic import Pair, json_lines, last_json

TIMEOUT = 400
KEPT_S = 60     # EARLY_AGE of kmod/hello.c


def rounds(job):
    return (json_lines(job.output(), "rounds") or [{"rounds": 0}])[-1]["rounds"]


def refused(guest, words):
    status, _, text = repath(guest, "suspend rxe0 timeout 30")
    assert status and words in text and "try again" in text, text


def half(a, b):
    early = a.start(f"exec env {SHIM} half")
    late = b.start(f"exec env {SHIM} half {a.mgmt_ip}")
    Pair.jobs_made += [early, late]
    late.wait_for("half", 60)
    return early, late


def connect_and_move(mover, early, late, guests):
    late.kill(10)
    late.wait_for('"rounds":20', 90)
    for guest in guests:
        guest.wait_until("repath connection | grep -q 'state ready'", 30)
    for guest in guests:
        mover.swap(guest, inflight=False)
        goal = rounds(late) // 10 * 10 + 20
        late.wait_for(f'"rounds":{goal}', 90)
    late.kill(15)
    for job in (late, early):
        job.wait(60)
        assert last_json(job.output())["ok"], job.output()


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b, comm="half") as mover:
        early, late = half(a, b)
        refused(a, "is not connected to it yet, or has gone")
        refused(b, "is not connected yet, and its peer")
        connect_and_move(mover, early, late, (b, a))

        # What the first end has said is kept for a minute: later the second one asks, and nobody has to be asked to.
        early, late = half(a, b)
        time.sleep(KEPT_S + 5)
        connect_and_move(mover, early, late, (b, a))
