# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Devices that go and come while nobody tells repath; for guests with LOADED."""

import time

from move import repath

LOADED = "unplug_ms=20000"


def operations(guest):
    status, found, text = repath(guest, "status")
    assert status == 0, text
    return found


def last(guest):
    """The last operation, which began because a device was removed."""
    op = operations(guest)[-1]
    assert op.get("unplug"), op
    return op


def wait_state(guest, number, state, timeout=90):
    """The operation comes to that state: it."""
    end = time.monotonic() + timeout
    while True:
        op = next(op for op in operations(guest) if op["op"] == number)
        if op["state"] == state:
            return op
        if time.monotonic() > end:
            raise TimeoutError(f"{state} is wanted: {op}")
        time.sleep(0.2)
