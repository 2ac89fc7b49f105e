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
    """Tables that go down and up again are OpenSM's to distribute; nothing stays discarded."""
    with Managed("torus:6", "-R minhop -Q", distribute="turns") as fabric:
        expect("OpenSM distributes the tables itself: the new routes go down and up again" in
               "".join(fabric.plugin_log()), *fabric.plugin_log())
        expect(not discarded(fabric), "as without")


def main():
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
