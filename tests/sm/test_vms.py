#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""VMs move with their LIDs on stock OpenSM: entries change places, nothing is routed; what the plugin says
that it sends is what is on the wire; heavy sweeps change nothing of it, with any engine."""

import json
import random
import re
import sys
import time

from managed import NETS, Failed, expect
from vms import GUIDS, PATIENCE, PORT, TABLE, Orchestrated, Talk, all_reached, guid_of, has_guid, reached

MOVES = 1000
PACKETS = 20000         # a second, to VMs that move
BLOCK = 64


def tables(nodes):
    return {name: node[3] for name, node in nodes.items() if node[3] is not None}


def one_move(fabric, a, b, how, tables_now):
    """Moves; tables_now and the counts are what a swap makes of them."""
    found = fabric.say(f"move {a} {b} {how}")
    switches = smps = 0
    for table in tables_now.values():
        if table.get(a) == table.get(b):
            continue
        table[a], table[b] = table.get(b), table.get(a)
        switches += 1
        smps += 1 + (a // BLOCK != b // BLOCK)
    return found, switches, smps


def table_one(topology, size, switches):
    """Table I: 1000 random moves, as the paper's one VM on each host, while a host at each leaf that stays talks to
    all others."""
    with Orchestrated(topology, "-R ftree", vfabric=("-r",)) as fabric:
        fabric.settle()
        nodes = fabric.nodes()
        wanted, lids = tables(nodes), fabric.lids()
        place = {lid: name for name, lid in lids.items()}
        expect(len(lids) == size and len(wanted) == switches, len(lids), len(wanted))
        rng = random.Random(size)
        leaf = {name: node[1][1][0] for name, node in nodes.items() if node[3] is None}
        staying = sorted(({leaf[name]: name for name in lids} | {leaf[fabric.sm_host]: fabric.sm_host}).values())
        moving = sorted(lid for name, lid in lids.items() if name not in staying)
        talk = Talk(fabric, staying, {lid: place[lid] for lid in moving}, PACKETS)
        computed = fabric.status()["vms"]["computed"]
        before, total = fabric.smps(), 0
        for _ in range(MOVES):
            a, b = rng.sample(moving, 2)
            found, touched, smps = one_move(fabric, a, b, "", wanted)
            expect((found["switches"], found["smps"]) == (touched, smps), a, b, found, touched, smps)
            expect(1 <= touched <= switches and smps <= 2 * switches, found)
            place[a], place[b] = place[b], place[a]
            talk.moved(a, b)
            total += smps
        sent = fabric.sent(before)
        print(topology, talk.end(), flush=True)
        expect(sent[TABLE] == total and sent[PORT] == 2 * MOVES, sent, total)
        after = fabric.nodes()
        expect(tables(after) == wanted, "tables are those of before, with LIDs in other places")
        expect({node[2]: name for name, node in after.items() if node[3] is None} == place)
        all_reached(after)
        before = fabric.smps()
        fabric.sweep()
        expect(not fabric.sent(before).get(TABLE), "a sweep sets no table", fabric.sent(before))
        expect(not fabric.sent(before).get(PORT), "a sweep sets no LID", fabric.sent(before))
        expect(fabric.status()["vms"]["computed"] == computed, "nothing is routed")


def limited():
    """One SMP inside of a leaf, but those of the vSwitches; and several moves at once."""
    with Orchestrated("xgft:6,6/1,6,vswitch=2", "-R ftree") as fabric:
        fabric.settle()
        lids, before = fabric.lids(), fabric.smps()
        pairs = [(f"H{6 * leaf + 1}v1", f"H{6 * leaf + 2}v2") for leaf in range(6)]
        found = fabric.say_all(f"move {lids[a]} {lids[b]} limited" for a, b in pairs)
        for answer in found:
            expect(answer.get("switches") == 1 and answer["smps"] <= 2 and
                   answer["vswitch_smps"] <= 4, answer)
        expect(fabric.sent(before)[TABLE] ==
               sum(answer["smps"] + answer["vswitch_smps"] for answer in found), fabric.sent(before))
        expect(fabric.status()["vms"]["at_once"] == 6, fabric.status()["vms"])
        # Beyond a leaf: its switches, and all that are above it. Nobody else.
        lids = fabric.lids()
        answer = fabric.say(f"move {lids['H3v1']} {lids['H31v1']} limited")
        expect(answer["switches"] == 6 + 2, answer)
        rng = random.Random(1)
        names = sorted(name for name in lids if "v" in name)
        for _ in range(100):
            a, b = rng.sample(names, 2)
            lids = fabric.lids()
            fabric.say(f"move {lids[a]} {lids[b]} limited")
        all_reached(fabric.nodes())
        fabric.check("minimal")
        before = fabric.smps()
        fabric.sweep()
        expect(not fabric.sent(before).get(TABLE), fabric.sent(before))


def routed(how):
    """SMPs to switches go by their LIDs, or by directed routes."""
    with Orchestrated("xgft:3,3/1,3", "-R ftree", vswitch_routed=how) as fabric:
        fabric.settle()
        lids, before = fabric.lids(), fabric.smps()
        found = [fabric.say(f"move {lids['H4']} {lids[host]}") for host in ("H5", "H9", "H2")]
        after = fabric.smps()
        sent = {by_lid: after.get((TABLE, by_lid), 0) - before.get((TABLE, by_lid), 0) for by_lid in (True, False)}
        expect(sent == {how == "on": sum(answer["smps"] for answer in found), how != "on": 0}, how, sent, found)


def any_engine(engine, topology, loops):
    with Orchestrated(topology, f"-R {engine}") as fabric:
        rng = random.Random(7)
        lids = fabric.lids()
        for _ in range(20):
            a, b = rng.sample(sorted(set(lids.values()) - {lids[fabric.sm_host]}), 2)
            fabric.say(f"move {a} {b} closed")
        nodes, before = fabric.nodes(), fabric.smps()
        all_reached(nodes)
        if not loops:
            fabric.check()
        fabric.sweep()
        expect(not fabric.sent(before).get(TABLE), engine, fabric.sent(before))
        expect(fabric.nodes() == nodes, engine, "is as before the sweep")
        # A cable less: tables are computed, and hold for where everybody is now.
        port = next(port for port, (peer, _) in nodes["S1"][1].items() if peer.startswith("S"))
        mark = fabric.sm_mark()
        fabric.command(f'Unlink "S1"[{port}]')
        fabric.wait_sm(mark)
        changed = fabric.nodes()
        expect({n: v[2] for n, v in changed.items()} == {n: v[2] for n, v in nodes.items()},
               "LIDs stay")
        all_reached(changed)
        if not loops:
            fabric.check()


def addresses():
    """A VM's GUID comes along; what it can not do is refused, and nothing is sent then."""
    with Orchestrated("xgft:2,2/1,2,vswitch=2", "-R ftree") as fabric:
        nodes, vm = fabric.nodes(), 0x2c9000000abc
        vf = nodes["H1v1"][0] + 1
        found = fabric.say(f"start {vm:#x} {nodes['H1'][0] + 1:#x}")
        expect(int(found["port"], 0) == vf, "the first VF that is free", found)
        has_guid(fabric, "H1v1", vm)
        lid = found["lid"]
        again = fabric.say(f"start {vm:#x} {lid}")
        expect((again["lid"], again["guid_smps"]) == (lid, 0), "its answer may have been lost", again)
        neighbour = fabric.say(f"start {vm + 9:#x} {nodes['H2v2'][2]}")["lid"]
        has_guid(fabric, "H2v2", vm + 9)
        plan = fabric.say(f"plan {vm:#x} {nodes['H4-hca'][0]:#x}")
        before = fabric.smps()
        begun = fabric.say(f"begin {vm:#x} {nodes['H4-hca'][0]:#x}")
        for line in (f"begin {vm:#x} {nodes['H3'][2]}", f"move {nodes['H1'][2]} {nodes['H3v1'][2]}", f"move {lid} {lid}", "move 9999 1", "jump 1 2",
                     f"start {vm:#x} {nodes['H2'][2]}", f"move {lid} {nodes['L1-1'][2]}",
                     f"move {nodes['H2v1'][2]} {nodes['H4v1'][2]}", "move 1", "end 1",
                     f"end {vm + 1:#x}", f"start {vm + 2:#x} {neighbour}", "x" * 300):
            try:
                expect(False, line, fabric.say(line))
            except Failed:
                pass
            if len(line) > 255:         # the connection ends with it
                fabric.reconnect()
        expect(not any(fabric.sent(before).values()), "nothing has been sent", fabric.sent(before))
        done = fabric.say(f"end {vm:#x}")
        expect(all(done[key] == plan[key] == begun[key] for key in ("from", "to", "switches", "smps")),
               plan, begun, done)
        expect((done["lid"], done["lid_smps"], done["guid_smps"]) == (lid, 2, 2), done)
        sent = fabric.sent(before)
        expect((sent[PORT], sent[GUIDS]) == (2, 2), sent)
        expect(guid_of(fabric, "H4v1") == vm and guid_of(fabric, "H1v1") == 0, "the GUID came along")
        expect(fabric.lids()["H4v1"] == lid, "and the LID")
        try:
            expect(False, "to where another VM is", fabric.say(f"move {vm:#x} {neighbour}"))
        except Failed as error:
            expect("another VM is there" in str(error), error)
        fabric.say(f"begin {vm:#x} {nodes['H1'][2]}")
        fabric.say(f"cancel {vm:#x}")
        fabric.say(f"move {vm:#x} {nodes['H1'][2]} closed")
        expect(fabric.lids()["H1v1"] == lid and guid_of(fabric, "H1v1") == vm, "and back")
        fabric.say(f"stop {vm:#x}")
        has_guid(fabric, "H1v1", 0)
        all_reached(fabric.nodes())


