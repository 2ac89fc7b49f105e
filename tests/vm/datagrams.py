# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Who sends datagrams, and who connects, by numbers that were told before a move: two programs, of
which the far one is moved."""

import errno
import itertools
import time

from dialog import Dialog

TELL = 30           # seconds: a datagram may be lost, a sender must hear where they go


class Words:
    """@count: queue pairs of each kind that will be asked for, see Words.connect() and Words.first()."""

    def __init__(self, a, b, count):
        self.near, self.far = Dialog(a, "near"), Dialog(b, "far")
        self.count = itertools.count()
        self.key, self.given, *rest = map(tuple, self.far.ask_all(
            "key", "ud", *["ud"] * count, *["qp"] * count))
        self.fresh, self.unconnected = rest[:count], rest[count:]
        self.own, *self.qps = map(tuple, self.near.ask_all("ud", *["qp"] * count))
        self.told = []      # whose number the near one uses

    def reach(self, *qps):
        """Datagrams arrive, by the numbers that the far one's queue pairs had first."""
        left = {qp: [] for qp in qps}
        end = time.monotonic() + TELL
        while left:
            assert time.monotonic() < end, f"datagrams to {list(left)} do not arrive"
            for said in left.values():
                said.append(f"word-{next(self.count)}")
            sent = self.near.ask_all(*(f"tell {self.own[0]} {self.far.address} {qp[1]} {said[-1]}"
                                       for qp, said in left.items()))
            assert all(status == ["0"] for status in sent), sent
            heard = self.far.ask_all(*(f"heard {qp[0]}" for qp in left))
            left = {qp: said for (qp, said), words in zip(left.items(), heard)
                    if not set(words) & set(said)}
        self.told += [qp for qp in qps if qp not in self.told]

    def reach_all(self):
        self.reach(*self.told)

    def first(self):
        """To a number that the near one's module has not asked for."""
        self.reach(self.fresh.pop())
        return "heard"

    def finish_connect(self, near, qp, far_qp, ret):
        """@near has connected @qp, or not: the other end does, and is written to."""
        if ret:
            return errno.errorcode[ret]
        text = f"text-{next(self.count)}"
        assert self.far.connect(far_qp, near.address, qp) == 0
        assert near.write(qp, self.key, text) == 0
        assert self.far.ask("text") == [text]
        return "connected"

    def connect(self, near=None):
        """By a number of before a move."""
        qp, far_qp = near.qp() if near else self.qps.pop(), self.unconnected.pop()
        near = near or self.near
        return self.finish_connect(near, qp, far_qp, near.connect(qp, self.far.address, far_qp))

    def end(self):
        self.near.kill()
        self.far.kill()
