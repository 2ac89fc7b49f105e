#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""repath fabric check on what stock OpenSM makes: live, from OpenSM's dumps, and from ibnetdiscover
and dump_fts, which must all tell the same; engines that need lanes, and faults put into dumps."""

import glob
import json
import re
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

from bed import NETS, TOP, Fabric, expect

SVG = "{http://www.w3.org/2000/svg}"


def check(fabric, *words, status=0):
    """What the command says as JSON, at host H2."""
    result = subprocess.run([f"{TOP}/build/repath", "-j", "fabric", "check", *words],
                            env=fabric.environment("H2"), cwd=fabric.dir, text=True,
                            capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    expect(result.returncode == status, words, result.returncode, result.stdout, result.stderr)
    return json.loads(result.stdout) if status < 2 else result.stderr


def kinds(found):
    return sorted({fault["kind"] for fault in found["faults"] if fault["wrong"]})


def fabric_of(topology, options):
    return Fabric(topology, opensm=f"{options} -D 0x43")


def the_same_from_everywhere():
    with fabric_of("xgft:3,4/1,2", "-R ftree -Q -l 1") as fabric:
        for name, program in (("net", "ibnetdiscover"), ("tables", "dump_fts")):
            with open(f"{fabric.dir}/{name}", "w", encoding="utf-8") as file:
                file.write(fabric.run("H1", program))
        live = check(fabric, "require", "minimal", "save", "state")
        expect(live["switches"] == 6 and live["hosts"] == 12, live)
        # Two LIDs for each of twelve hosts, all of one length or the other.
        expect(live["paths"] == 12 * 11 * 2 == sum(live["hops"].values()), live)
        expect(live["balance"]["least"] == live["balance"]["most"], "ftree balances", live)
        for words in (["from", "."], ["from", "state"],
                      ["from", "tables", "from", "net", "from", "opensm-sl2vl.dump"],
                      ["from", "opensm.fdbs", "from", "net"]):
            expect(check(fabric, *words) == live, words, "tells the same as", live)


def lanes():
    """A torus needs them: DFSSSP's SLs, which only the subnet manager knows."""
    with fabric_of("torus:4x4", "-R dfsssp -Q") as fabric:
        found = check(fabric, "save", "state")
        expect(found["ok"] and len(found["lanes"]) > 1, found)
        expect(check(fabric, "from", "state") == found, "a file keeps SLs")
        found = check(fabric, "sl", "0", "dot", "loop.dot", status=1)
        expect(kinds(found) == ["credit-loop"], found)
        with open(f"{fabric.dir}/loop.dot", encoding="utf-8") as file:
            drawn = re.findall(r"\[color=red", file.read())
        expect(len(drawn) == sum(map(len, found["credit_loops"])), drawn, found)
        check_picture(fabric, found, len(drawn))


def check_picture(fabric, found, red):
    """Graphviz takes the drawing as it is: all that there is, named, and the loop in red."""
    result = subprocess.run(["dot", "-Tsvg", "loop.dot"], cwd=fabric.dir, capture_output=True, text=True,
                            timeout=60, stdin=subprocess.DEVNULL)
    expect(result.returncode == 0 and not result.stderr, result.returncode, result.stderr)
    svg = ElementTree.fromstring(result.stdout)
    groups = {kind: svg.findall(f".//{SVG}g[@class='{kind}']") for kind in ("node", "edge")}
    names = {"".join(node.itertext()) for node in groups["node"]}
    for name in ("S1", "S16", "H1", "H16"):
        expect(any(name in text for text in names), name, names)
    expect(len(groups["node"]) == found["switches"] + found["hosts"], names)
    expect(len(groups["edge"]) == found["cables"] + red, len(groups["edge"]), found)
    expect(sum(edge.find(f"{SVG}path").get("stroke") == "red" for edge in groups["edge"]) == red > 0, red)


def a_ring():
    """Three hops each way around a ring of five make a cycle each way; up*/down* has none."""
    with fabric_of("torus:5", "-R minhop") as fabric:
        found = check(fabric, "require", "minimal", status=1)
        expect(sorted(map(len, found["credit_loops"])) == [5, 5], found)
    with fabric_of(f"{NETS}/mesh3x2.net", "-R lash -Q") as fabric:
        expect(check(fabric, "require", "symmetric", "require", "minimal")["lanes"] == [0], "LASH")
        mark = fabric.sm_mark()
        fabric.command('Unlink "S2"[3]')
        fabric.wait_sm(mark, "Lanes needed: 2")
        expect(check(fabric, "require", "symmetric")["lanes"] == [0, 1], "LASH after a fault")
        expect(kinds(check(fabric, "sl", "0", status=1)) == ["credit-loop"], "without lanes")


