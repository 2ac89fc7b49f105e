# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests that begin with one saved state are one boot, and yet each has its own name, the right
time, and random numbers that no other one has."""

import os
import tempfile
import time

import bed as beds
from booted import Booted

GUESTS = 1


def look(directory, name):
    """(hostname, seconds since the epoch, two random numbers, when its init began)."""
    with beds.Bed() as bed:
        bed.booted = Booted(directory)
        guest = bed.guest(name, memory=256)
        before = time.time()
        host, now, *numbers, began = guest.run("""
            hostname
            date +%s
            cat /proc/sys/kernel/random/uuid
            head -c 16 /dev/urandom | od -A n -t x1
            dmesg | grep 'Run /init'""").strip().splitlines()
        assert before - 2 < int(now) < time.time() + 2, (before, now)
        guest.run("rdma link show rxe0/1 | grep -q ACTIVE")
        return host, numbers, began


def test(bed):
    bed.close()     # those that it looks at are one after the other in the same place
    with tempfile.TemporaryDirectory() as directory:
        looks = [look(directory, name) for name in ("one", "two", "three")]
        assert len(os.listdir(directory)) == 1, os.listdir(directory)
    assert [look[0] for look in looks] == ["one", "two", "three"], looks
    assert len({number for look in looks for number in look[1]}) == 6, looks
    assert len({look[2] for look in looks}) == 1, looks
