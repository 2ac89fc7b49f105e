#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The cable to real HCAs, with two HCAs of a few lines: attach, refuse, SMPs, packets, credits.

There is no subnet manager: the first HCA sets the switch's ports and tables by directed routes,
as one would. Then packets go from one to the other, at the pace of the wall clock, as long as there
are credits; cables go wrong, both ways; one is pulled and put back, one plugged in elsewhere;
and an HCA that is silent is taken for gone.
"""

import os
import re
import socket
import struct
import sys
import tempfile
import time

from bed import Fabric, Failed, expect
from hca import (ACTIVE, BLOCK, BYE, DATA, DOWN, FLOW, INIT, LIMIT, REFUSED, WELCOME, Hca, activate, icrc,
                 lrh)

POLLING, DISABLED = 2, 3
BACKLOG = 1024                      # EXT_BACKLOG_MAX


def attach_two(fabric):
    a, b = Hca(fabric, "H1", 0xa), Hca(fabric, "H2", 0xb)
    expect(a.attach()[0] == WELCOME, "H1 is free")
    kind, why = Hca(fabric, "H1", 0xc).attach()
    expect(kind == REFUSED and b"another HCA" in why, "H1 is taken", why)
    kind, why = Hca(fabric, "H9", 0xd).attach()
    expect(kind == REFUSED and b"no such host" in why, "no H9", why)
    b.version = 1
    kind, why = b.attach()
    expect(kind == REFUSED and b"version 1 of the wire, this vfabric has 2" in why, "too old", why)
    b.version = 2
    expect(b.attach()[0] == WELCOME, "H2 is free")
    return a, b


def exchange(a, b):
    """Until b has got what a could send with the room it has; no more than it was told."""
    for hca in (a, b):
        hca.tell(FLOW)
    payload = os.urandom(1000)
    got = sent = 0
    while got < 500:
        while a.credits() >= 16 and sent < 500:
            a.send(2, 3, payload)
            sent += 1
        while True:
            message = b.hear(0.02)
            if not message:
                break
            if message[0] == DATA:
                got += 1
                expect(message[1][20:-4] == payload, "payload")
                expect(icrc(message[1]) == message[1][-4:], "ICRC")
        b.room[0] = LIMIT
        b.tell(FLOW)
        a.tell(FLOW)
        while a.hear(0.02):
            pass
    expect(got == sent == 500, "all arrive", got, sent)


def back_pressure(a, b):
    """b gives no room: nothing comes, a's credits end, nothing is lost."""
    b.room[0] = 500 * 16                         # all that has come so far, and no more
    b.tell(FLOW)
    time.sleep(0.1)
    sent = 0
    while True:
        a.tell(FLOW)
        b.tell(FLOW)                             # who is silent is gone
        while a.hear(0.05):
            pass
        if a.credits() < 16:
            break
        a.send(2, 3, os.urandom(1000))
        sent += 1
        expect(sent < 200, "credits end")
    expect(b.hear(0.2) in (None, (FLOW, b"")), "nothing comes without room")
    a.room[0] = 0                                # b's packet stays in the switch: its room is taken
    a.tell(FLOW)
    room = b.credits() - 16
    b.room[0] = LIMIT
    b.send(3, 2, os.urandom(1000))
    got = 0
    while True:
        message = b.hear(0.5)
        if not message:
            break
        got += message[0] == DATA
        expect(b.credits() <= room, "no more room than there is:", b.credits(), room)
        a.tell(FLOW)
        b.tell(FLOW)
    a.room[0] = LIMIT
    expect(sent > 10 and got == sent, "held back, not lost:", sent, got)


def overruns(a, port=3):
    """ExcessiveBufferOverrunErrors of a port of the switch."""
    mad = struct.pack(">BBBB12xHHI40xBB", 1, 4, 1, 1, 0x12, 0, 0, 0, port)
    return a.gmp(2, 1, mad)[64 + 19] & 15


