#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""OpenSM distributes tables while a switch goes and comes back, and after every SMP that arrives at a switch
nobody can wait for himself (replay.py): in each way but plain dynamic, in which somebody can, and also with SMPs
that are lost, sent again and overtaken. A distributor that leaves one SLtoVL table out is caught, and one that puts back too
early what was discarded. With LONG=1 each other switch goes and comes back, too, and a distributor that waits for no
packets is caught."""

import os
import re
import sys
import time

from managed import TOP, Managed, expect, until
from replay import Replay

TOPOLOGY = "random:12,degree=3,hosts=1,seed=10"
CHANGING = "S2"
HOSTS = 12
ROOM = 100000
GONE_MS = 100       # how long the distributor waits for packets, and the replay after an SMP
LONG_GONE_MS = 3000 # longer than the switch is away
DISCARD = " " + 16 * "0f"
OPENSM_LOOKS_AGAIN = "transaction_timeout 100"
FAULTS = "loss=0.01 reorder=0.2 window=3000000"
WITHOUT = "loss=0 reorder=0"


class Wrong(Managed):
    """With a distributor that leaves out one table, or its waits."""

    left_out = ""

    def environment(self, host):
        return dict(super().environment(host), LEFT_OUT=self.left_out)


def quiet(fabric):
    """The journal, when nothing more comes into it."""
    last = ""
    while (text := fabric.command("Journal")) != last:
        last = text
        time.sleep(0.5)
    return text


def at_end(replay, fabric):
    """The tables that come out are those that there are: nothing has been missed."""
    fabric.command(f"Journal {ROOM}")
    now = Replay(fabric.command("Journal"), 0)
    now.run()
    for what in ("tables", "top", "turns", "state", "peer"):
        expect(getattr(now, what) == getattr(replay, what), what, getattr(now, what), getattr(replay, what))


def change(how, faults="", made=Managed, changing=CHANGING, gone_ms=GONE_MS, **options):
    """The switch goes and comes back: (journal, what the replay finds in it, GUIDs of switches)."""
    with made(TOPOLOGY, "-R updown,no_fallback -Q", distribute=how, distribute_wait=gone_ms,
              conf=OPENSM_LOOKS_AGAIN, **options) as fabric:
        fabric.judged = False       # while nothing is journalled it would ask for nothing new
        until(lambda: fabric.reached(HOSTS), how)
        fabric.command(f"Journal {ROOM}")
        nodes = dict(re.findall(r'Switch \d+ "(S\d+)"\tnodeguid ([0-9a-f]+)', fabric.command("Dump")))
        for faulty in nodes if faults else ():
            fabric.command(f'Fault "{faulty}" {faults}')
        for word, hosts in (("Down", HOSTS - 1), ("Up", HOSTS)):
            before = fabric.status()["distribute"]["distributions"]
            fabric.command(f'{word} "{changing}"')
            until(lambda: fabric.status()["distribute"]["distributions"] > before and
                  fabric.reached(hosts), how, word)
        for faulty in nodes if faults else ():
            fabric.command(f'Fault "{faulty}" {WITHOUT}')
        mads = dict(re.findall(r"(lost|late) (\d+)", fabric.command("Smps")))
        if faults:
            expect(int(mads["lost"]) > 10 and int(mads["late"]) > 100, how, mads)
        journal = quiet(fabric)
        replay = Replay(journal, gone_ms * 1000)
        found = replay.run()
        if not found:
            at_end(replay, fabric)
        print(how, mads, len(journal.splitlines()), found, flush=True)
        return journal, found, nodes


def lanes_are_kept(journal):
    """What is discarded no more is in the lanes of the others, at once."""
    rows = {line.rsplit(" ", 1)[1] for line in journal.splitlines() if " turn " in line}
    expect(rows == {DISCARD.strip(), bytes(sl % 8 if sl < 15 else 7 for sl in range(16)).hex()}, rows)


def missed(journal):
    """Which of the SLtoVL tables that discard, if it were not sent, would let somebody wait for himself."""
    lines = journal.splitlines()
    return [lines[i] for i in range(len(lines))
            if lines[i].endswith(DISCARD) and not lines[i].startswith("0 ") and
            Replay(journal, GONE_MS * 1000, without=[i]).run()]


def others(switches):
    Wrong.left_out = "waits"
    for how in ("turns", "ports"):
        _, found, _ = change(how, made=Wrong, plugin=f"{TOP}/build/sm/left_out")
        expect(found, how, "does not wait")
    # OpenSM is at the first.
    for switch in sorted(set(switches) - {CHANGING, "S1"}):
        for how in ("turns", "ports", "static"):
            _, found, _ = change(how, changing=switch)
            expect(not found, how, switch, found)


def main():
    journal, found, nodes = change("turns")
    expect(not found, found)
    lanes_are_kept(journal)
    needed = missed(journal)
    expect(needed, "all of the SLtoVL tables could be left out")
    print(f"needed: {len(needed)} SLtoVL tables", flush=True)

    switch, into, out = re.search(r'turn "(S\d+)" (\d+) (\d+)', needed[0]).groups()
    Wrong.left_out = f"{nodes[switch]},{into},{out}"
    _, found, _ = change("turns", made=Wrong, plugin=f"{TOP}/build/sm/left_out")
    expect(found, "without", needed[0])
    # What the first tables have sent on may still be there when the second ones go: only discards stop it.
    Wrong.left_out = "order"
    _, found, _ = change("turns", made=Wrong, plugin=f"{TOP}/build/sm/left_out", gone_ms=LONG_GONE_MS)
    expect(found, "SLtoVL tables are put back too early")
    _, found, _ = change("turns", gone_ms=LONG_GONE_MS)
    expect(not found, found)

    _, found, _ = change("dynamic")
    expect(found, "tables in any order")
    for how in ("turns", "ports", "static"):
        _, found, _ = change(how, FAULTS)
        expect(not found, how, found)
    if os.environ.get("LONG"):
        others(nodes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
