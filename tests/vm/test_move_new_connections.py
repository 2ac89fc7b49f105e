# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Connections made after a move, and datagrams, by the numbers, addresses and keys that were told before it: by
who knew the moved process and by a stranger, to what it had before the move and to what it made after,
with a key that a third passes on; and refused, by name, where another process on the device that it is on now, or on
the one that has its old address, has been given its numbers.

On InfiniBand all of that by GID, and by LID alone."""

import ipaddress
import time

from dialog import Dialog
from move import LOG, moving

ENOTUNIQ, EADDRINUSE, EADDRNOTAVAIL = 76, 98, 99
REM_ACCESS_ERR = 10
TELL = 30           # seconds: a datagram may be lost, a sender must hear where they go


def by_gid(address):
    return address


def by_lid(address):
    return address[address.index("@"):]


def take(process, *numbers):
    """Make queue pairs until these numbers are among theirs: {number: queue pair}."""
    taken = {}
    while not set(numbers) <= set(taken):
        qp = process.qp()
        taken[qp[1]] = qp
        assert len(taken) < 50, (taken, numbers)
    return taken


class Way:
    """A form of addresses, and who uses it towards the process that moves: one that knows it, and a stranger."""

    def __init__(self, mine, key, guest, form):
        self.mine, self.key, self.form = mine, key, form
        self.knew, self.strange = (Dialog(guest, f"{name}-{form.__name__}") for name in ("knew", "strange"))
        self.first, self.idle, self.spare, self.late = (mine.qp() for _ in range(4))
        self.theirs = self.knew.qp()
        self.sender = self.knew.ask("ud")
        self.join(self.knew, self.theirs, self.first, "before")

    def connect(self, one, qp, far, at=None):
        return one.connect(qp, self.form(at or self.mine.address), far)

    def join(self, one, qp, far, text, at=None):
        """Both connect, each by what it was told: @one of the address before the move, or of @at."""
        assert self.connect(one, qp, far, at) == 0
        assert self.mine.connect(far, self.form(one.address), qp) == 0
        self.check(one, qp, text)

    def check(self, one, qp, text):
        assert one.write(qp, self.key, text) == 0
        assert self.mine.ask("text") == [text]

    def tell(self, letters, text):
        """A datagram to the address of before the move arrives."""
        text = f"{text}-{self.form.__name__}"
        end = time.monotonic() + TELL
        heard = []
        while heard != [text]:
            assert time.monotonic() < end, f"{text} does not arrive"
            to = f"{self.form(self.mine.address)} {letters[1]}"
            assert self.knew.ask(f"tell {self.sender[0]} {to} {text}") == ["0"]
            heard = self.mine.ask(f"heard {letters[0]}")

    def kill(self):
        self.knew.kill()
        self.strange.kill()


def refused(way, one, qp, far, err, reason, at=None):
    assert way.connect(one, qp, far, at) == err
    log = one.guest.run(f"grep 'QP {int(qp[1]):#x}: not connected to QP {int(far[1]):#x}:' {LOG} | tail -n 1")
    assert reason in log, log


def address_now(guest):
    gid = guest.gid(index=0 if guest.bed.infiniband else 1)
    lid = guest.run("cat /sys/class/infiniband/rxe0/ports/1/lid")
    return gid + (f"@{int(lid, 0)}" if guest.bed.infiniband else "")


def is_elsewhere(address, other):
    gids = {ipaddress.ip_address(each.split("@")[0]) for each in (address, other)}
    lids = {each.split("@")[1] for each in (address, other) if "@" in each}
    return len(gids) == 2 and len(lids) != 1


def same_number(ways, guest, now):
    """A stranger whose queue pair has the number of the one that is connected, on another host, is not that one."""
    twin = Dialog(guest, "twin")
    twins = take(twin, *(way.theirs[1] for way in ways))
    for way in ways:
        refused(way, twin, twins[way.theirs[1]], way.first, EADDRINUSE, "it is connected to somebody else", now)
        way.check(way.knew, way.theirs, "not-the-twin")
    twin.kill()


def another_there(ways, guest, letters, made):
    """The address of before the move is another host's now, with the same numbers."""
    guest.rxe_del("rxe0")
    guest.unplug(guest.nics[0])
    guest.rxe_add("rxe0", guest.plug("rdma", ip="10.0.0.1"), again=True)
    squatter = Dialog(guest, "squatter")
    assert squatter.address == ways[0].mine.address, (squatter.address, ways[0].mine.address)
    taken = take(squatter, *(way.late[1] for way in ways))
    assert made[1] not in taken, (made, taken)
    ears = squatter.ask("ud")
    while int(ears[1]) < int(letters[1]):
        ears = squatter.ask("ud")
    assert ears[1] == letters[1], (ears, letters)
    for way in ways:
        # Its numbers are two's, by name.
        qp, other = way.knew.qp(), way.strange.qp()
        refused(way, way.knew, qp, way.late, ENOTUNIQ, "two queue pairs may be meant")
        # Nobody there has told this one.
        refused(way, way.strange, other, made, EADDRNOTAVAIL, "no such queue pair is there")
        way.tell(letters, "not-to-the-other")
    assert squatter.ask(f"heard {ears[0]}") == squatter.ask("text") == []
    squatter.kill()
    for way in ways:
        way.join(way.knew, way.knew.qp(), way.late, "squatter-gone")
    # Known by its GID, and asked for by its LID, and the other way round.
    for way, form in zip(ways, (by_lid, by_gid)):
        way.form, own = form, way.form
        way.join(way.knew, way.knew.qp(), way.mine.qp(), "otherwise")
        way.form = own