class Empty(Orchestrated):
    """No VM has started yet: no VF has a cable, or had one."""

    def start_opensm(self, options):
        for host in range(1, 10):
            for vf in (1, 2, 3):
                self.command(f'Unlink "H{host}v{vf}"[1]')
        return super().start_opensm(options)


def started():
    """With dynamic LIDs a VM's first start costs each switch one SMP with one entry. Nothing is routed; OpenSM's
    sweeps may each repeat the one of the switch whose port came up."""
    with Empty("xgft:3,3/1,3,vswitch=3", "-R ftree", vswitch="dynamic") as fabric:
        for vf in ("H9v3",):
            fabric.settle()
            was, before, vms = tables(fabric.nodes()), fabric.smps(), fabric.status()["vms"]
            fabric.command(f'ReLink "{vf}"[1]')
            fabric.settle()
            now, lid, after = tables(fabric.nodes()), fabric.lids()[vf], fabric.status()["vms"]
            for name, table in now.items():
                expect({**was[name], lid: table[lid]} == table != was[name], "one entry of each", name)
            sent = fabric.sent(before)[TABLE]
            expect(len(now) <= sent <= len(now) + after["reused"] - vms["reused"], sent, vms, after)
            expect(after["computed"] == vms["computed"], "nothing is routed")
            all_reached(fabric.nodes())


