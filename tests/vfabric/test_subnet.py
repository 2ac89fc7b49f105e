#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Stock OpenSM with LASH brings up the papers' 3x2 mesh; stock diagnostics agree; cables move.

Then what ibsim can not do: more than ten clients at once, Reports to subscribers that are not SMs,
and clients that die with MADs under way.
"""

import os
import re
import signal
import subprocess
import sys
import time

from bed import NETS, Fabric, expect


def lids(fabric):
    out = fabric.command("Dump")
    hosts = re.findall(r'Hca 1 "(H\d)".*\n\[1\]\t.*?lid (\d+)', out)
    return {name: int(lid) for name, lid in hosts}


def diagnostics(fabric, lid):
    net = fabric.run("H2", "ibnetdiscover")
    expect(len(re.findall("^Switch", net, re.M)) == 6, "ibnetdiscover finds 6 switches", net)
    expect(len(re.findall("^Ca", net, re.M)) == 6, "and 6 hosts", net)
    links = fabric.run("H3", "iblinkinfo", "--switches-only")
    expect(len(re.findall("Active/  LinkUp", links)) == 6 + 14, "20 switch ports active", links)
    info = fabric.run("H4", "smpquery", "nodeinfo", str(lid["H1"]))
    expect("NodeType:........................Channel Adapter" in info, info)
    expect("H5" in fabric.run("H4", "smpquery", "-D", "nodedesc", "0,1,3,1"), "directed route")
    table = fabric.run("H4", "smpquery", "sl2vl", str(lid["H1"]))
    expect("| 0| 1| 2| 3| 4| 5| 6| 7|" in table.replace(" |", "|").replace("|  ", "| "), table)
    counters = fabric.run("H6", "perfquery", str(lid["H1"]), "1")
    expect(int(re.search(r"PortXmitPkts:\.*(\d+)", counters)[1]) > 10, counters)
    fabric.run("H6", "perfquery", "-R", str(lid["H1"]), "1")
    fabric.command('PerformanceSet "H1"[1] PortCounters.SymbolErrorCounter=77')
    counters = fabric.run("H6", "perfquery", str(lid["H1"]), "1")
    expect("SymbolErrorCounter:..............77" in counters, counters)
    extended = fabric.run("H6", "perfquery", "-x", str(lid["H1"]), "1")
    expect(int(re.search(r"PortUnicastXmitPkts|PortXmitPkts:\.*(\d+)", extended)[1]) > 0, extended)
    path = fabric.run("H2", "saquery", "--src-to-dst", f"{lid['H1']}:{lid['H4']}", check=False)
    expect(f"dlid....................{lid['H4']}" in path, "a path record", path)


def cables(fabric, lid):
    before = fabric.command(f"Route {lid['H2']} {lid['H5']}")
    expect('"S5"[3]' in before, "2-5 takes the middle link", before)
    for act, lanes in (("Unlink", 2), ("ReLink", 1)):
        mark = fabric.sm_mark()
        fabric.command(f'{act} "S2"[3]')
        log = fabric.wait_sm(mark, f"Lanes needed: {lanes}")
        expect("num:128" in log, "a switch told of it by trap 128", log)
        expect(fabric.all_active(), "all ports are active again after", act)
    mark = fabric.sm_mark()
    fabric.command('Down "S4"')
    fabric.wait_sm(mark)
    out = fabric.run("H2", "ibnetdiscover")
    expect('"S4"' not in out and '"H4"' not in out, "a dead switch is gone", out)
    mark = fabric.sm_mark()
    fabric.command('Up "S4"')
    fabric.wait_sm(mark)
    expect(fabric.all_active(), "all ports are active after Up")


def many_clients(fabric, lid):
    """24 attached at once, all of them answered; a third is killed in the middle."""
    running = [subprocess.Popen(
        ["sh", "-c", f"exec perfquery {lid['H1']} 1 1>&2; sleep 5"] if i % 3 else
        ["ibping", "-c", "100000", str(lid["H1"])],
        env=fabric.environment(f"H{i % 6 + 1}"), cwd=fabric.dir, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) for i in range(24)]
    time.sleep(1)
    for process in running[::3]:
        os.kill(process.pid, signal.SIGKILL)
    answers = [process.wait(30) for process in running]
    expect(all(a == 0 for i, a in enumerate(answers) if i % 3), "perfquery answers:", answers)
    fabric.run("H1", "smpquery", "nodeinfo", str(lid["H2"]))
    attached = fabric.command("Attached")
    expect(attached.count("Client") <= 1 + 8, "killed clients are at most known, not more", attached)


def main():
    with Fabric(f"{NETS}/mesh3x2.net", opensm="-R lash") as fabric:
        expect("Lanes needed: 1" in fabric.sm_log(), "LASH takes one lane in the mesh")
        expect(fabric.all_active(), "all ports are active")
        fabric.nothing_wrong()
        lid = lids(fabric)
        expect(len(set(lid.values())) == 6, "six LIDs:", lid)
        diagnostics(fabric, lid)
        cables(fabric, lid)
        many_clients(fabric, lid)
        expect(fabric.server.poll() is None, "vfabric lives")
    return 0


if __name__ == "__main__":
    sys.exit(main())