def without_credits(a, b):
    """What is sent beyond the credits is dropped, counted, and brings none."""
    def news(*hcas):
        for hca in hcas:
            hca.tell(FLOW)
        for hca in hcas:
            while hca.hear(0.05):
                pass

    def has(credits, *what):
        """When the switch has told what it takes this for, and ever after."""
        until = time.monotonic() + 1.2           # with two keep-alives
        while time.monotonic() < until:
            news(a, b)
        expect(a.credits() == credits, *what, a.credits(), credits)

    news(a, b)
    whole, before = a.credits(), overruns(a)
    b.room[0] = b.came[0]                        # nothing
    news(a, b)
    sent = 0
    while a.credits() >= 16:
        a.send(2, 3, struct.pack(">I", sent) + bytes(996))
        sent += 1
        news(a, b)
    left = a.credits()
    for lie in range(5):
        counted = a.sent[0]
        a.send(2, 3, b"lie!" + bytes(996), honest=False)
        if lie % 2:                              # and it does not say so
            a.sent[0] = counted
        has(left, "no credits for it:")
    # What has not been sent at all was lost: that gives no more than there is, either.
    a.sent[0] += 1000
    has(left, "nor for nothing:")
    b.room[0] = LIMIT
    came = []
    b.tell(FLOW)
    while True:
        message = b.hear(0.5)
        if not message:
            break
        if message[0] == DATA:
            came.append(message[1][20:24])
        for hca in (a, b):
            hca.tell(FLOW)
    expect(came == [struct.pack(">I", n) for n in range(sent)], "what was sent with credits:", sent, came)
    expect(overruns(a) == before + 5, "the others are counted:", overruns(a), before)
    has(whole, "all room is free again:")


def arrivals(a, b, count, wanted=None):
    """What comes of so many packets that a sends: [(number, whether it is whole, seconds under way)].
    As many as are wanted, by default all, are waited for."""
    came, sent = [], 0
    wanted = count if wanted is None else wanted
    last = start = time.monotonic()
    for hca in (a, b):
        hca.tell(FLOW)
    while sent < count or time.monotonic() < last + (0.5 if len(came) >= wanted else 5):
        expect(time.monotonic() < start + 60, "there is room to send:", sent, "of", count)
        while sent < count and a.credits() >= 16:
            a.send(2, 3, struct.pack(">Id", sent, time.monotonic()) + bytes(988))
            sent += 1
            last = time.monotonic()
        message = b.hear(0.02)
        if message and message[0] == DATA:
            last = time.monotonic()
            number, since = struct.unpack_from(">Id", message[1], 20)
            came.append((number, icrc(message[1]) == message[1][-4:], last - since))
        for hca in (a, b):
            hca.tell(FLOW)
        while a.hear(0.001):
            pass
    return came


def answers(a, b, count):
    """How many come to so many SMPs of a's."""
    came = 0
    b.tell(FLOW)
    for _ in range(count):
        a.tell(DATA, a.smp_packet(1, 0x11), 15)
    while True:
        message = a.hear(0.5)
        if not message:
            return came
        came += message[0] == DATA
        for hca in (a, b):
            hca.tell(FLOW)


def table(fabric, what, first):
    """The line of a table of results that begins so."""
    names, *lines = (line.split(",") for line in fabric.command(f"Results {what}").splitlines())
    return next({name: int(n) for name, n in zip(names[1:], line[1:])}
                for line in lines if line[0] == first)


def late_mads(fabric):
    """MADs that were late on the model's own cables."""
    return int(re.search(r"^late (\d+)", fabric.command("Smps"), re.M)[1])


