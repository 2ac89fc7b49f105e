#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Traps by what raises them, to stock OpenSM, which represses them: 128 by a cable, 144 by a program that
turns into a subnet manager or ends, and by another NodeDescription, LinkWidthEnabled or LinkSpeedEnabled; 256 by
a program without the M_Key that OpenSM has set.
(131, by an HCA that is silent, is in test_wire.py.)
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


def enabled(fabric, lid):
    """What is enabled at a host's and a switch's port changes: OpenSM is told what, by the switch's LID. (It sets
    the speeds that it wants at once, so of them there is nothing else to see.)"""
    text = fabric.run("H1", "smpquery", "portinfo", lid, "1")
    expect(re.search(r"LinkWidthEnabled:\.*1X or 4X\n", text), "both to begin with", text)
    switch = re.search(r'Switch \d+ "S1".*\n#\tlid (\d+)', fabric.command("Dump"))[1]
    for port, at, what, flags in (('"H2"[1]', (lid, "1"), "width=1", 2), ('"H2"[1]', (lid, "1"), "speed=1", 4),
                                  ('"S1"[2]', (switch, "2"), "width=1 speed=3", 6)):
        mark = fabric.sm_mark()
        repressed(fabric, 144, lambda: fabric.command(f"Enable {port} {what}"), 4)
        said = fabric.sm_log()[mark:]
        expect(re.search(rf"from LID {at[0]},.*ChangeFlags 0x{flags:04x}", said), port, what, said)
        text = fabric.run("H1", "smpquery", "portinfo", *at)
        expect(re.search(r"LinkWidthEnabled:\.*1X\n", text), "the port says so, too", text)


def wrong_key():
    """Nobody reads but OpenSM, which is told of who tries, and not of itself; cables move all the same."""
    with Fabric("mesh:2") as fabric:
        fabric.judged = False
        with open(f"{fabric.dir}/conf", "w", encoding="ascii") as file:
            file.write("m_key 0x77\nm_key_protection_level 2\nm_key_lease_period 60\n")
        fabric.start_opensm(f"-R minhop -s 0 -F {fabric.dir}/conf")
        expect(fabric.all_active(), "a subnet with an M_Key")
        client = Client(fabric, "H1", 77)
        repressed(fabric, 256, lambda: client.get(5, 0x11, 1, 2, 3), 8)
        expect(fabric.sm_log().count("num:256") >= 1, "trap 256")
        client.close()
        for line in ('Unlink "S1"[2]', 'ReLink "S1"[2]'):
            mark = fabric.sm_mark()
            fabric.command(line)
            fabric.wait_sm(mark)
        expect(fabric.all_active(), "all ports are active again")


def main():
    wrong_key()
    with Fabric("mesh:2", opensm="-R minhop -s 0") as fabric:
        lid = re.search(r'Hca 1 "H2".*\n\[1\]\t.*?lid (\d+)', fabric.command("Dump"))[1]
        repressed(fabric, 144, lambda: fabric.command('Describe "H2" "another name"'), 4)
        until_name(fabric, lid, "another name")
        expect("another name" in fabric.run("H1", "smpquery", "nodedesc", lid), "the node says so, too")
        enabled(fabric, lid)

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