def test(bed):
    a, b, *others = guests = bed.guests("a", "b", *("c",) * bed.infiniband)
    with moving(*guests, comm="dialog") as mover:
        mine = Dialog(a, "mine")
        key, doomed = mine.ask("key"), mine.ask("key")
        ways = [Way(mine, key, b, form) for form in ((by_gid, by_lid) if bed.infiniband else (by_gid,))]
        letters = mine.ask("ud")
        more = [mine.qp() for _ in range(3)]
        for way in ways:
            way.tell(letters, "before")

        # Another process is faster on the new device: its numbers are the moved one's, by name.
        op = mover.suspend(a)
        mover.release(a)
        mover.moves += 1
        a.rxe_add("rxe0", a.plug("rdma", ip=f"10.0.0.{a.number + 10}"), again=True)
        taker = Dialog(a, "taker", env="A=1")
        take(taker, *(qp[1] for way in ways for qp in (way.first, way.idle, way.spare)))
        # One with a shim does not take those that would be next.
        careful = Dialog(a, "careful")
        own = careful.qp()[1]
        assert own not in [qp[1] for qp in more], (own, more)
        assert int(own) > max(int(qp[1]) for qp in more), (own, more)
        mover.resume(a, op)
        for way in ways:
            way.check(way.knew, way.theirs, "moved")
            way.tell(letters, "moved")
        careful.kill()
        now = address_now(a)
        assert is_elsewhere(now, mine.address), now

        for way in ways:
            # By the address alone nobody can say which of the two is meant: neither is connected.
            way.third = way.strange.qp()
            refused(way, way.strange, way.third, way.spare, ENOTUNIQ, "two queue pairs may be meant", now)
            # Who knew the process means that one, by the address that it has left.
            way.join(way.knew, way.knew.qp(), way.idle, "knew")
        taker.kill()
        for way in ways:
            # A stranger, by the address that it has now, with a key that somebody told it
            way.join(way.strange, way.third, way.spare, "passed-on", now)
            # Made after the move
            made, way.ours = mine.qp(), way.knew.qp()
            way.join(way.knew, way.ours, made, "made")

        # Taken back: the key is nobody's, whatever the device has under that number.
        assert mine.ask("unkey " + doomed[0]) == ["0"]
        for way in ways:
            assert way.knew.write(way.ours, doomed, "wrong") == REM_ACCESS_ERR
        assert mine.ask("text") == ["made"]

        for guest in others:
            same_number(ways, guest, now)
            another_there(ways, guest, letters, mine.qp())

        # Both have moved: each by what it was told first.
        mover.swap(b, inflight=False)
        for way in ways:
            way.check(way.knew, way.theirs, "both")
            way.join(way.knew, way.knew.qp(), mine.qp(), "anew")
            way.tell(letters, "both")
            way.kill()
        mine.kill()