def bad_cables(fabric, a, b):
    """Faults of the cable of a HCA: of what it sends by the name of its host, of what it gets by that of
    the switch's port."""
    def lost():
        return table(fabric, "drops", "lost_on_wire")["packets"]

    # With little room, which what is lost does not take.
    b.room[0] = b.came[0] + 64
    whole = list(range(40))
    ends = ("H1[1]", '"H1"[1]'), ("S1[4]", '"S1"[4]')
    for port, name in ends:
        before = lost()
        fabric.command(f"Fault {name} loss=1")
        expect(arrivals(a, b, 40, 0) == [], "nothing comes by", port)
        expect(lost() == before + 40 == before + table(fabric, "faults", port)["lost"], "all is lost",
               before, lost())
        fabric.command(f"Fault {name} loss=0")
    b.room[0] = LIMIT
    expect([n for n, good, _ in arrivals(a, b, 40) if good] == whole, "both are well")
    for port, name in ends:
        fabric.command(f"Fault {name} duplicate=1")
        came = arrivals(a, b, 40, 80)            # as many as there was room for
        twice = table(fabric, "faults", port)["doubled"]
        expect(sorted(set(n for n, _, _ in came)) == whole and len(came) == 40 + twice and twice > 0,
               "twice by", port, len(came), twice)
        fabric.command(f"Fault {name} duplicate=0 delay=2e8")
        came = arrivals(a, b, 40)
        expect([n for n, _, _ in came] == whole and min(t for _, _, t in came) > 0.19, "late by", port,
               came)
        expect(table(fabric, "faults", port)["delayed"] == 40, "counted")
        fabric.command(f"Fault {name} delay=0 reorder=0.3 window=5e7")
        came = arrivals(a, b, 40)
        order = [n for n, _, _ in came]
        counted = table(fabric, "faults", port)
        # How long others wait behind one that is late: by number, as they are sent at once.
        most = max(sum(m > n for m in order[:i]) for i, n in enumerate(order))
        expect(sorted(order) == whole != order, "in another order by", port, order)
        expect(counted["late"] and counted["overtook"] and 0 < counted["most"] <= most, "counted",
               counted, most)
        fabric.command(f"Fault {name} reorder=0 corrupt=1")
        broken = table(fabric, "drops", "corrupt")["packets"]
        came = arrivals(a, b, 40, 40 if port == "S1[4]" else 0)
        # The switch drops what is broken; an HCA has to see for itself.
        expect(len(came) == (40 if port == "S1[4]" else 0) and not any(good for _, good, _ in came),
               "broken by", port, came)
        expect(table(fabric, "drops", "corrupt")["packets"] == broken + 40, "counted")
        fabric.command(f"Fault {name} corrupt=0")
    for port, name in (("H1[1]", '"H1"[1]'), ("S1[3]", '"S1"[3]')):
        for fault, wanted in (("loss", 0), ("corrupt", 0 if port == "H1[1]" else 10), ("duplicate", 20)):
            fabric.command(f"Fault {name} {fault}=1")
            expect(answers(a, b, 10) == wanted, fault, "of SMPs by", port)
            fabric.command(f"Fault {name} {fault}=0")
    for port, name in (("H1[1]", '"H1"[1]'), ("S1[3]", '"S1"[3]')):
        # A MAD is late once, by the cable of the HCA that has the fault, not by the model as well.
        before = late_mads(fabric)
        fabric.command(f"Fault {name} reorder=1 window=5e6")
        expect(answers(a, b, 10) == 10 and late_mads(fabric) == before, "late twice by", port)
        fabric.command(f"Fault {name} reorder=0")
    for word in ("slow", "drain"):
        try:
            fabric.command(f'Fault "H1"[1] {word}=200')
        except Exception as error:
            expect("a real HCA is in the place" in str(error), word, error)
        else:
            expect(False, word, "of a real HCA is refused")
    expect(answers(a, b, 10) == 10, "all is well again")
    came = [n for n, good, _ in arrivals(a, b, 300) if good]
    expect(came == list(range(300)), "and no room is lost", came)


def unread(fabric, *others):
    """Who asks and does not read: what waits for it is bounded, what is too much is counted, all shown."""
    hca = Hca(fabric, "H3", 0xe, connected=False)
    expect(hca.attach()[0] == WELCOME, "H3 is free")

    def line():
        found = re.search(rf"HCA {hca.guid:x} port 1 .*: (\d+) wait, most (\d+), (\d+) lost",
                          fabric.command("Attached"))
        return tuple(map(int, found.groups()))

    def lost():
        return int(re.search(r"^unread_by_hca,(\d+)", fabric.command("Results drops"), re.M)[1])

    while hca.hear(0.1):
        pass
    before, lost_before = line(), lost()
    expect(before[0] == 0 and before[2] == lost_before, "nothing waits:", before, lost_before)
    mad = bytearray(256)
    struct.pack_into(">BBBBHBBQHHI", mad, 0, 1, 0x81, 1, 1, 0, 1, 1, 99, 0x11, 0, 0)
    struct.pack_into(">HH", mad, 32, 0xffff, 0xffff)
    mad[129] = 1
    packet = (lrh(15, 0, 0xffff, 0xffff, 288) + bytes([0x64]) + bytes(19) + bytes(mad) + bytes(4))
    for i in range(BACKLOG + 500):
        hca.tell(DATA, packet, 15)
        if i % 100 == 0:
            for other in others:
                other.tell(FLOW)
    hca.tell(FLOW)
    waiting = line()
    expect(waiting[:2] == (BACKLOG, BACKLOG) and waiting[2] > before[2], "bounded:", waiting)
    expect(lost() - lost_before == waiting[2] - before[2], "in the table of drops:", lost(), waiting)
    answers, told = 0, 0
    while True:
        message = hca.hear(0.5)
        if not message:
            break
        answers += message[0] == DATA
        if time.monotonic() > told + 0.5:        # this takes longer than who is alive may be silent
            for one in (hca, *others):
                one.tell(FLOW)
            told = time.monotonic()
    expect(answers + waiting[2] - before[2] == BACKLOG + 500, "the others come:", answers, waiting)
    expect(line() == (0, *waiting[1:]), "and nothing waits:", line())
    hca.tell(BYE)
    for other in others:
        other.tell(FLOW)
        while other.hear(0.1):
            pass


