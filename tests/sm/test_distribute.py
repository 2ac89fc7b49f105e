#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tables that are distributed in any order deadlock a loaded fabric for good; in the plan's they do
not. In virtual time; seeds, and switches that come or go, are those where it happens. And the plugin
in OpenSM distributes in each of these ways."""

import json
import re
import subprocess
import sys

from bed import TOP
from managed import Managed, expect, until

DEADLOCKS = (("16", "1", "add", "1"), ("16", "2", "remove", "4"), ("24", "7", "add", "9"),
             ("12", "10", "add", "1"))


def distribute(*arguments):
    text = subprocess.run([f"{TOP}/build/tests/sm/distribute", *arguments], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return json.loads(text)


def discarded(fabric):
    """Turns that the fabric itself discards, at the switches that are there."""
    found = 0
    for ports, lid in re.findall(r'Switch (\d+) "S\d+"\tnodeguid [0-9a-f]+\n#\tlid (\d+)',
                                 fabric.command("Dump")):
        for port in range(1, int(ports) + 1):
            text = fabric.run("H1", "smpquery", "sl2vl", lid, str(port))
            found += sum(set(row) == {"15"} for row in
                         (re.findall(r"\d+", line.split(":")[2]) for line in text.splitlines()
                          if line.startswith("ports:")))
    return found


def in_opensm(how):
    with Managed("random:12,degree=3,hosts=1,seed=3", "-R updown,no_fallback -Q", distribute=how,
                 distribute_wait=100) as fabric:
        def status():
            return fabric.status()["distribute"]

        until(lambda: fabric.reached(12), how, fabric.command("Dump"))
        for command, hosts in (('Down "S5"', 11), ('Up "S5"', 12)):
            before = status()["distributions"]
            fabric.command(command)
            until(lambda: status()["distributions"] > before and fabric.reached(hosts), how, command)
        fabric.check(host="H1")
        expect(status()["failed"] == status()["refused"] == 0, how, status())
        # It is of the last that had something to set, though OpenSM has routed once more since.
        routings = fabric.status()["paths"]["routings"]
        fabric.command('Down "H3"')
        until(lambda: fabric.reached(11), how, "H3")
        until(lambda: fabric.status()["paths"]["routings"] > routings, how)
        expect(status()["last_smps"] > 0 and status()["last_us"] > 20, how, status())
        if how == "turns":
            until(lambda: 0 < status()["discarded"] == discarded(fabric), status())


def refused():
    """Tables that go down and up again are OpenSM's to distribute, and all where lanes are not set: nothing stays
    discarded."""
    with Managed("torus:6", "-R minhop -Q", distribute="turns") as fabric:
        expect("OpenSM distributes the tables itself: the new routes go down and up again" in
               "".join(fabric.plugin_log()), *fabric.plugin_log())
        expect(not discarded(fabric), "as without")
    with Managed("torus:6", "-R updown,no_fallback", distribute="turns") as fabric:
        expect("OpenSM distributes the tables itself: turns needs QoS (opensm -Q)" in "".join(fabric.plugin_log()),
               *fabric.plugin_log())
        found = fabric.status()["distribute"]
        expect(found["refused"] and not found["distributions"] and not discarded(fabric), "as without", found)


def papers_order():
    """Figures 2 and 3: of each switch that is added, a quarter of the load, SMPs of whole tables, how long they take
    and what is lost. Static far above ports, these above turns, which are near dynamic."""
    size, smps, us, lost = 16, {}, {}, {}
    for how in ("static", "ports", "turns", "dynamic"):
        found = [distribute(str(size), "1", "add", str(switch), how, "25", "1024") for switch in range(size)]
        smps[how], us[how], lost[how] = (sum(one[what] for one in found) / size for what in ("smps", "us", "lost"))
    print("SMPs", smps, "us", us, "lost", lost)
    for what in smps, us, lost:
        expect(what["static"] > 1.4 * what["ports"] and what["ports"] > what["turns"] > what["dynamic"], what)
    for what in smps, us:
        expect(what["turns"] < 1.1 * what["dynamic"], what)
    expect(lost["turns"] < lost["ports"] / 10, lost)


def main():
    papers_order()
    refused()
    for how in ("turns", "ports", "static"):
        in_opensm(how)
    for change in DEADLOCKS:
        got = distribute(*change, "dynamic", "0")
        expect(got["deadlock"] > 1, change, got)
        for how in ("static", "ports", "turns"):
            got = distribute(*change, how, "0")
            expect(not got["deadlock"] and got["smps"] > got["lft"] > 0, change, got)
    return 0


if __name__ == "__main__":
    sys.exit(main())