def without_paths():
    """Members of a partition that are all limited have no paths with each other: no credit loops of them, and no
    question that was not answered. A node that does not answer is told of."""
    with Fabric(f"{NETS}/mesh3x2.net", opensm=None) as fabric:
        with open(f"{fabric.dir}/partitions", "w", encoding="utf-8") as file:
            file.write("Default=0x7fff : ALL=limited, SELF=full;\n")
        fabric.start_opensm("-R lash -Q -P partitions")
        mark = fabric.sm_mark()
        fabric.command('Unlink "S2"[3]')
        fabric.wait_sm(mark, "Lanes needed: 2")
        found = check(fabric, "save", "state")
        expect(found["ok"] and found["unanswered"] == 0, found)
        expect(check(fabric, "from", "state") == found, "a file keeps what is no path")
        # Nobody hears H3 and H6.
        for host in ("H3", "H6"):
            fabric.command(f'Fault "{host}"[1] loss=1')
        found = check(fabric, status=1)
        expect("unanswered" in kinds(found) and found["unanswered"], found)
        for host in ("H3", "H6"):
            fabric.command(f'Fault "{host}"[1] loss=0')


def changed(fabric, pattern, with_what):
    """Writes OpenSM's table dump with one change."""
    with open(f"{fabric.dir}/opensm-lfts.dump", encoding="utf-8") as file:
        text, n = re.subn(pattern, with_what, file.read(), count=1)
    expect(n == 1, pattern)
    with open(f"{fabric.dir}/tables", "w", encoding="utf-8") as file:
        file.write(text)


def faults():
    with fabric_of(f"{NETS}/mesh3x2.net", "-R lash") as fabric:
        words = ["from", "opensm-subnet.lst", "from", "tables"]
        s1 = r"(guid 0x0000000000200000 (?:.*\n)+?0x0003) 002"
        changed(fabric, s1, r"\1 255")
        found = check(fabric, *words, status=1)
        expect(kinds(found) == ["management", "unreachable"], found)
        expect("at switch S1, whose table has no entry" in found["faults"][0]["what"],
               found)
        changed(fabric, s1, r"\1 004")
        found = check(fabric, *words, status=1)
        expect("a port without a cable" in found["faults"][0]["what"], found)
        changed(fabric, s1, r"\1 001")
        found = check(fabric, *words, status=1)
        expect("to somebody else" in found["faults"][0]["what"], found)
        # S2 gives back what is for its own host.
        changed(fabric, r"(guid 0x0000000000200005 (?:.*\n)+?0x0003) 001", r"\1 004")
        found = check(fabric, *words, status=1)
        expect(kinds(found) == ["loop", "management", "unreachable"], found)
        expect(found["unreachable"] == 5 and found["loops"] == 1, found)
        expect(re.search(r"S1 port 2 -> S2 port 4 -> S1|S2 port 4 -> S1 port 2 -> S2",
                         found["faults"][0]["what"]), found)
        changed(fabric, s1, r"\1 x")
        error = check(fabric, *words, status=3)
        expect(re.search(r"tables:\d+: this is no entry", error), error)
        error = check(fabric, "from", "opensm-lfts.dump", status=3)
        expect("no cables are told of; name opensm-subnet.lst" in error, error)


def nobody_answers():
    with Fabric(f"{NETS}/mesh3x2.net") as fabric:
        error = check(fabric, status=3)
        expect("there is no subnet manager" in error, error)
        found = check(fabric, "sl", "0", status=1)
        expect("no-lid" in kinds(found), found)


def vfabrics_own():
    """Its tables without a subnet manager reach everybody by the shortest way. Where there are rings they have
    credit loops: its experiments want them."""
    for topology, loops in (("xgft:4,4/1,4", False), ("mesh:3x2,hosts=2", True), ("torus:5x4", True),
                            ("random:20,degree=4,hosts=2,seed=3", True)):
        with Fabric(topology) as fabric:
            fabric.command("Tables minhop")
            found = check(fabric, "sl", "0", "require", "minimal", status=int(loops))
            expect(kinds(found) == ["credit-loop"] * loops, topology, found["faults"])


def stop(process):
    """The signal is one thread's to take: on a busy machine the others go on until it has its turn."""
    process.send_signal(signal.SIGSTOP)
    states = ["R"]
    while set(states) != {"T"}:
        expect(process.poll() is None, "it is there")
        time.sleep(0.001)
        states = []
        for name in glob.glob(f"/proc/{process.pid}/task/*/stat"):
            with open(name, encoding="utf-8") as file:
                states.append(file.read().rpartition(") ")[2][0])


def the_bed_judges():
    """A fabric's tables are judged in every test: what has become wrong is found."""
    with Fabric(f"{NETS}/mesh3x2.net", opensm="-R lash") as fabric:
        expect(not fabric.wrong(), "at first")
        stop(fabric.sm)
        fabric.command('Unlink "S2"[3]')
        found = {fault["kind"] for _, fault in fabric.wrong("sl", "0")}
        expect("unreachable" in found, "OpenSM has not heard of it:", found)
        mark = fabric.sm_mark()
        fabric.sm.send_signal(signal.SIGCONT)
        fabric.wait_sm(mark)


def main():
    the_same_from_everywhere()
    lanes()
    a_ring()
    without_paths()
    faults()
    nobody_answers()
    vfabrics_own()
    the_bed_judges()
    return 0


if __name__ == "__main__":
    sys.exit(main())