def missing(fabric, a):
    """Datagrams of an HCA that do not come are counted, and nothing else is."""
    def counted():
        return table(fabric, "drops", "datagrams_from_hca")["packets"]

    expect(counted() == 0 == a.missed, "all have come so far", counted(), a.missed)
    a.sequence += 3
    a.smp(1, 0x11)
    expect(counted() == 3, "three are missing", counted())
    a.sequence -= 5
    a.tell(FLOW)                                 # an old one
    a.sequence += 4
    a.smp(1, 0x11)
    expect(counted() == 3, "none is missing", counted())


def hot_plug(fabric, a, b):
    b.tell(BYE)
    time.sleep(0.2)
    status, info = a.smp(1, 0x15, 4)
    expect(status == 0 and info[32] & 15 == 1, "the port is down after BYE", info[32])
    status, info = a.smp(1, 0x12)
    expect(info[11] & 4, "PortStateChange")
    b = Hca(fabric, "H2", 0xb, session=2)
    expect(b.attach()[0] == WELCOME, "back again")
    expect(a.smp(1, 0x15, 4)[1][32] & 15 == INIT, "the port trains again")
    for _ in range(9):                           # a keeps alive, b is silent
        a.tell(FLOW)
        time.sleep(0.4)
    while a.hear(0.01):
        pass
    expect(a.smp(1, 0x15, 4)[1][32] & 15 == 1, "silence is down")


def watchdog(fabric, a):
    """An HCA that falls silent: trap 131 to who the switch has for its SM, until that represses it."""
    c = Hca(fabric, "H4", 0xf)
    expect(c.attach()[0] == WELCOME, "H4 is free")
    info = bytearray(a.smp(1, 0x15, 0)[1])
    struct.pack_into(">HH", info, 16, 1, 2)      # LID 1, and the SM is a, LID 2
    info[32:34] = bytes((info[32] & 0xf0, info[33] & 15))
    expect(a.smp(2, 0x15, 0, info)[0] == 0, "a is the SM")

    def traps(seconds):
        """[(TID, number, Notice)] that come in that time; a stays alive."""
        found, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            a.tell(FLOW)
            message = a.hear(0.1)
            if message and message[0] == DATA and message[1][28 + 1:28 + 4] == b"\x01\x01\x05":
                mad = message[1][28:28 + 256]
                found.append((mad[8:16], struct.unpack_from(">H", mad, 64 + 4)[0], mad[64:128]))
        return found

    heard, mine, until = [], [], time.monotonic() + 30
    while len(mine) < 3:
        expect(time.monotonic() < until, "131, again and again:", heard)
        heard += traps(0.5)
        mine = [tid for tid, n, notice in heard
                if n == 131 and struct.unpack_from(">HB", notice, 12) == (1, 6)]
    expect(len(set(mine)) == 1, "the same each time:", mine)
    for tid in {tid for tid, _, _ in heard}:
        mad = bytearray(256)
        mad[:4] = bytes((1, 1, 1, 7))            # TrapRepress
        mad[8:16], mad[16:18] = tid, b"\0\2"
        a.tell(DATA, lrh(15, 0, 1, 2, 288) + bytes([0x64]) + bytes(19) + bytes(mad) + bytes(4), 15)
    traps(0.5)                                   # what was under way
    expect(traps(1.5) == [], "no more of it")


