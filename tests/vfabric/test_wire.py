#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The cable to real HCAs, with two HCAs of a few lines: attach, refuse, SMPs, packets, credits.

There is no subnet manager: the first HCA sets the switch's ports and tables by directed routes,
as one would. Then packets go from one to the other, at the pace of the wall clock, as long as there
are credits; a cable is pulled and put back; and an HCA that is silent is taken for gone.
"""

import os
import socket
import struct
import sys
import tempfile
import time
import zlib

from bed import Fabric, expect

HELLO, WELCOME, REFUSED, DATA, FLOW, BYE = range(1, 7)
HEADER = struct.Struct(">IBBBBIIQBBBBHH")
CREDITS = struct.Struct(">32I")
DOWN, INIT, ARMED, ACTIVE = 1, 2, 3, 4
POLLING, DISABLED = 2, 3
LIMIT = 1 << 20
BLOCK = 64


class Hca:
    """One port of an HCA at the other end of a cable."""

    def __init__(self, fabric, host, guid, session=1):
        self.path = f"{fabric.dir}/hca-{guid}-{session}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.connect(f"{fabric.dir}/ext")
        self.socket.settimeout(5)
        self.host, self.guid, self.session = host.encode(), guid, session
        self.version, self.sequence, self.tid = 2, 0, 0
        self.sent, self.limit, self.room = [0] * 16, [0] * 16, [LIMIT] * 16
        self.link, self.era, self.packets = 1, 0, []

    def tell(self, kind, body=b"", vl=0):
        credit = [n & 0xffffffff for pair in zip(self.sent, self.room) for n in pair]
        self.socket.settimeout(5)
        self.socket.send(HEADER.pack(0x76484341, self.version, kind, 1, vl, self.session,
                                     self.sequence, self.guid, self.link, 2, 4, 0, len(body),
                                     self.era) +
                         CREDITS.pack(*credit) + body)
        self.sequence += 1

    def hear(self, patience=5):
        """The next message: (type, body); None if there is none in time."""
        self.socket.settimeout(patience)
        try:
            data = self.socket.recv(8192)
        except socket.timeout:
            return None
        fields = HEADER.unpack_from(data)
        expect(fields[:2] == (0x76484341, self.version) and fields[5] == self.session, "header",
               fields)
        if fields[2] != REFUSED:
            self.limit = CREDITS.unpack_from(data, HEADER.size)[1::2]
            self.link_there, self.era = fields[8], fields[13]
        body = data[HEADER.size + CREDITS.size:]
        expect(len(body) == fields[12], "length", fields)
        return fields[2], body

    def attach(self):
        self.tell(HELLO, self.host)
        return self.hear()

    def answer(self):
        """The next SMP that comes, or None."""
        while True:
            message = self.hear(2)
            if not message:
                return None
            if message[0] == DATA and message[1][28 + 1] == 0x81:
                return message[1]

    def smp(self, method, attribute, modifier=0, data=b"", path=(1,)):
        """A directed-route SMP; returns (status, data)."""
        self.tid += 1
        mad = bytearray(256)
        struct.pack_into(">BBBBHBBQHHI", mad, 0, 1, 0x81, 1, method, 0, 1, len(path), self.tid,
                         attribute, 0, modifier)
        struct.pack_into(">HH", mad, 32, 0xffff, 0xffff)
        mad[64:64 + len(data)] = data
        mad[129:129 + len(path)] = bytes(path)
        packet = (lrh(15, 0, 0xffff, 0xffff, 8 + 12 + 8 + 256 + 4) + bytes([0x64]) + bytes(7) +
                  bytes(12) + bytes(mad) + bytes(4))
        for _ in range(3):                       # VL15 is unreliable: ask again, as SMs do
            self.tell(DATA, packet, 15)
            body = self.answer()
            if body:
                break
        expect(body, "an answer to attribute", attribute)
        expect(struct.unpack_from(">Q", body, 28 + 8)[0] == self.tid, "the answer's TID")
        expect(icrc(body) == body[-4:], "the answer's ICRC")
        return struct.unpack_from(">H", body, 28 + 4)[0] & 0x7fff, body[28 + 64:28 + 128]

    def send(self, slid, dlid, payload, vl=0):
        length = 8 + 12 + len(payload) + 4
        packet = lrh(vl, vl, dlid, slid, length) + bytes([4]) + b"\x00\xff\xff" + bytes(8) + payload
        packet += icrc(packet + bytes(4))
        blocks = (length + BLOCK - 1) // BLOCK
        expect((self.limit[vl] - self.sent[vl]) % 2**32 >= blocks, "within the credits")
        self.sent[vl] += blocks
        self.tell(DATA, packet, vl)

    def credits(self, vl=0):
        return (self.limit[vl] - self.sent[vl]) % 2**32


def lrh(vl, sl, dlid, slid, length):
    return struct.pack(">BBHHH", vl << 4, sl << 4 | 2, dlid, length // 4, slid)


def icrc(packet):
    masked = bytearray(packet[:-4])
    masked[0] |= 0xf0
    masked[12] = 0xff
    return struct.pack("<I", zlib.crc32(bytes(masked)))


def activate(hca, ports, lid_of):
    """What an SM would do with the switch behind the first hop."""
    table = bytearray(b"\xff" * 64)
    table[1] = 0
    for port, lid in lid_of.items():
        table[lid] = port
    for modifier, state in ((0, 0),) + tuple((p, s) for s in (ARMED, ACTIVE) for p in ports):
        _, info = hca.smp(1, 0x15, modifier)
        info = bytearray(info)
        info[32] = info[32] & 0xf0 | state
        info[33] &= 0x0f
        struct.pack_into(">H", info, 16, 1)
        status, _ = hca.smp(2, 0x15, modifier, info)
        expect(status == 0, "PortInfo", modifier, state, status)
    expect(hca.smp(2, 0x19, 0, table)[0] == 0, "the forwarding table")


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
            switched_off(fabric, a, b)
            hot_plug(fabric, a, b)
            expect(fabric.server.poll() is None, "vfabric lives", fabric.server_log())
    return 0


if __name__ == "__main__":
    sys.exit(main())
