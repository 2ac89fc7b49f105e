#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Traps by what raises them, to stock OpenSM, which represses them: 128 by a cable, 144 by a program that
turns into a subnet manager or ends, and by another NodeDescription. (131, by an HCA that is
silent, is in test_wire.py.)
"""

import re
import struct
import sys
import time

from bed import PATIENCE, Client, Fabric, expect

RESENT = 5                          # times a second, until somebody represses it
IS_SM = 2                           # in the CapabilityMask


def heard(fabric, mark, number, provoke):
    """How often OpenSM has heard of that trap until two seconds after it had first."""
    provoke()
    until = time.monotonic() + PATIENCE
    word = f"num:{number}"
    while word not in fabric.sm_log()[mark:]:
        expect(time.monotonic() < until, "no trap", number, fabric.sm_log()[mark:])
        time.sleep(0.1)
    time.sleep(2)
    return fabric.sm_log()[mark:].count(word)


def repressed(fabric, number, provoke, most):
    times = heard(fabric, fabric.sm_mark(), number, provoke)
    expect(times <= most < 2 * RESENT, "and is not sent on and on:", number, times)


def capabilities(fabric, lid):
    text = fabric.run("H1", "smpquery", "portinfo", lid, "1")
    return int(re.search(r"CapMask:\.*0x(\w+)", text)[1], 16)


def until_name(fabric, lid, name):
    until = time.monotonic() + PATIENCE
    while name not in (found := fabric.run("H1", "saquery", "NR", lid)):
        expect(time.monotonic() < until, "OpenSM has asked again:", found)
        time.sleep(0.2)


def main():
    with Fabric("mesh:2", opensm="-R minhop -s 0") as fabric:
        lid = re.search(r'Hca 1 "H2".*\n\[1\]\t.*?lid (\d+)', fabric.command("Dump"))[1]
        repressed(fabric, 144, lambda: fabric.command('Describe "H2" "another name"'), 4)
        until_name(fabric, lid, "another name")
        expect("another name" in fabric.run("H1", "smpquery", "nodedesc", lid), "the node says so, too")

        client = Client(fabric, "H2", 77)
        expect(not capabilities(fabric, lid) & IS_SM, "no subnet manager at H2")
        repressed(fabric, 144, lambda: client.ask(Client.SET_ISSM, struct.pack("=I", 1)), 4)
        expect(capabilities(fabric, lid) & IS_SM, "now there is one")
        repressed(fabric, 144, client.close, 4)
        expect(not capabilities(fabric, lid) & IS_SM, "and now not")
        clients = []
        repressed(fabric, 144, lambda: clients.append(Client(fabric, "H2", 78, is_sm=True)), 4)
        expect(capabilities(fabric, lid) & IS_SM, "one that says so when it comes")
        clients.pop().close(goodbye=False)
        repressed(fabric, 128, lambda: fabric.command('Unlink "S1"[2]'), 6)
    return 0


if __name__ == "__main__":
    sys.exit(main())
