#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""As a server: nonsense at its sockets, and from HCAs that are attached, under ASan; 2000 switches with a
subnet manager.
"""

import os
import random
import re
import socket
import struct
import sys
import tempfile
import time

from bed import Fabric, expect
from hca import (BYE, CREDITS, DATA, FLOW, HEADER, HELLO, LIMIT, PORT, REFUSED, WELCOME, Hca, activate)

DATAGRAMS = 20000
MESSAGES = 6000


def nonsense():
    """Random datagrams and near-misses at the sockets of clients, HCAs and consoles."""
    rng = random.Random(4)
    with Fabric("mesh:3x2", "-r", "-x", "unix:ext.sock", binary="asan/vfabric") as fabric:
        control = "\0" + fabric.name + ":ctl\0"
        client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        client.bind("\0" + fabric.name + ":test")
        client.connect(control)
        client.settimeout(5)
        pid = os.getpid()
        inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        inbox.bind("\0" + f"{fabric.name}:in{pid}" + "\0")
        client.send(struct.pack("=IIIIIII32s20x", 0xdeadbeef, 0, 1, 44, pid, 0, 0, b"H1"))
        kind, number = struct.unpack_from("=8xI4xI", client.recv(100))
        expect(kind == 1, "a client is let in", kind)
        inbox.connect("\0" + f"{fabric.name}:out{number}" + "\0")
        inbox.setblocking(False)
        client.setblocking(False)
        hca = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        hca.connect("ext.sock")
        hca.settimeout(5)
        for i in range(DATAGRAMS):
            body = bytearray(rng.randbytes(rng.choice((80, 288, 20, 300))))
            if i % 3 == 0:
                body = bytearray(struct.pack("=IIII64s", 0xdeadbeef, rng.choice((0, 1, 70000)),
                                             rng.randrange(12), 64, rng.randbytes(64)))
                if struct.unpack_from("=I", body, 8)[0] == 2:
                    continue                    # a proper goodbye is no nonsense
            to = client if i % 3 == 0 else inbox if i % 3 == 1 else hca
            if to is inbox:
                body = bytearray(288)
                body[32:] = rng.randbytes(256)
                body[32:36] = bytes((1, rng.choice((1, 0x81, 4, 3)), 1, rng.choice((1, 2, 7))))
                body[39] = rng.randrange(8)
            elif to is hca:
                body[0:6] = struct.pack(">IBB", 0x76484341, 2, rng.randrange(8))
            try:
                to.send(body)
            except BlockingIOError:
                pass
            for inward in (client, inbox):
                try:
                    while True:
                        inward.recv(400)
                except (BlockingIOError, ConnectionRefusedError):
                    pass
        for line in ("", "Nonsense", '"', 'Flow "', "Dump " + "x" * 900, 'Unlink "S1"[99]'):
            try:
                fabric.command(line)
            except Exception as why:            # it may refuse, not die
                expect("gone" not in str(why), why)
        expect("dumped 12 nodes" in fabric.command("Dump"), "it still serves")
        expect(fabric.server.poll() is None, fabric.server_log())
    os.unlink("ext.sock")


def some_mad(rng):
    """What agents and the sharing of a port look at; no Set of what could take its port from the HCA."""
    mad = bytearray(rng.randbytes(256))
    method = rng.choice((1, 1, 2, 5, 6, 7, 0x81))
    attributes = (0x10, 0x11, 0x12, 0x14, 0x15, 0x17, 0x18, 0x19, 0x20)
    if method == 2:
        attributes = (0x02, 0x16, 0x19, 0x1b)
    mad[:4] = bytes((1, rng.choice((1, 0x81, 0x81, 3, 4, 7)), rng.choice((1, 2)), method))
    struct.pack_into(">HBBQHHIQHH", mad, 4, rng.choice((0, 0, 0x8000)), rng.choice((0, 0, 1, 2, 70)),
                     rng.choice((0, 1, 2, 3, 63, 64)), rng.choice((1, 2, rng.getrandbits(64))),
                     rng.choice(attributes), 0, rng.choice((0, 1, 3, rng.getrandbits(32))), 0, 0xffff, 0xffff)
    mad[128:136] = bytes(rng.choice((0, 1, 2, 3, 4, 200)) for _ in range(8))
    return bytes(mad)


def some_packet(rng):
    """(VL, LRH to ICRC), mostly one that is well formed."""
    kind = rng.randrange(8)
    vl = rng.choice((0, 0, 0, 1, 7, 8, 14, 15, rng.randrange(256)))
    if kind == 0:
        return vl, rng.randbytes(rng.choice((0, 1, 4, 23, 24, 28, 60, 288, 1000, 4222, 4223, 4500)))
    qpn = rng.choice((0, 1, 1, 5, 1 << 20 | 5, 2 << 20 | 7, rng.getrandbits(24)))
    grh = rng.randbytes(40) if rng.random() < 0.3 else b""
    if kind < 5:
        vl = rng.choice((0, 15, 15, vl))
        bth = struct.pack(">BBHII", 0x64, 0, 0xffff, qpn if vl != 15 else rng.choice((0, qpn)), 0)
        body = struct.pack(">II", 0x80010000, 1) + some_mad(rng)
    else:
        bth = struct.pack(">BBHII", rng.choice((4, 0x64, rng.randrange(256))), 0,
                          rng.choice((0xffff, 0x1234)), qpn, 0)
        body = rng.randbytes(4 * rng.choice((0, 1, 8, 60, 250, 520, 1020)))
    body = grh + bth + body + bytes(4)
    packet = bytearray(struct.pack(">BBHHH", vl << 4 & 0xf0,
                                   rng.choice((0, 0, vl & 15)) << 4 | (3 if grh else 2),
                                   rng.choice((1, 2, 3, 0xc000, 0xffff, rng.getrandbits(16))),
                                   2 + len(body) // 4, rng.choice((1, 2, 3))) + body)
    if rng.random() < 0.1:
        packet[rng.randrange(20)] = rng.randrange(256)
    if rng.random() < 0.05:
        packet = packet[:rng.randrange(len(packet))]
    return vl, bytes(packet)


def some_message(rng, hca):
    """Of its session, mostly, and of any type."""
    kind = rng.choice((DATA,) * 12 + (FLOW, PORT, PORT, WELCOME, REFUSED, 0, 8, 255))
    vl, body = some_packet(rng)
    credit = [n & 0xffffffff for pair in zip(hca.sent, hca.room) for n in pair]
    link, era, sequence, port, session = hca.link, hca.era, hca.sequence, 1, hca.session
    if kind == PORT:
        body = b"".join((rng.randbytes(16), struct.pack(">H", rng.choice((2, 3, 9))), rng.randbytes(198)))
    if rng.random() < 0.02:
        kind, body = HELLO, rng.choice((hca.host, b"H2", b"S1", b"", b"x" * 63, b"x" * 64, body))
    length = len(body)
    wrong = rng.randrange(200)
    if wrong == 0:
        link = rng.choice((0, 2, 255))
    elif wrong == 1:
        era = rng.randrange(256)
    elif wrong == 2:
        sequence += rng.choice((-1000, 5, 1 << 31))
    elif wrong == 3:
        port = rng.randrange(256)
    elif wrong == 4:
        length += rng.choice((-1, 1, 60000))
    elif wrong == 5:
        session = rng.getrandbits(32)
    if rng.random() < 0.2:
        credit[rng.randrange(32)] = rng.getrandbits(32)
    hca.sequence += 1
    if vl < 8 and kind == DATA:
        hca.sent[vl] += (len(body) + 63) // 64
    function = rng.choice((hca.function,) * 30 + (1, 7, 255))
    return HEADER.pack(0x76484341, hca.version, kind, port, vl, session, sequence % 2**32, hca.guid,
                       link, 2, 4, 0, length % 65536, function, era) + CREDITS.pack(*credit) + body


def listen(hca):
    """All that has come, without a judgement. Return: how many packets that were."""
    packets = 0
    hca.socket.setblocking(False)
    try:
        while True:
            data = hca.socket.recv(8192)
            fields = HEADER.unpack_from(data)
            packets += fields[2] == DATA
            if fields[5] == hca.session and fields[2] != REFUSED:
                hca.era = fields[14]
    except BlockingIOError:
        hca.socket.settimeout(5)
        return packets


def again(hcas):
    """A life of its own begins for each."""
    for hca in hcas:
        hca.tell(BYE)
    time.sleep(0.1)                              # what was late is through
    for hca in hcas:
        listen(hca)
        hca.session += 1
        hca.sequence, hca.era, hca.next, hca.link = 0, 0, None, 1
        hca.sent, hca.room = [0] * 16, [LIMIT] * 16
        expect(hca.attach()[0] == WELCOME, "attached", hca.host, hca.function)


def bring_up(hcas):
    """Data can go from the first, LID 2, to the second, LID 3."""
    a, b = hcas[:2]
    ports = [hca.smp(1, 0x11)[1][36] for hca in (a, b)]
    activate(a, ports, dict(zip(ports, (2, 3))))
    for hca in (a, b):
        if len(hcas) > 2:
            hca.tell(PORT, bytes(16) + bytes((0, 3 if hca is b else 2)) + bytes(198))
        hca.tell(FLOW)
    while a.hear(0.1) or b.hear(0.1):
        pass


def wire(topology, *functions):
    """HCAs that say nonsense, of every type and in every field, in messages that are theirs by all else."""
    rng = random.Random(5)
    with tempfile.TemporaryDirectory(prefix="vfabric-") as where, \
            Fabric(topology, "-r", "-x", f"unix:{where}/ext", binary="asan/vfabric") as fabric:
        os.symlink(f"{where}/ext", f"{fabric.dir}/ext")
        hcas = [Hca(fabric, host, 0xa + i, function=function)
                for i, (host, function) in enumerate((("H1", 0), ("H2", 0), *functions))]
        a, b = hcas[:2]
        came = {hca: 0 for hca in hcas}
        for i in range(MESSAGES):
            if i % 500 == 0:
                for name in ("H1", "H2"):
                    fabric.command(f'Fault "{name}"[1] duplicate=0 corrupt=0 loss=0 reorder=0')
                again(hcas)
                bring_up(hcas)
                for name in ("H1", "H2") if i >= MESSAGES // 2 else ():
                    fabric.command(f'Fault "{name}"[1] duplicate=0.1 corrupt=0.1 loss=0.05 reorder=0.2 '
                                   'window=5e6')
            hca = rng.choice(hcas)
            hca.socket.send(some_message(rng, hca))
            for hca in hcas if i % 8 == 0 else ():
                came[hca] += listen(hca)
        expect(min(came.values()) > MESSAGES // 400, "much has an answer, or arrives:", came.values())
        for name in ("H1", "H2"):
            fabric.command(f'Fault "{name}"[1] duplicate=0 corrupt=0 loss=0 reorder=0')
        again(hcas)
        bring_up(hcas)
        a.send(2, 3, bytes(range(200)))
        until = time.monotonic() + 10
        while not ((message := b.hear()) and message[0] == DATA and message[1][20:-4] == bytes(range(200))):
            expect(time.monotonic() < until, "a packet arrives")
            a.tell(FLOW)
            b.tell(FLOW)
        expect(fabric.server.poll() is None, fabric.server_log())


def large():
    with Fabric("random:2000,degree=6,hosts=1,seed=2", opensm="-R minhop") as fabric:
        expect(fabric.all_active(), "all ports of 2000 switches are active")
        lid = re.search(r'Hca 1 "H2000".*\n\[1\]\t.*?lid (\d+)', fabric.command("Dump"))[1]
        out = fabric.run("H1", "smpquery", "nodedesc", lid)
        expect("H2000" in out, "the last host answers by LID", out)
        fabric.command('Flow "H1" "H2000"')
        fabric.command("Measure")
        fabric.command("Advance 100")
        expect(",0,0," in fabric.command("Results flows").splitlines()[1], "and data arrives")


def main():
    nonsense()
    wire("mesh:1,hosts=4")
    wire("mesh:1,hosts=2,shared=2", ("H1", 1), ("H2", 2))
    large()
    return 0


if __name__ == "__main__":
    sys.exit(main())
