#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""As a server: nonsense at its sockets, under ASan; 2000 switches with a subnet manager."""

import os
import random
import re
import socket
import struct
import sys

from bed import Fabric, expect

DATAGRAMS = 20000


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
    large()
    return 0


if __name__ == "__main__":
    sys.exit(main())