def other_place(fabric, a):
    """A HCA that is pulled and plugged in where another host was, which takes its place: it asks for the same host
    again, and the modelled one is nowhere meanwhile."""
    def state(port):
        a.tell(FLOW)
        return a.smp(1, 0x15, port)[1][32] & 15

    c = Hca(fabric, "H4", 0xf, session=2)
    expect(c.attach()[0] == WELCOME and state(6) == INIT, "H4 is free")
    try:
        expect(False, "it is plugged in already", fabric.command('Link "H4"[1] "S1"[5]'))
    except Failed:
        pass
    fabric.command('Unlink "H4"[1]')
    hear_link(c, 0)
    fabric.command('Link "H4"[1] "S1"[5]')
    fabric.command('Link "H3"[1] "S1"[6]')
    expect(c.hear()[0] == BYE, "it is to ask again")
    expect(state(5) == DOWN and state(6) == INIT, "nobody is in its place", state(5), state(6))
    c = Hca(fabric, "H4", 0xf, session=3)
    expect(c.attach()[0] == WELCOME and state(5) == INIT, "it is there", state(5))
    fabric.command('Unlink "H3"[1]')
    expect(state(5) == INIT and state(6) == DOWN, "each has its own cable", state(5), state(6))


def set_port(a, port, state=0, phys=0):
    """As an SM does; a's messages until then have been heard."""
    info = bytearray(a.smp(1, 0x15, port)[1])
    info[32] = info[32] & 0xf0 | state
    info[33] = phys << 4
    status, _ = a.smp(2, 0x15, port, info)
    expect(status == 0, "PortInfo", port, state, phys, status)


def hear_link(hca, there):
    while hca.link_there != there:
        expect(hca.hear(5), "the switch says that the link is", "up" if there else "down")


def switched_off(fabric, a, b):
    """A HCA that takes its link down, a switch port that is disabled, trained again, or of a switch that
    is down: the HCA is told, and nothing but the end of that brings the link back."""
    def off_and_on(off, on):
        off()
        hear_link(b, 0)
        if on:
            b.tell(FLOW)
            expect(a.smp(1, 0x15, 4)[1][32] & 15 == 1, "the port is down, whatever the HCA says")
            on()
        b.sent = [0] * 16
        b.tell(FLOW)
        hear_link(b, 1)
        expect(a.smp(1, 0x15, 4)[1][32] & 15 == INIT, "the port trains again")

    def down():
        """What the HCA has sent before it hears of it does not train the link."""
        set_port(a, 4, state=DOWN)
        b.tell(FLOW)
        b.send(3, 2, os.urandom(1000))
        expect(a.smp(1, 0x15, 4)[1][32] & 15 == 1, "the port is down until the HCA has seen it")

    def own(link):
        b.link = link
        b.tell(FLOW)

    off_and_on(lambda: own(0), lambda: own(1))
    off_and_on(lambda: set_port(a, 4, phys=DISABLED), lambda: set_port(a, 4, phys=POLLING))
    off_and_on(down, None)
    for hca in (a, b):
        hca.tell(FLOW)
    fabric.command('Down "S1"')
    for hca in (a, b):
        hear_link(hca, 0)
        hca.tell(FLOW)
        expect(hca.hear(0.3) is None or not hca.link_there, "it is down, whatever the HCA says")
    fabric.command('Up "S1"')
    for hca in (a, b):
        hca.tell(FLOW)
        hear_link(hca, 1)
    activate(a, (3, 4), {3: 2, 4: 3})


def main():
    with tempfile.TemporaryDirectory(prefix="vfabric-") as where:
        with Fabric("mesh:1,hosts=4", "-r", "-x", f"unix:{where}/ext") as fabric:
            os.symlink(f"{where}/ext", f"{fabric.dir}/ext")
            a, b = attach_two(fabric)
            status, info = a.smp(1, 0x11)
            expect(status == 0 and info[2] == 2, "the neighbour is a switch")
            port = info[36]
            expect(port == 3, "and says by which port: dimension 1 has 1 and 2", port)
            activate(a, (3, 4), {3: 2, 4: 3})
            exchange(a, b)
            back_pressure(a, b)
            without_credits(a, b)
            bad_cables(fabric, a, b)
            unread(fabric, a, b)
            missing(fabric, a)
            switched_off(fabric, a, b)
            hot_plug(fabric, a, b)
            watchdog(fabric, a)
            other_place(fabric, a)
            expect(fabric.server.poll() is None, "vfabric lives", fabric.server_log())
    return 0


if __name__ == "__main__":
    sys.exit(main())
