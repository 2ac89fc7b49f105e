# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A man in the middle of one network of the bed.

::

    guest a            the relay, in this process             guest b
    rdma0 == tap ------- AF_PACKET    AF_PACKET ------- tap == rdma0
                              \\  rule(mad)  /

The guests' taps are taken off their bridge and every frame goes through here. Frames that carry a
message of the modules (RoCEv2 to QP1, a CM SIDR_REQ or its SIDR_REP) are shown to a rule, which lets them
pass, holds them, or sends others; what is altered gets a right ICRC again, as somebody on the path would do.
All other frames pass as they are.
"""

import heapq
import itertools
import os
import select
import socket
import struct
import subprocess
import threading
import time
import zlib

from trouble import MESSAGES

_ETH, _BTH, _DETH, _MAD = 14, 12, 8, 256
_CM_CLASS, _SIDR_REQ, _SIDR_REP = 7, 0x17, 0x18
_SERVICE_ID = 0x1072657061746801
_REQ_DATA, _REP_DATA = 40, 120      # private data in the MAD
_FRAG = struct.Struct(">BBHIQI")    # version, type, reserved, total, msg_id, offset
_REPLY = struct.Struct(">BBHQI")    # version, status, reserved, msg_id, offset
STRANGER = "10.0.0.77"              # an address of nobody, which the relay has
_STRANGER_MAC = b"\x52\x54\x00\x66\x66\x66"
_OUTGOING = 4                       # PACKET_OUTGOING: what this process itself has sent
_NAMES = {number: name for name, number in MESSAGES.items()}


def icrc(packet):
    """The invariant CRC of a RoCEv2 packet from its IP header on (IBA, annex A17)."""
    masked = bytearray(packet[:-4])
    masked[1] = masked[8] = 0xff                        # type of service, time to live
    masked[10:12] = masked[26:28] = b"\xff\xff"         # both checksums
    masked[28 + 4] = 0xff                               # BTH: reserved for FECN, BECN
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))


class Mad:
    """One frame with a fragment of a message, or with the answer to one.

    tap: where it came from; answer: a SIDR_REP; type: the message's name; msg_id, total, offset, data:
    of the fragment.
    """

    def __init__(self, tap, frame, types):
        self.tap = tap
        self.frame = bytearray(frame)
        self.at = _ETH + 20 + 8 + _BTH + _DETH
        self.answer = struct.unpack_from(">H", frame, self.at + 16)[0] == _SIDR_REP
        if self.answer:
            _, _, _, self.msg_id, self.offset = _REPLY.unpack_from(frame, self.at + _REP_DATA)
            self.type = types.get(self.msg_id)
            return
        _, number, _, self.total, self.msg_id, self.offset = \
            _FRAG.unpack_from(frame, self.at + _REQ_DATA)
        self.type = _NAMES.get(number, number)

    @staticmethod
    def find(tap, frame, types):
        """The message in @frame, or None."""
        mad = _ETH + 20 + 8 + _BTH + _DETH
        if (len(frame) != mad + _MAD + 4 or frame[12:14] != b"\x08\x00" or frame[14] != 0x45
                or frame[23] != 17 or struct.unpack_from(">H", frame, 36)[0] != 4791
                or int.from_bytes(frame[47:50], "big") != 1 or frame[mad + 1] != _CM_CLASS):
            return None
        attribute = struct.unpack_from(">H", frame, mad + 16)[0]
        service = {_SIDR_REQ: 32, _SIDR_REP: 36}.get(attribute)
        if not service or struct.unpack_from(">Q", frame, mad + service)[0] != _SERVICE_ID:
            return None
        found = Mad(tap, frame, types)
        return found if found.type else None

    @property
    def source(self):
        """IPv4 address."""
        return socket.inet_ntoa(self.frame[26:30])

    @property
    def data(self):
        """Of a fragment, up to the end of the MAD."""
        return bytes(self.frame[self.at + _REQ_DATA + _FRAG.size:self.at + _MAD])

    def copy(self, **changes):
        """The same with other msg_id, total, version, source (IPv4 address), or with the bytes
        @flip of its data inverted."""
        other = Mad.__new__(Mad)
        other.__dict__ = dict(self.__dict__, frame=bytearray(self.frame))
        frame, at = other.frame, self.at + _REQ_DATA
        version, number, reserved, total, msg_id, offset = _FRAG.unpack_from(frame, at)
        other.msg_id = changes.get("msg_id", msg_id)
        _FRAG.pack_into(frame, at, changes.get("version", version), number, reserved,
                        changes.get("total", total), other.msg_id, offset)
        if changes.get("cm"):       # an exchange of its own: the CM knows requests by these
            struct.pack_into(">Q", frame, self.at + 8, changes["cm"])
            struct.pack_into(">I", frame, self.at + 24, changes["cm"] & 0xffffffff)
        for byte in changes.get("flip", ()):
            frame[at + _FRAG.size + byte] ^= 0xff
        if "source" in changes:
            frame[26:30] = socket.inet_aton(changes["source"])
            frame[6:12] = _STRANGER_MAC
        other.seal()
        return other

    def seal(self):
        """Make checksums fit the content."""
        frame = self.frame
        frame[24:26] = b"\0\0"
        words = sum(struct.unpack(">10H", frame[14:34]))
        while words >> 16:
            words = (words & 0xffff) + (words >> 16)
        frame[24:26] = struct.pack(">H", words ^ 0xffff)
        frame[40:42] = b"\0\0"
        frame[-4:] = icrc(frame[_ETH:])


class Relay:
    """Runs from its making until close(). @rule(relay, mad) is called, in the relay's thread, for each
    message: it returns True to let it pass; None rule: all pass."""

    def __init__(self, networks, network="rdma"):
        self.rule = None
        self.seen = []              # (type, answer) of all messages, for tests to look at
        self._types = {}
        self._later = []
        self._count = itertools.count()
        self._sockets = {}
        for tap in networks.taps(network):
            subprocess.run(["ip", "link", "set", tap, "nomaster"], check=True)
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            sock.bind((tap, 0))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            self._sockets[tap] = sock
        self._end, wake = os.pipe()
        self._wake = os.fdopen(wake, "wb", buffering=0)
        self.error = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._wake.close()
        self._thread.join()
        for sock in self._sockets.values():
            sock.close()
        if self.error:
            raise self.error

    def send(self, mad, after=0.0):
        """Send @mad on where it was going to, in @after seconds."""
        heapq.heappush(self._later, (time.monotonic() + after, next(self._count), mad.tap,
                                     bytes(mad.frame)))

    def inject(self, mad):
        """As send, from another thread."""
        self.send(mad)
        self._wake.write(b"x")

    @staticmethod
    def fresh():
        """A number that no message and no exchange had."""
        return struct.unpack(">Q", os.urandom(8))[0] | 1

    @staticmethod
    def _answer_arp(sock, frame):
        """Without an answer a guest that has something for the stranger looks for it for a second,
        and its CM does nothing else meanwhile."""
        stranger = socket.inet_aton(STRANGER)
        if frame[12:14] != b"\x08\x06" or frame[20:22] != b"\0\1" or frame[38:42] != stranger:
            return False
        sock.send(frame[6:12] + _STRANGER_MAC + frame[12:20] + b"\0\2" + _STRANGER_MAC + stranger
                  + frame[22:32])
        return True

    def _forward(self, tap, frame):
        for other, sock in self._sockets.items():
            if other != tap:
                try:
                    sock.send(frame)
                except OSError:
                    pass            # no room or no reader: a wire loses it, too

    def _take(self, tap, sock):
        while True:
            try:
                frame, address = sock.recvfrom(65536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                return
            if address[2] == _OUTGOING:
                continue
            if self._answer_arp(sock, frame):
                continue
            mad = Mad.find(tap, frame, self._types)
            if mad:
                if icrc(frame[_ETH:]) != frame[-4:]:
                    raise AssertionError("the relay and rxe do not agree about the ICRC")
                if not mad.answer:
                    self._types[mad.msg_id] = mad.type
                self.seen.append((mad.type, mad.answer))
                if self.rule and not self.rule(self, mad):
                    continue
            self._forward(tap, frame)

    def _run(self):
        poll = select.poll()
        taps = {sock.fileno(): (tap, sock) for tap, sock in self._sockets.items()}
        for fd in (self._end, *taps):
            poll.register(fd, select.POLLIN)
        try:
            while True:
                left = None
                if self._later:
                    left = max(0, (self._later[0][0] - time.monotonic()) * 1000)
                for fd, _ in poll.poll(left):
                    if fd in taps:
                        self._take(*taps[fd])
                    elif not os.read(self._end, 64):
                        return
                while self._later and self._later[0][0] <= time.monotonic():
                    _, _, tap, frame = heapq.heappop(self._later)
                    self._forward(tap, frame)
        except Exception as error:      # told by close()
            self.error = error