def carried(mode):
    """The VF goes along with its port's GUID: only tables are written. With dynamic LIDs a VM that moves costs
    each switch one SMP at most, and nothing is routed."""
    with Orchestrated("xgft:3,3/1,3,vswitch=3", "-R ftree", vswitch=mode) as fabric:
        for host in range(1, 10):
            for vf in (1, 2, 3):
                fabric.command(f'Unlink "H{host}v{vf}"[1]')
        fabric.settle()
        nodes = fabric.nodes()
        computed = fabric.status()["vms"]["computed"]
        fabric.command('ReLink "H1v1"[1]')
        fabric.settle()
        if mode == "dynamic":
            expect(fabric.status()["vms"]["computed"] == computed, "nothing is routed")
        vm, lid = nodes["H1v1"][0] + 1, fabric.lids()["H1v1"]
        for host in (2, 9):
            to = nodes[f"H{host}-hca"][0]
            found = fabric.say(f"begin {vm:#x} {to:#x}")
            port = int(found["to"].split("/")[1])
            # The VM leaves, and its VF is plugged in elsewhere.
            fabric.command('Unlink "H1v1"[1]')
            found = fabric.say(f"end {vm:#x}")
            expect(found["lid"] == lid and not found["lid_smps"] and not found["guid_smps"], found)
            expect(found["smps"] <= 6, "one of each switch", found)
            moved = tables(fabric.nodes())
            fabric.command(f'Link "H1v1"[1] "H{host}-hca"[{port}]')
            fabric.settle()
            expect(fabric.lids()["H1v1"] == lid, "it keeps its LID")
            expect(tables(fabric.nodes()) == moved, "no sweep has changed a table")
            expect(not fabric.status()["vms"]["expected"], fabric.status()["vms"])
            now = fabric.nodes()
            expect(reached(now, "H4", lid)[0] == "H1v1", reached(now, "H4", lid))
            if mode == "dynamic":
                expect(all(table.get(lid) == table.get(nodes[f"H{host}"][2])
                           for name, table in tables(now).items() if name != f"H{host}-hca"),
                       "it has the paths of its hypervisor")
        if mode == "dynamic":
            expect(fabric.status()["vms"]["computed"] == computed, "nothing is routed")


