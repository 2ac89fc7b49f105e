#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Stock OpenSM with LASH brings up the papers' 3x2 mesh; stock diagnostics agree; cables move.

Then what ibsim can not do: 24 clients at once, also in real time, and clients that die with MADs under
way. (Reports to subscribers that are not SMs: tests/sm/test_notices.py.)
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from bed import NETS, TOP, Fabric, expect


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
    fabric.command('PerformanceSet "H1"[1] PortCounters.SymbolErrorCounter=77')
    fabric.command('PerformanceSet "H1"[1] PortCounters.PortXmitPkts=100000')
    counters = fabric.run("H6", "perfquery", str(lid["H1"]), "1")
    expect("SymbolErrorCounter:..............77" in counters, counters)
    fabric.run("H6", "perfquery", "-R", str(lid["H1"]), "1")
    counters = fabric.run("H6", "perfquery", str(lid["H1"]), "1")
    expect("SymbolErrorCounter:..............0" in counters, "reset", counters)
    expect(int(re.search(r"PortXmitPkts:\.*(\d+)", counters)[1]) < 1000, "and counts anew", counters)
    every_port(fabric)
    extended = fabric.run("H6", "perfquery", "-x", str(lid["H1"]), "1")
    expect(int(re.search(r"PortUnicastXmitPkts|PortXmitPkts:\.*(\d+)", extended)[1]) > 0, extended)
    path = fabric.run("H2", "saquery", "--src-to-dst", f"{lid['H1']}:{lid['H4']}", check=False)
    expect(f"dlid....................{lid['H4']}" in path, "a path record", path)


def every_port(fabric):
    """All ports of a switch at once: what one of them alone says is in the sum, of both attributes."""
    switch = re.search(r'Switch \d+ "S2".*\n#\tlid (\d+)', fabric.command("Dump"))[1]
    fabric.command('PerformanceSet "S2"[2] PortCounters.PortXmitPkts=3000000')
    for words in (("perfquery", "-x", switch, "255"), ("perfquery", switch, "255")):
        counters = fabric.run("H6", *words)
        expect(3000000 < int(re.search(r"PortXmitPkts:\.*(\d+)", counters)[1]) < 3100000, words, counters)


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


# A program on libibmad that asks one port until it is told to end, and says how often it was answered.
ASKER = """
import ctypes, select, sys
mad = ctypes.CDLL("libibmad.so.5")
mad.mad_rpc_open_port.restype = mad.smp_query_via.restype = ctypes.c_void_p
port = mad.mad_rpc_open_port(None, 0, (ctypes.c_int * 1)(1), 1)
target, answer = (ctypes.c_int * 128)(int(sys.argv[1])), ctypes.create_string_buffer(64)
answered = failed = 0
print("in" if port else "refused", flush=True)
while not select.select([sys.stdin], [], [], 0.01)[0]:
    ok = mad.smp_query_via(answer, target, 0x11, 0, 2000, ctypes.c_void_p(port))
    guid = int.from_bytes(answer.raw[12:20], "big")
    answered += bool(ok) and guid == int(sys.argv[2], 16)
    failed += not ok or guid != int(sys.argv[2], 16)
print(answered, failed, flush=True)
"""
CLIENTS = 24


def many_clients(fabric, lid):
    """24 attached at the same time, all of them answered with what they asked for; a third is killed in
    the middle, and the others do not notice."""
    guid = dict(re.findall(r'Hca 1 "(H\d)"\tnodeguid (\w+)', fabric.command("Dump")))
    running = []
    try:
        for i in range(CLIENTS):
            target = f"H{i % 5 + 1}"
            running.append(subprocess.Popen(
                [sys.executable, "-c", ASKER, str(lid[target]), guid[target]], text=True,
                env=fabric.environment(f"H{i % 6 + 1}"), cwd=fabric.dir, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, stdin=subprocess.PIPE))
        said = [process.stdout.readline().strip() for process in running]
        expect(said == ["in"] * CLIENTS, "all are let in:", said)
        attached = fabric.command("Attached")
        found = {int(pid) for pid in re.findall(r"pid (\d+)", attached)}
        expect(found >= {process.pid for process in running}, "all are attached at once", attached)
        for process in running[::3]:
            os.kill(process.pid, signal.SIGKILL)
        for process in running[::3]:
            process.wait()
        alive = [process for i, process in enumerate(running) if i % 3]
        stay = {process.pid for process in (fabric.sm, *alive)}
        attached = fabric.command("Attached")
        expect({int(pid) for pid in re.findall(r"pid (\d+)", attached)} == stay, "the others stay", attached)
        time.sleep(1)
        for process in alive:
            process.stdin.write("\n")
            process.stdin.flush()
        answers = [process.stdout.readline().split() for process in alive]
        expect(all(int(n) >= 10 and failed == "0" for n, failed in answers), "all answered:", answers)
        for process in alive:
            expect(process.wait(30) == 0, "and they end:", process.returncode)
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
    fabric.run("H1", "smpquery", "nodeinfo", str(lid["H2"]))
    attached = fabric.command("Attached")
    expect(attached.count("Client") == 1 and f"pid {fabric.sm.pid} " in attached, "OpenSM is left", attached)


