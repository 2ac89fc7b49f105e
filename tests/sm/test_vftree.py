#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""vFtree in stock OpenSM: path records have the lanes that its paper's algorithm gives, switches and
hosts are set to them, and a fat tree that loses links is routed as one. What is no tree any more
keeps the tables that it had."""

import json
import re
import sys
import time

from managed import Failed, Managed, expect

PATIENCE = 30

LANES, PORTS = 3, 8
TREE = f"tree:{PORTS},2"
HOSTS, LEAVES = PORTS * PORTS // 2, PORTS


def eventually(check, *what):
    """Each cable has two ends that report it, and a sweep may come late."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return check(*what)
        except (SystemExit, Failed):
            if time.monotonic() > until:
                raise
            time.sleep(0.3)


def says(fabric, *texts):
    log = fabric.sm_log()
    for text in texts:
        expect(text in log, text, log[-3000:])


def paper(maxvl, leaves=LEAVES):
    """Algorithm 1."""
    lane = [[0] * leaves for _ in range(leaves)]
    for source in range(leaves):
        vl = source * 2 % maxvl + (source * 2 // maxvl) % 2
        for to in range(source + 1, leaves):
            lane[source][to] = lane[to][source] = vl
            vl = (vl + 1) % maxvl
    return lane


def leaf(host):
    return (host - 1) // (PORTS // 2)


def service_level(fabric, a, b):
    return int(fabric.command(f'Flow "H{a}" "H{b}" sl=sa stop=1').split()[1])


def check_lanes(fabric):
    lane = paper(LANES)
    for a, b in ((1, 2), (1, 5), (5, 1), (1, 9), (1, 13), (8, 29), (30, 7), (17, 25), (32, 1)):
        found = service_level(fabric, a, b)
        expect(found == lane[leaf(a)][leaf(b)], f"H{a} to H{b}: service level {found}")


def check_tables(fabric):
    """An SL that is a lane's is that VL, out of hosts and between ports of switches."""
    dump = fabric.command("Dump")
    lids = dict(re.findall(r'Hca 1 "(\w+)".*\n\[1\]\t.*?\tlid (\d+)', dump))
    for lid, port in ((lids["H9"], 1), *((lid, 5) for lid in switch_lids(fabric))):
        text = fabric.run("H1", "smpquery", "sl2vl", lid, str(port))
        rows = re.findall(r"in *\d+, out *\d+: \|(.*)\|", text)
        expect(rows, text)
        for row in rows:
            expect([int(vl) for vl in row.split("|")][:8] == list(range(8)), text)


def switch_lids(fabric):
    """Of a leaf and a spine."""
    dump = fabric.command("Dump")
    found = dict(re.findall(r'Switch \d+ "(L\d-1)".*\n#\s+lid (\d+)', dump))
    return found["L1-1"], found["L2-1"]


def arrives(fabric, hosts):
    """Walks from each host to each by the tables that are set."""
    dump = fabric.command("Dump")
    lid = dict(re.findall(r'Hca 1 "(\w+)".*\n\[1\]\t.*?\tlid (\d+)', dump))
    for a in hosts:
        for b in hosts:
            if a == b:
                continue
            way = fabric.command(f'Route {lid[f"H{a}"]} {lid[f"H{b}"]}')
            expect(f'To "H{b}"' in way, way)
            nodes = re.findall(r'-> "(L\d)-', way)
            expect(nodes in (["L1"], ["L1", "L2", "L1"]), f"up and down: {way}")


def hot_spot(lanes):
    """What a host receives when each sends a fifth of its packets to one of them, Gbit/s."""
    with Managed(TREE, "-R vftree,no_fallback -Q", vftree_lanes=lanes) as fabric:
        fabric.command('Hotspot "H1" 20 sl=sa')
        fabric.command("Advance 300")
        fabric.command("Measure")
        fabric.command("Advance 500")
        return json.loads(fabric.command("Results json"))["gbps"] / HOSTS


def without_a_leaf():
    """Leaves behind it are counted anew: the plugin finds each path whose lane is another one."""
    lost = 2
    before, after = paper(LANES), paper(LANES, LEAVES - 1)
    stay = [leaf for leaf in range(LEAVES) if leaf != lost]
    changed = sum(before[a][b] != after[i][k] for i, a in enumerate(stay) for k, b in enumerate(stay))
    with Managed(TREE, "-R vftree,no_fallback -Q", vftree_lanes=LANES) as fabric:
        for port in range(PORTS // 2 + 1, PORTS + 1):
            mark = fabric.sm_mark()
            fabric.command(f'Unlink "L1-{lost + 1}"[{port}]')
            fabric.wait_sm(mark)

        def told():
            found = fabric.status()["paths"]["paths"]
            expect(changed and found >= changed * (PORTS // 2) ** 2, found, "paths changed of", changed)

        eventually(told)
        for a, b in ((1, 5), (1, 17), (30, 7), (17, 25), (32, 1)):
            at, to = stay.index(leaf(a)), stay.index(leaf(b))
            found = service_level(fabric, a, b)
            expect(found == after[at][to], f"H{a} to H{b}: service level {found}")


def fewer_lanes():
    """The administrator takes lanes from OpenSM while they are in use, and gives them back."""
    with Managed(TREE, "-R vftree,no_fallback -Q", vftree_lanes=LANES) as fabric:
        before = fabric.tables()
        for most, refused in ((1, True), (5, False)):
            said = fabric.let_use(most)
            expect((f"vftree: cannot route: vftree_lanes is {LANES}, and a link between switches has 1 data VLs; "
                    "the routing before it stays in force" in said) == refused, most, said)
            expect(("cannot route" in said) == refused, most, said)
            expect(fabric.tables() == before, most, "tables stay")
            check_lanes(fabric)


class TooMany(Managed):
    """400 hosts with 128 LIDs each are more than LIDs; the last 60 come later."""
    judged = False      # those without a LID are wrong

    def start_opensm(self, options):
        self.later("Down")
        return super().start_opensm(options)

    def later(self, what):
        for host in range(341, 401):
            self.command(f'{what} "H{host}"')

    def entries(self):
        """By switch: the port of each LID."""
        tables = re.findall(r'Switch \d+ "([^"]+)".*\n.*\n(.*)\n', self.command("Dump"))
        return {name: dict(re.findall(r"\[(\d+)\](\d+)", text)) for name, text in tables}

    def lids(self):
        return re.findall(r'Hca 1 "H\d+".*\n\[1\]\t.*?\tlid ([1-9]\d*)', self.command("Dump"))


def lids_run_out():
    """OpenSM says so. Who got one is routed; all that there were keep their ways."""
    with TooMany("xgft:20,20/1,2", "-R vftree,no_fallback -Q -l 7", method="wildcard") as fabric:
        old, before = fabric.lids(), fabric.entries()
        expect(len(old) == 340, len(old))
        mark = fabric.sm_mark()
        fabric.later("Up")

        def only_lids_are_missing():
            expect("OPENSM RAN OUT OF LIDS" in fabric.sm_log()[mark:] and len(fabric.lids()) > 350,
                   fabric.sm_log()[-2000:])
            found = json.loads(fabric.repath_fabric_check("H1", "sl", "0").stdout)
            expect({fault["kind"] for fault in found["faults"] if fault["wrong"]} == {"no-lid"}, found["faults"])

        eventually(only_lids_are_missing)
        after = fabric.entries()
        moved = {(name, lid) for name, ports in before.items() for lid in old if after[name][lid] != ports[lid]}
        expect(not moved and "cannot route" not in fabric.sm_log(), moved)


def opensms_own():
    """ftree gives up with the first cable that is lost."""
    with Managed(TREE, "-R ftree -Q") as fabric:
        expect("ftree tables configured" in fabric.sm_log(), fabric.sm_log()[-1000:])
        mark = fabric.sm_mark()
        fabric.command('Unlink "L1-1"[5]')
        fabric.wait_sm(mark, "minhop tables configured")


def main():
    with Managed(TREE, "-R vftree,no_fallback -Q", vftree_lanes=LANES) as fabric:
        check_lanes(fabric)
        check_tables(fabric)
        found = fabric.check("minimal", "symmetric")
        expect(found["lanes"] == list(range(LANES)), found)
        expect(found["balance"]["least"] == found["balance"]["most"], found)
        hosts = (1, 2, 6, 12, 18, 31)
        arrives(fabric, hosts)
        # Two leaves lose a cable each, to different spines.
        for cable in ('"L1-1"[5]', '"L1-4"[7]'):
            mark = fabric.sm_mark()
            fabric.command(f"Unlink {cable}")
            fabric.wait_sm(mark, "vftree tables configured")
        eventually(arrives, fabric, hosts)
        eventually(fabric.check, "minimal", "symmetric")
        check_lanes(fabric)
        # The two have no spine in common any more.
        for cable in ('"L1-1"[7]', '"L1-4"[5]', '"L1-1"[6]'):
            mark = fabric.sm_mark()
            fabric.command(f"Unlink {cable}")
            fabric.wait_sm(mark)
        eventually(arrives, fabric, hosts)
        expect("cannot route" not in fabric.sm_log(), fabric.sm_log())
        fabric.judged = False
        fabric.command('Unlink "L1-4"[8]')
        eventually(says, fabric, "vftree: cannot route: no tree: no way leads up and then down from L1-",
                   "the routing before it stays in force")
        expect("minhop" not in fabric.sm_log(), fabric.sm_log())
        arrives(fabric, (6, 18, 31))

    with Managed("mesh:3x2", "-R vftree -Q") as fabric:
        says(fabric, "vftree: cannot route: no tree: S1 and S2 are neighbours on the same level",
             "minhop tables configured")

    with Managed(TREE, "-R vftree -Q", vftree_lanes=12) as fabric:
        says(fabric, "vftree_lanes is 12, and a link between switches has 8 data VLs")
    fewer_lanes()
    without_a_leaf()
    lids_run_out()
    opensms_own()
    one = hot_spot(1)
    four = hot_spot(4)
    # With one lane all sources together have what the hot spot's link lets them: five times it.
    expect(one < 1.05 * 32 * 5 / HOSTS, "one lane:", one)
    expect(four > 2 * one, "four lanes:", four, "beside one:", one)
    return 0


if __name__ == "__main__":
    sys.exit(main())
