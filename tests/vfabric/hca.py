# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A real HCA's port in a few lines, and what the wire to it is made of (../vhca/wire.h)."""

import socket
import struct
import zlib

from bed import expect

HELLO, WELCOME, REFUSED, DATA, FLOW, BYE, PORT = range(1, 8)
HEADER = struct.Struct(">IBBBBIIQBBBBHBB")
CREDITS = struct.Struct(">32I")
DOWN, INIT, ARMED, ACTIVE = 1, 2, 3, 4
LIMIT = 1 << 20
BLOCK = 64


class Hca:
    """One port of an HCA at the other end of a cable."""

    def __init__(self, fabric, host, guid, session=1, connected=True, function=0):
        """Without connected: one whose socket holds a few messages only, until it reads."""
        self.path = f"{fabric.dir}/hca-{guid}-{function}-{session}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.where = f"{fabric.dir}/ext"
        if connected:
            self.socket.connect(self.where)
        self.connected = connected
        self.socket.settimeout(5)
        self.host, self.guid, self.session = host.encode(), guid, session
        self.version, self.sequence, self.tid, self.function = 2, 0, 0, function
        self.sent, self.limit, self.room = [0] * 16, [0] * 16, [LIMIT] * 16
        self.link, self.era, self.next, self.missed = 1, 0, None, 0

    def tell(self, kind, body=b"", vl=0):
        credit = [n & 0xffffffff for pair in zip(self.sent, self.room) for n in pair]
        self.socket.settimeout(5)
        message = HEADER.pack(0x76484341, self.version, kind, 1, vl, self.session, self.sequence,
                              self.guid, self.link, 2, 4, 0, len(body), self.function, self.era)
        message += CREDITS.pack(*credit) + body
        if self.connected:
            self.socket.send(message)
        else:
            self.socket.sendto(message, self.where)
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
            credits = CREDITS.unpack_from(data, HEADER.size)
            self.came, self.limit = credits[::2], credits[1::2]
            self.link_there, self.era = fields[8], fields[14]
            self.missed += fields[6] - (fields[6] if self.next is None else self.next)
            self.next = fields[6] + 1
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

    def smp_packet(self, method, attribute, modifier=0, data=b"", path=(1,)):
        """A directed-route SMP."""
        self.tid += 1
        mad = bytearray(256)
        struct.pack_into(">BBBBHBBQHHI", mad, 0, 1, 0x81, 1, method, 0, 1, len(path), self.tid,
                         attribute, 0, modifier)
        struct.pack_into(">HH", mad, 32, 0xffff, 0xffff)
        mad[64:64 + len(data)] = data
        mad[129:129 + len(path)] = bytes(path)
        return (lrh(15, 0, 0xffff, 0xffff, 8 + 12 + 8 + 256 + 4) + bytes([0x64]) + bytes(7) +
                bytes(12) + bytes(mad) + bytes(4))

    def smp(self, method, attribute, modifier=0, data=b"", path=(1,)):
        """Sends one; returns (status, data) of the answer."""
        packet = self.smp_packet(method, attribute, modifier, data, path)
        for _ in range(3):                       # VL15 is unreliable: ask again, as SMs do
            self.tell(DATA, packet, 15)
            body = self.answer()
            if body:
                break
        expect(body, "an answer to attribute", attribute)
        expect(struct.unpack_from(">Q", body, 28 + 8)[0] == self.tid, "the answer's TID")
        expect(icrc(body) == body[-4:], "the answer's ICRC")
        return struct.unpack_from(">H", body, 28 + 4)[0] & 0x7fff, body[28 + 64:28 + 128]

    def gmp(self, slid, dlid, mad):
        """Sends a MAD to QP1 there by VL 0; returns the answer."""
        self.tid += 1
        mad = bytearray(mad.ljust(256, b"\0"))
        struct.pack_into(">Q", mad, 8, self.tid)
        packet = lrh(0, 0, dlid, slid, 8 + 12 + 8 + 256 + 4)
        packet += struct.pack(">BBHII", 0x64, 0, 0xffff, 1, 0) + struct.pack(">II", 0x80010000, 1)
        packet += mad + bytes(4)                 # the ICRC is for HCAs to check
        self.sent[0] += (len(packet) + BLOCK - 1) // BLOCK
        self.tell(DATA, packet)
        while True:
            message = self.hear()
            expect(message, "an answer to the MAD", mad[:24])
            if message[0] == DATA and message[1][28 + 8:28 + 16] == mad[8:16]:
                expect(message[1][28 + 3] == 0x81, "an answer, and not what was asked", message[1][28:52])
                return message[1][28:-4]

    def send(self, slid, dlid, payload, vl=0, honest=True):
        length = 8 + 12 + len(payload) + 4
        packet = lrh(vl, vl, dlid, slid, length) + bytes([4]) + b"\x00\xff\xff" + bytes(8) + payload
        packet += icrc(packet + bytes(4))
        blocks = (length + BLOCK - 1) // BLOCK
        expect(not honest or self.credits(vl) >= blocks, "within the credits")
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
