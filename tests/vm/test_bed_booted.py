# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests that begin with one saved state are one boot, and yet each has its own name, the right
time, and random numbers that no other one has. One whose kernel complains at boot is not saved."""

import os
import tempfile
import time
import types

import bed as beds
import booted

GUESTS = 1


def look(directory, name):
    """(hostname, seconds since the epoch, two random numbers, when its init began)."""
    with beds.Bed() as bed:
        bed.booted = booted.Booted(directory)
        before = time.time()
        guest = bed.guest(name, memory=256)
        host, now, *numbers, began = guest.run("""
            hostname
            date +%s
            cat /proc/sys/kernel/random/uuid
            head -c 16 /dev/urandom | od -A n -t x1
            dmesg | grep 'Run /init'""").strip().splitlines()
        assert int(before) <= int(now) <= time.time() + 1, (before, now)
        guest.run("rdma link show rxe0/1 | grep -q ACTIVE")
        return host, numbers, began


def test(bed):
    bed.close()     # those that it looks at are one after the other in the same place
    booted.ROOM = 0         # /tmp is no tmpfs of a run
    with tempfile.TemporaryDirectory() as directory:
        looks = [look(directory, name) for name in ("one", "two", "three")]
        assert len(os.listdir(directory)) == 1, os.listdir(directory)
    assert [look[0] for look in looks] == ["one", "two", "three"], looks
    assert len({number for look in looks for number in look[1]}) == 6, looks
    assert len({look[2] for look in looks}) == 1, looks

    with tempfile.TemporaryDirectory() as directory, beds.Bed() as other:
        booted.kernel_log = types.SimpleNamespace(reports=lambda log: "Run /init" in log)
        other.booted = booted.Booted(directory)
        other.guest("four", memory=256, rdma=False)
        assert not os.listdir(directory), os.listdir(directory)