MIXED = """Switch 4 "left" # "the left one"
[1] "a"[1] w=1 s=1
[2] "a"[2] w=8 s=2
[3] "right"[1] e=2
[4] "right"[2] w=16 s=4

Switch 6 "right" # "a b, c's" enhanced port 0
[3] "b"[1] e=8
[6] "right"[5] s=2

Hca 2 "a"

Hca 1 "b"
"""


def shape(fabric, topology):
    """Nodes and cables of a topology by GUID."""
    nodes, cables, guids = set(), set(), {}
    written = fabric.run("a", f"{TOP}/build/vfabric/vfabric", "-w", topology)
    found = re.findall(r'guid=(0x\w+)\n(\w+)\t(\d+) "([^"]+)"\t# "([^"]*)".*\n((?:\[.*\n)*)', written)
    for guid, kind, ports, name, description, _ in found:
        nodes.add((guid, kind, ports, description))
        guids[name] = guid
    for guid, *_, lines in found:
        for port, peer, peer_port, rate in re.findall(r'\[(\d+)\]\t"([^"]+)"\[(\d+)\]\t(.*)', lines):
            cables.add((guid, port, guids[peer], peer_port, rate))
    return nodes, cables


def read_back():
    """What ibnetdiscover prints of a fabric is that fabric again: nodes, cables and rates."""
    with tempfile.TemporaryDirectory(prefix="vfabric-") as where:
        with open(f"{where}/mixed", "w", encoding="ascii") as file:
            file.write(MIXED)
        with Fabric(f"{where}/mixed", opensm="-R minhop", sm_host="a") as fabric:
            with open(f"{where}/printed", "w", encoding="ascii") as file:
                file.write(fabric.run("b", "ibnetdiscover"))
            first = shape(fabric, f"{where}/mixed")
            again = shape(fabric, f"{where}/printed")
        expect(len(first[0]) == 4 and len(first[1]) == 2 * 6, "all of it:", first)
        expect(first == again, "the same:", first, again)
        with Fabric(f"{where}/printed", opensm="-R minhop", sm_host="a") as fabric:
            expect(fabric.all_active(), "a subnet again")
            with open(f"{where}/third", "w", encoding="ascii") as file:
                file.write(fabric.run("b", "ibnetdiscover"))
            expect(shape(fabric, f"{where}/third") == first, "and once more")


def many_consoles(fabric):
    """24 at once, each with a line begun before any of them ends; each gets its own answer."""
    consoles = [socket.socket(socket.AF_UNIX) for _ in range(CLIENTS)]
    for i, console in enumerate(consoles):
        console.settimeout(30)
        console.connect(f"{fabric.dir}/control")
        console.sendall(f'Dump "H{i % 6 + 1}'.encode())
    for console in consoles:
        console.sendall(b'"\n')
    for i, console in enumerate(consoles):
        with console, console.makefile("r", encoding="utf-8") as reader:
            answer = "".join(iter(reader.readline, "ok\n"))
        expect(f'Hca 1 "H{i % 6 + 1}"' in answer and answer.count("Hca") == 1, i, answer)


def main():
    read_back()
    with Fabric(f"{NETS}/mesh3x2.net", opensm="-R lash") as fabric:
        expect("Lanes needed: 1" in fabric.sm_log(), "LASH takes one lane in the mesh")
        expect(fabric.all_active(), "all ports are active")
        lid = lids(fabric)
        expect(len(set(lid.values())) == 6, "six LIDs:", lid)
        diagnostics(fabric, lid)
        cables(fabric, lid)
        many_clients(fabric, lid)
        many_consoles(fabric)
        expect(fabric.server.poll() is None, "vfabric lives")
    with Fabric(f"{NETS}/mesh3x2.net", "-r", opensm="-R lash") as fabric:
        many_clients(fabric, lids(fabric))
        many_consoles(fabric)
        expect(fabric.server.poll() is None, "and in real time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
