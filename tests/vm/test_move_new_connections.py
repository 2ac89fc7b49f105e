# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Connections made after a move by the numbers, addresses and keys that were told before it: by who
knew the moved process and by a stranger, to what it had before the move and to what it made after,
with a key that a third passes on; and refused, by name, where rxe has given the moved one's numbers
to another process."""

from dialog import Dialog
from move import LOG, moving

ENOTUNIQ = 76
REM_ACCESS_ERR = 10


def joined(one, qp, other, far, gid, other_gid):
    """Both connect, each by what it was told: @gid of @other, @other_gid of @one."""
    assert one.connect(qp, gid, far) == 0
    assert other.connect(far, other_gid, qp) == 0


def check(one, qp, other, key, text):
    assert one.write(qp, key, text) == 0
    assert other.ask("text") == [text]


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b, comm="dialog") as mover:
        mine, knew, strange = Dialog(a, "mine"), Dialog(b, "knew"), Dialog(b, "strange")
        key, doomed = mine.ask("key"), mine.ask("key")
        first, idle, spare = mine.qp(), mine.qp(), mine.qp()
        more = [mine.qp() for _ in range(3)]
        theirs = knew.qp()
        joined(knew, theirs, mine, first, mine.gid, knew.gid)
        check(knew, theirs, mine, key, "before")

        # Another process is faster on the new device: its numbers are the moved one's, by name.
        op = mover.suspend(a)
        mover.release(a)
        mover.moves += 1
        a.rxe_add("rxe0", a.plug("rdma", ip=f"10.0.0.{a.number + 10}"))
        taker = Dialog(a, "taker", env="A=1")
        taken = [taker.qp() for _ in range(3)]
        assert [qp[1] for qp in taken] == [qp[1] for qp in (first, idle, spare)], (taken, first)
        # One with a shim does not take those that would be next.
        careful = Dialog(a, "careful")
        own = careful.qp()[1]
        assert own not in [qp[1] for qp in more], (own, more)
        assert int(own, 0) > max(int(qp[1], 0) for qp in more), (own, more)
        mover.resume(a, op)
        check(knew, theirs, mine, key, "moved")
        careful.kill()
        new_gid = a.gid()
        assert new_gid != mine.gid

        # By the address alone nobody can say which of the two is meant: neither is connected.
        third = strange.qp()
        assert strange.connect(third, new_gid, spare) == ENOTUNIQ
        log = b.run(f"cat {LOG}")
        assert "two queue pairs may be meant" in log, log
        # Who knew the process means that one, by the address that it has left.
        other = knew.qp()
        joined(knew, other, mine, idle, mine.gid, knew.gid)
        check(knew, other, mine, key, "knew")
        taker.kill()
        # A stranger, by the address that it has now, with a key that somebody told it
        joined(strange, third, mine, spare, new_gid, strange.gid)
        check(strange, third, mine, key, "passed-on")
        # Made after the move
        made, ours = mine.qp(), knew.qp()
        joined(knew, ours, mine, made, mine.gid, knew.gid)
        check(knew, ours, mine, key, "made")

        # Taken back: the key is nobody's, whatever the device has under that number.
        assert mine.ask("unkey " + doomed[0]) == ["0"]
        assert knew.write(ours, doomed, "wrong") == REM_ACCESS_ERR
        assert mine.ask("text") == ["made"]

        # Both have moved: each by what it was told first.
        mover.swap(b, inflight=False)
        check(knew, theirs, mine, key, "both")
        fresh, last = mine.qp(), knew.qp()
        joined(knew, last, mine, fresh, mine.gid, knew.gid)
        check(knew, last, mine, key, "anew")
        for each in (mine, knew, strange):
            each.kill()