def spread(mode, ways):
    """VFs of a hypervisor have paths of their own, as ports with several LIDs have; or all the same."""
    with Orchestrated("xgft:4,4/1,4,vswitch=3", "-R ftree", vswitch=mode) as fabric:
        nodes = fabric.nodes()
        for host in range(1, 17):
            lids = [nodes[f"H{host}v{vf}"][2] for vf in (1, 2, 3)]
            for leaf in {1, 2, 3, 4} - {(host + 3) // 4}:
                table = nodes[f"L1-{leaf}"][3]
                uplinks = {table[lid] for lid in lids}
                expect(all(lids) and len(uplinks) == ways, mode, host, leaf, uplinks)


def displaced():
    """The VF goes to where another one is, which is unplugged first and keeps its LID."""
    with Orchestrated("xgft:3,3/1,3,vswitch=1", "-R ftree") as fabric:
        fabric.settle()
        nodes, lids = fabric.nodes(), fabric.lids()
        vm = nodes["H2v1"][0] + 1
        fabric.say(f"begin {vm:#x} {nodes['H5v1'][0] + 1:#x}")
        fabric.command('Unlink "H2v1"[1]')
        found = fabric.say(f"end {vm:#x}")
        expect(found["other"] == 0 and found["smps"] <= found["switches"], found)
        fabric.command('Unlink "H5v1"[1]')
        fabric.command('Link "H2v1"[1] "H5-hca"[3]')
        fabric.settle()
        expect(fabric.lids()["H2v1"] == lids["H2v1"], "it keeps its LID")
        expect(reached(fabric.nodes(), "H9", lids["H2v1"])[0] == "H2v1")
        expect(not fabric.status()["vms"]["expected"], fabric.status()["vms"])


def never_comes():
    """A VM that was moved with its VF is back where it was, starts elsewhere, or has never left: it is reached
    where it is. What is awaited somewhere is nobody else's place."""
    with Orchestrated("xgft:3,3/1,3,vswitch=3", "-R ftree", vswitch="dynamic") as fabric:
        for host in range(1, 10):
            for vf in (1, 2, 3):
                fabric.command(f'Unlink "H{host}v{vf}"[1]')
        for name in ("H1v1", "H2v1"):
            fabric.command(f'ReLink "{name}"[1]')
        fabric.settle()
        nodes, lids = fabric.nodes(), fabric.lids()
        vm, other, to = nodes["H1v1"][0] + 1, nodes["H2v1"][0] + 1, nodes["H9-hca"][0]

        def is_at(name):
            fabric.settle()
            now = fabric.nodes()
            expect(fabric.lids()[name] == lids[name], "it keeps its LID")
            expect(reached(now, "H4", lids[name])[0] == name, reached(now, "H4", lids[name]))
            expect(not fabric.status()["vms"]["expected"], fabric.status()["vms"])

        place = fabric.say(f"begin {vm:#x} {to:#x}")["to"]
        fabric.command('Unlink "H1v1"[1]')
        fabric.say(f"end {vm:#x}")
        found = fabric.say(f"begin {other:#x} {to:#x}")
        expect(found["to"] != place, "one of them comes to each", found)
        fabric.say(f"cancel {other:#x}")
        answer = fabric.say_all([f"begin {other:#x} {place}"])[0]
        expect("another comes there" in answer.get("error", ""), answer)
        fabric.settle()
        fabric.command('ReLink "H1v1"[1]')
        is_at("H1v1")

        fabric.say(f"begin {vm:#x} {to:#x}")
        fabric.command('Unlink "H1v1"[1]')
        fabric.say(f"end {vm:#x}")
        fabric.command('Link "H1v1"[1] "H5-hca"[4]')
        is_at("H1v1")

        fabric.say(f"begin {vm:#x} {to:#x}")
        fabric.say(f"end {vm:#x}")
        expect(fabric.status()["vms"]["expected"] == 1, "it may still leave", fabric.status())
        expect(fabric.say(f"cancel {vm:#x}")["state"] == "cancelled")
        fabric.sweep()
        is_at("H1v1")
        answer = fabric.say_all([f"cancel {vm:#x}"])[0]
        expect("no move of it has begun" in answer.get("error", ""), answer)

        # Nobody says anything, and no cable.
        fabric.say(f"begin {vm:#x} {to:#x}")
        fabric.say(f"end {vm:#x}")
        until = time.monotonic() + 30 + PATIENCE
        while fabric.status()["vms"]["expected"]:
            expect(time.monotonic() < until, "it is where it was")
            time.sleep(0.5)
        is_at("H1v1")


def gone_in_a_sweep():
    """A move ends while OpenSM still looks around, and knows the VF, but not where it is: one after another,
    until what is said behind the end is answered before OpenSM has forgotten the port."""
    with Orchestrated("xgft:10,10/1,10,vswitch=1", "-R ftree",
                      conf="max_wire_smps 1\nforce_log_flush TRUE") as fabric:
        fabric.settle()
        nodes, lids = fabric.nodes(), fabric.lids()
        for host in range(1, 41):
            vm, to = nodes[f"H{host}v1"][0] + 1, nodes[f"H{host + 50}v1"][0] + 1
            plan, mark = f"plan {vm:#x} {nodes['H100'][2]}", fabric.sm_mark()
            fabric.say(f"begin {vm:#x} {to:#x}")
            fabric.command(f'Unlink "H{host}v1"[1]')
            until = time.monotonic() + PATIENCE
            while "no such VM" not in fabric.say_all([plan])[0].get("error", ""):
                expect(time.monotonic() < until, "a sweep has found it gone")
            fabric.asker.sendall(f"end {vm:#x}\n{plan}\n".encode())
            found = [json.loads(fabric.answers.readline())]
            forgotten = "Removed port" in fabric.sm_log()[mark:]
            found.append(json.loads(fabric.answers.readline()))
            expect([answer["lid"] for answer in found if "lid" in answer] == [lids[f"H{host}v1"]], found)
            expect(fabric.status()["vms"]["expected"] == host, fabric.status())
            if not forgotten:
                return
        expect(False, "no move has ended in the midst of a sweep")


def gone_for_good():
    """The hypervisor goes while its VM moves: the move can be called off all the same, by the LID."""
    with Orchestrated("xgft:3,3/1,3,vswitch=1", "-R ftree") as fabric:
        fabric.settle()
        nodes, lid = fabric.nodes(), fabric.lids()["H1v1"]
        to = nodes["H9v1"][2]
        fabric.say(f"begin {lid} {to}")
        fabric.command('Unlink "H1v1"[1]')
        until = time.monotonic() + PATIENCE
        while "no such VM" not in fabric.say_all([f"plan {lid} {to}"])[0]["error"]:
            expect(time.monotonic() < until, "it is gone")
        expect(fabric.say(f"cancel {lid}")["state"] == "cancelled", "by its LID")
        answer = fabric.say_all([f"cancel {lid}"])[0]
        expect("no move of it has begun" in answer["error"], answer)
        fabric.say(f"move {fabric.lids()['H2v1']} {to}")


class Exhausted(Orchestrated):
    """LIDs from 25 on are those of hosts that were there once, as OpenSM remembers."""

    judged = False

    def start_opensm(self, options):
        with open(f"{self.dir}/guid2lid", "w", encoding="utf-8") as file:
            for lid in range(25, 0xc000):
                file.write(f"{0x2c9000000 + lid:#018x} {lid:#06x} {lid:#06x}\n\n")
        return super().start_opensm(options)


def exhausted():
    """LIDs do not suffice: a VF has none. No VM starts or moves there; all others are routed and move."""
    with Exhausted("xgft:3,3/1,3,vswitch=1", "-R updown -Q", vswitch="dynamic") as fabric:
        nodes, lids = fabric.nodes(), fabric.lids()
        vf, to = nodes["H9v1"][0] + 1, lids["H3v1"]
        expect("RAN OUT OF LIDS" in fabric.sm_log(), fabric.sm_log()[-3000:])
        expect([name for name, lid in lids.items() if not lid] == ["H9v1"], lids)
        before = fabric.smps()
        for line in (f"start 0x2c9000000abc {vf:#x}", f"start 0x2c9000000abc {lids['H9']}",
                     f"move {lids['H2v1']} {vf:#x}", f"move {vf:#x} {to}", f"begin {vf:#x} {to}",
                     f"stop {vf:#x}"):
            answer = fabric.say_all([line])[0]
            expect("has no LID" in answer.get("error", "") or "no VF is free" in answer.get("error", ""),
                   line, answer)
        expect(not any(fabric.sent(before).values()), fabric.sent(before))
        fabric.say(f"move {lids['H1v1']} {to}")
        fabric.sweep()
        expect({fault["kind"] for _, fault in fabric.wrong()} == {"no-lid"}, fabric.wrong())
        expect(fabric.lids()["H3v1"] == lids["H1v1"], fabric.lids())


def several_lids():
    """Hosts with several LIDs are in no slot: when one comes later it has paths all the same, and a sweep that
    finds nothing new computes nothing."""
    with Orchestrated(f"{NETS}/mesh3x2.net", "-R minhop -l 1") as fabric:
        fabric.settle()
        for command in ('Unlink "H5"', 'Unlink "S2"[3]', 'ReLink "H5"'):
            mark = fabric.sm_mark()
            fabric.command(command)
            fabric.wait_sm(mark)
        fabric.settle()
        found = json.loads(fabric.repath_fabric_check("H2").stdout)
        expect(found["paths"] == 60 and not found["unreachable"], found)
        before = fabric.status()["vms"]
        fabric.sweep()
        after = fabric.status()["vms"]
        expect(after["computed"] == before["computed"] and after["reused"] > before["reused"], before, after)


def lost(fabric):
    """Packets that were dropped, by cause."""
    found = json.loads(fabric.command("Results json"))
    expect("no deadlock" in fabric.command("Deadlock"), found)
    return {cause: n for cause, n in found["drops"].items() if n}


def arrived(fabric):
    """Whether all that was sent to hosts that do not move is there."""
    flows = json.loads(fabric.command("Results json"))["flows"]
    return all(flow["sent"] == flow["received"] > 0 for flow in flows if not flow["to"].endswith("v1"))


def traffic():
    """While others talk VMs move, in real time: what goes elsewhere all arrives, nothing locks up, and no
    switch is without an entry but by a move that closes the ways first."""
    with Orchestrated("xgft:4,4/1,4,vswitch=1", "-R ftree", vfabric=("-r",)) as fabric:
        rng, lids = random.Random(3), fabric.lids()
        names = sorted(name for name in lids if "v" in name)

        def move(how):
            a, b = rng.sample(names, 2)
            return fabric.say(f"move {lids[a]} {lids[b]} {how}")

        for host in range(1, 16):
            fabric.command(f'Flow "H{host}" "H{host + 1}" message=4000 rate=0.004')
        for host in range(2, 17):
            fabric.command(f'Flow "H{host}" "H{host - 1}v1" message=256 rate=0.004')
        for turn in range(30):
            move(("", "limited")[turn % 2])
        expect(not lost(fabric).get("no_route"), "two ways, and always one of them", lost(fabric))
        until = time.monotonic() + PATIENCE
        while not lost(fabric).get("no_route"):
            expect(time.monotonic() < until, "no way, for a moment", lost(fabric))
            before = fabric.smps()
            found = move("closed")
            expect(0 < found["closing"] <= found["switches"], found)
            expect(fabric.sent(before)[TABLE] == found["smps"] + found["closing"] + found["vswitch_smps"],
                   found, fabric.sent(before))
        fabric.command("Stop")
        until = time.monotonic() + PATIENCE
        while not arrived(fabric):
            expect(time.monotonic() < until, "all that others have sent", fabric.command("Results json"))
            time.sleep(0.1)


def entries_of(fabric, lid):
    """What the journal has of a LID's entries, in the order in which SMPs have arrived: [(switch, port)], those of
    before first."""
    found = re.findall(rf'^\d+ block "?([^" ]+)"? {lid // 64} (\w+)$', fabric.command("Journal"), re.M)
    expect(found, "the journal has tables")
    return [(name, int(block[2 * (lid % 64):][:2], 16)) for name, block in found]


def passed(fabric):
    """SMPs that others have passed so far."""
    return int(re.search(r"^late (\d+)", fabric.command("Smps"), re.M)[1])


def closed_first():
    """No switch gets its new entry for the VM before the last one has none: as SMPs have arrived, which pass each
    other."""
    with Orchestrated("xgft:4,4/1,4,vswitch=1", "-R ftree") as fabric:
        rng, lids = random.Random(4), fabric.lids()
        names, closing, late = sorted(name for name in lids if "v" in name), 0, 0
        for turn in range(12):
            a, b = rng.sample(names, 2)
            fabric.command("Journal 100000")
            before = len(entries_of(fabric, lids[a]))
            how = ("closed", "limited closed")[turn % 2]
            plan = fabric.say(f"plan {lids[a]} {lids[b]} {how}")
            late -= passed(fabric)
            fabric.command(f'Fault "{fabric.sm_host}"[1] reorder=0.5 window=30000000')
            found = fabric.say(f"move {lids[a]} {lids[b]} {how}")
            late += passed(fabric)
            fabric.command(f'Fault "{fabric.sm_host}"[1] reorder=0')
            set_now = [(name, port) for name, port in entries_of(fabric, lids[a])[before:] if "-hca" not in name]
            ports = [port for _, port in set_now]
            expect(ports.count(255) == found["closing"] == len({name for name, port in set_now if port == 255}), found,
                   set_now)
            last = len(ports) - 1 - ports[::-1].index(255) if 255 in ports else -1
            opened = [name for name, port in set_now[:last + 1] if port != 255]
            expect(not opened, "have the new entry before the last is closed:", opened, set_now)
            expect({name for name, port in set_now if port != 255} >= {name for name, port in set_now if port == 255},
                   "is open again", set_now)
            expect(all(plan[count] == found[count] for count in ("switches", "smps", "closing", "vswitch_smps")), plan,
                   found)
            closing += found["closing"]
        expect(closing > 12 and late > 12, closing, late)


def main():
    table_one("xgft:18,18/1,18", 324, 36)
    table_one("tree:36,2", 648, 54)
    limited()
    routed("on")
    routed("off")
    # minhop, to which updn leaves what has no roots, has credit loops there with VMs and without.
    for engine in ("minhop", "updn", "lash -Q", "dfsssp -Q", "updown"):
        any_engine(engine, "random:8,degree=3,hosts=3,seed=2", engine in ("minhop", "updn"))
    addresses()
    started()
    carried("dynamic")
    carried("prepopulated")
    spread("prepopulated", 3)
    spread("dynamic", 1)
    displaced()
    never_comes()
    gone_in_a_sweep()
    gone_for_good()
    exhausted()
    several_lids()
    closed_first()
    traffic()
    return 0


if __name__ == "__main__":
    sys.exit(main())
