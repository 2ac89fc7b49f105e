# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The module believes a process only about itself: another ABI, a child of fork, an unregistered
socket, an operation and a connection of somebody else are refused, each with its reason."""

REASONS = ("different releases", "registered by another process", "not registered on this socket",
           "takes part in no operation", "no such connection")


def test(bed):
    a = bed.guest("a")
    a.load_repath()
    text = a.run("fakeshim -f")
    for reason in REASONS:
        assert reason in text, (reason, text)
    # HELLO is the module's own word; what the policy or the handler says to it differs by release.
    assert text.count("refused") == len(REASONS) + 1, text
    assert "fakeshim" not in a.run("repath process")
    a.run("rmmod ib_repath && insmod /lib/repath/ib_repath.ko && rmmod ib_repath")
