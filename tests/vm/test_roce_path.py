# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""RoCE: an administrator has the connections to one GID, and datagrams, sent by another class of traffic. With the shim at
both ends they go on as if nothing had been, checked, and the wire shows the new class, of what they send and of
nothing else; a move of the process takes it along."""

import socket
import struct
import time

import tracking
from move import SHIM, moving
from traffic import Pair

ROCE = 4791     # UDP
UD = 3          # the upper bits of an opcode: the transport
RC = 0


class Wire:
    """What passes one guest's NIC."""

    def __init__(self, bed, guest=0):
        self.tap = bed.networks.taps("rdma")[guest]

    def classes(self, source, transport, seconds=2):
        """{traffic class: packets from there}, of users' queue pairs, from now on."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as sock:
            sock.bind((self.tap, 0))
            sock.settimeout(0.2)
            return self._count(sock, source, transport, time.monotonic() + seconds)

    @staticmethod
    def _count(sock, source, transport, end):
        found = {}
        while time.monotonic() < end:
            try:
                frame = sock.recv(65536)
            except TimeoutError:
                continue
            if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 17:
                continue
            port, = struct.unpack("!H", frame[36:38])
            dest_qpn = int.from_bytes(frame[47:50], "big")
            if port == ROCE and dest_qpn != 1 and frame[42] >> 5 == transport and \
                    socket.inet_ntoa(frame[26:30]) == source:
                found[frame[15]] = found.get(frame[15], 0) + 1
        return found


A, B, B_MOVED = "10.0.0.1", "10.0.0.2", "10.0.0.12"


def tell(guest, peer, words):
    guest.run(f"repath path set rxe0/1 dgid {tracking.ipv4_gid(peer)} {words}")


def are_moved(guest, tclass, moves, timeout=60):
    """All connections of processes are on it, and have been moved so often."""
    end = time.monotonic() + timeout
    while True:
        qps = [qp for qp in tracking.user_qps(guest).values() if qp["type"] == "RC"]
        if qps and all((qp.get("tclass"), qp.get("moves")) == (tclass, moves) for qp in qps):
            assert all(qp["moved-by"] == "cycle" for qp in qps), qps
            return
        assert time.monotonic() < end, qps
        time.sleep(0.2)


def connections(a, b, wire):
    with moving(a, b) as mover:
        pair = Pair(a, b, "-q 4 --vary --bidir", env=SHIM)
        pair.wait_running()
        assert set(wire.classes(B, RC)) == {0}
        # Of each end what it sends; and one word after another.
        tell(b, A, "sl 3 tclass 96")
        are_moved(b, 96, 1)
        pair.wait_progress()
        assert set(wire.classes(A, RC)) == {0}
        tell(a, B, "tclass 8")
        are_moved(a, 8, 1)
        tell(a, B, "tclass 32")
        are_moved(a, 32, 2)
        pair.wait_progress()
        assert set(wire.classes(B, RC)) == {96}
        assert set(wire.classes(A, RC)) == {32}
        mover.swap(b)
        pair.wait_progress()
        assert set(wire.classes(B_MOVED, RC)) == {96}
        assert set(wire.classes(A, RC)) == {32}
        pair.finish()


def datagrams(a, b, wire):
    program = f"exec env {SHIM} ibv_ud_pingpong -d rxe0 -g 1 -n 1000000"
    jobs = [a.start(program)]
    a.wait_until("grep -q :4853 /proc/net/tcp /proc/net/tcp6")     # 18515: it listens
    jobs.append(b.start(f"{program} {a.mgmt_ip}"))
    end = time.monotonic() + 60
    while not wire.classes(B_MOVED, UD):
        assert time.monotonic() < end and jobs[1].running, jobs[1].output()
    tell(b, A, "tclass 64")
    time.sleep(1)
    assert set(wire.classes(B_MOVED, UD)) == {64}
    assert set(wire.classes(A, UD)) == {0}
    for job in jobs:
        job.kill(15)


def test(bed):
    a, b = bed.guests("a", "b")
    wire = Wire(bed)
    connections(a, b, wire)
    datagrams(a, b, wire)
