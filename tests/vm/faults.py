# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a man in the middle does to messages of one kind: rules for relay.py."""

import collections

from relay import STRANGER

TIMES = 2           # how many frames of a kind are disturbed, from each end that says it
REC_AT = 48         # of the first record in a message: its tokens
# Of those without records: HELLO's token; RESOLVE's number, which is not one of 24 bits then (the only
# token is the asker's own); MOVED's token and cookie.
ALTERED = {"HELLO": range(24, 28), "RESOLVE": range(56, 60), "MOVED": range(0, 4)}
FORGED = {"HELLO": range(24, 40), "RESOLVE": range(48, 56), "MOVED": range(0, 16)}


class Fault:
    """Disturbs the first frames of one kind of message; hits: how many, by the end that has said them."""

    def __init__(self, kind):
        self.kind = kind
        self.hits = collections.Counter()
        self.kept = []

    def __call__(self, relay, mad):
        if mad.type != self.kind or mad.answer != self.answers or self.hits[mad.source] >= TIMES:
            return True
        self.hits[mad.source] += 1
        return self.disturb(relay, mad)

    answers = False

    def disturb(self, relay, mad):
        raise NotImplementedError


class Lost(Fault):
    """It does not arrive; the CM repeats it."""

    def disturb(self, relay, mad):
        return False


class AnswerLost(Fault):
    """It arrives, but its answer does not."""
    answers = True

    def disturb(self, relay, mad):
        return False


class Doubled(Fault):
    """It arrives twice, and once more as another message."""

    def disturb(self, relay, mad):
        relay.send(mad)
        relay.send(mad.copy(msg_id=relay.fresh(), cm=relay.fresh()), 0.05)
        return True


class Delayed(Fault):
    """It arrives when the CM has repeated it already."""

    def disturb(self, relay, mad):
        relay.send(mad, 0.4)
        return False


class Reordered(Fault):
    """It comes again as another message, after those that follow it."""

    def disturb(self, relay, mad):
        relay.send(mad.copy(msg_id=relay.fresh(), cm=relay.fresh()), 0.3)
        return True


class Altered(Fault):
    """Its tokens are damaged on the way; HELLO's of one of two connections, as each end says it."""

    def __init__(self, kind):
        super().__init__(kind)
        self.connection = None

    def __call__(self, relay, mad):
        if mad.type == self.kind == "HELLO" and not mad.answer:
            ends = {mad.data[16:20], mad.data[20:24]}
            self.connection = self.connection or ends
            if ends != self.connection:
                return True
        return super().__call__(relay, mad)

    def disturb(self, relay, mad):
        relay.send(mad.copy(flip=ALTERED.get(mad.type, range(REC_AT, REC_AT + 4))))
        return False


class Forged(Fault):
    """A stranger has seen it, and says it from another address, with other tokens, before it."""

    def disturb(self, relay, mad):
        for flip in ((), FORGED.get(mad.type, range(REC_AT, REC_AT + 16))):
            relay.send(mad.copy(msg_id=relay.fresh(), cm=relay.fresh(), source=STRANGER, flip=flip))
        relay.send(mad, 0.02)
        return False


class Truncated(Fault):
    """It says to be shorter than it is, in the middle of a record; then it comes as it was."""

    def disturb(self, relay, mad):
        for total in (mad.total - 8, 20, 1):
            relay.send(mad.copy(msg_id=relay.fresh(), cm=relay.fresh(), total=max(1, total)))
        return True


class OtherVersion(Fault):
    """It is of another version of the protocol."""

    def disturb(self, relay, mad):
        relay.send(mad.copy(version=7))
        return False


FAULTS = collections.OrderedDict([
    ("lost", Lost), ("answer lost", AnswerLost), ("doubled", Doubled), ("delayed", Delayed),
    ("reordered", Reordered), ("altered", Altered), ("forged", Forged), ("truncated", Truncated),
    ("other version", OtherVersion)])
