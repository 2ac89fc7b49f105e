#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""VOQsw in OpenSM. A flow whose link is free is not held up by one that waits for a busy host, though
they come to the same input: with up-down routing alone they are in one lane there. So it is with OpenSM's
own engines; those that keep paths apart by lanes still have no credit loop then. Virtual time."""

import json
import re
import sys

from managed import Managed, expect

TREE = "tree:8,2"
TOPOLOGY = "random:8,degree=4,hosts=4,seed=1"


class Rooted(Managed):
    """updn finds no root by itself in a network that is no tree."""

    def start_opensm(self, options):
        guid = re.search(r"nodeguid (\w+)", self.command('Dump "S1"'))[1]
        with open(f"{self.dir}/roots", "w", encoding="utf-8") as file:
            file.write(f"{int(guid, 16):#x}\n")
        return super().start_opensm(f"{options} -a {self.dir}/roots")


class Torus(Managed):
    """5x5 for torus-2QoS, which begins at a switch with its neighbours upwards."""

    def guid(self, number):
        return int(re.search(r"nodeguid (\w+)", self.command(f'Dump "S{number}"'))[1], 16)

    def start_opensm(self, options):
        first, right, above = map(self.guid, (1, 2, 6))
        with open(f"{self.dir}/torus", "w", encoding="utf-8") as file:
            file.write(f"torus 5 5 1\nxp_link {first:#x} {right:#x}\nyp_link {first:#x} {above:#x}\n")
        return super().start_opensm(f"{options} --torus_config {self.dir}/torus")


def switches_and_ports(fabric, lids, a, b):
    """The way from a to b, without the hosts."""
    text = fabric.command(f"Route {lids[a]} {lids[b]}")
    numbers = re.findall(r"^\[(\d+)\] ->", text, re.M)
    nodes = re.findall(r'-> "([^"]+)"', text)
    return list(zip(nodes, numbers[1:]))


def find_case(fabric):
    """A victim and a hot flow: the same source switch and the same way for two switches at least, where
    they part; and who keeps the hot flow's destination busy: the other hosts at its switch."""
    lids = {name: int(lid) for name, lid in re.findall(
        r'Hca 1 "(H\d+)".*\n\[1\]\t.*?\tlid (\d+)', fabric.command("Dump"))}
    ways = {(a, b): switches_and_ports(fabric, lids, a, b) for a in lids for b in lids if a != b}
    for hot, way in ways.items():
        for victim, other in ways.items():
            if victim[0] != hot[0] and other[:2] != way[:2] and other[0] == way[0] and \
                    len(other) > 2 and len(way) == 2 and victim[1] != hot[1]:
                crowd = [pair for pair, short in ways.items() if pair[1] == hot[1] and
                         len(short) == 1 and pair[0] not in victim]
                if len(crowd) == 3:
                    return victim, hot, crowd
    raise SystemExit("no such flows in this network")


def rate(engine, **options):
    with Rooted(TOPOLOGY, f"-R {engine},no_fallback -Q", **options) as fabric:
        expect(fabric.all_active(), engine, *fabric.plugin_log())
        fabric.check(host="H1")
        victim, hot, crowd = find_case(fabric)
        levels = set()
        for pair in (victim, hot, *crowd):
            answer = fabric.command(f'Flow "{pair[0]}" "{pair[1]}" sl=sa')
            levels.add(int(re.search(r"sl (\d+)", answer)[1]))
        fabric.command("Advance 2000")
        fabric.command("Measure")
        fabric.command("Advance 2000")
        results = json.loads(fabric.command("Results json"))
        expect(not any(results["drops"].values()), results["drops"])
        lanes = set(re.findall(r"VL(\d+)", fabric.command("Sent")))
        return results["flows"][0]["gbps"], levels, lanes


def queued_crossings(fabric, engine):
    found = [line for line in fabric.plugin_log() if f"voqsw over {engine}" in line]
    expect(found, engine, *fabric.plugin_log())
    return re.search(r"(\d+) of (\d+) crossings", found[-1])


def lane_of(vl, lanes):
    """The engine's, of which there are that many, out of 8 VLs."""
    step = 1 << (lanes - 1).bit_length()
    return vl % (step if 8 // step == 8 // lanes else lanes)


def over_lanes(engine, topology, needed, layers, conf=""):
    """An engine with lanes, where it needs them: the checker follows service levels, SLtoVL tables and credit
    loops. Its layers have lanes of their own: several for most service levels, or one, which is no queue."""
    with Managed(topology, f"-R {engine},no_fallback -Q", voqsw_over="on", voqsw_sls=16,
                 voqsw_hosts="off", conf=conf) as fabric:
        found = fabric.check(host="H1")
        expect(f"{engine} tables configured" in fabric.sm_log(), fabric.sm_log()[-1000:])
        expect(needed(fabric), engine, "does with one lane here")
        lanes, each = lanes_of_levels(fabric), 8 // layers
        if each == 1:
            expect(any(f"voqsw over {engine}: no queue: {engine} has {layers} layers for 16 SLs and 8 VLs" in line
                       for line in fabric.plugin_log()), *fabric.plugin_log())
        else:
            expect(int(queued_crossings(fabric, engine)[1]) > 0 and any(len(one) > 1 for one in lanes), engine, lanes)
        for level, one in enumerate(lanes):
            layer = level // (16 // layers)
            expect(one and all(lane_of(vl, layers) == layer for vl in one), engine, level, lanes)
        return found


def over_too_few(engine, topology, why, kind=Managed):
    """One service level for several layers is too few: the engine keeps its lanes, and the log says so."""
    over_refused(engine, topology, why, kind, voqsw_sls=1)


def over_refused(engine, topology, why, kind=Managed, **options):
    """All is as without: levels, lanes, and what these weigh."""
    found = {}
    for over in "off", "on":
        with kind(topology, f"-R {engine},no_fallback -Q", voqsw_over=over, **options) as fabric:
            fabric.check(host="H1")
            lids = re.findall(r"Switch .*\n#\tlid (\d+)", fabric.command("Dump"))
            found[over] = levels_of_pairs(fabric), [
                fabric.run("H1", "smpquery", what, lid, port) for what in ("sl2vl", "vlarb") for lid in lids for port in "12"]
            expect(any(f"voqsw over {engine}: {why}; it keeps its own lanes" in line for line in fabric.plugin_log()) ==
                   (over == "on"), *fabric.plugin_log())
    expect(found["on"] == found["off"], engine, why)


def over_management():
    """What the subnet manager says has a service level of its own, or the engine keeps its lanes."""
    over_refused("torus-2QoS", "torus:5x5,hosts=1", "not together with sm_sl, as its layers share lanes", Torus,
                 voqsw_sls=16, sm_sl="on", conf="sm_sl 8")
    over_refused("lash", "torus:5x2,hosts=2",
                 "service level 8, which the subnet manager has by sm_sl, would be in layer 1, of other paths",
                 voqsw_sls=16, sm_sl="on", conf="sm_sl 8")
    with Managed("torus:5x2,hosts=2", "-R lash,no_fallback -Q", voqsw_over="on", voqsw_sls=16, sm_sl="on",
                 conf="lash_start_vl 1") as fabric:
        # LASH gives a LID that nobody has level 0.
        mark = fabric.sm_mark()
        fabric.command('Down "H3"')
        fabric.wait_sm(mark)
        fabric.check(host="H1")
        expect(int(queued_crossings(fabric, "lash")[1]) > 0, *fabric.plugin_log())
        expect("keeps its own lanes" not in fabric.sm_log(), *fabric.plugin_log())
        for pair, level in levels_of_pairs(fabric, {"H3"}).items():
            expect((level == 0) == ("H1" in pair), pair, level)


def levels_of_pairs(fabric, without=()):
    """The service level of each path between hosts."""
    hosts = set(re.findall(r'Hca 1 "(H\d+)"', fabric.command("Dump"))) - set(without)
    return {(a, b): int(fabric.command(f'Flow "{a}" "{b}" sl=sa stop=1').split()[1])
            for a in hosts for b in hosts if a != b}


def over_vftree():
    """Its layers stay apart: each has half of the service levels and of the lanes. So with a link less."""
    with Managed(TREE, "-R vftree,no_fallback -Q", vftree_lanes=2) as fabric:
        layers = levels_of_pairs(fabric)
    expect(set(layers.values()) == {0, 1}, layers)
    with Managed(TREE, "-R voqsw,no_fallback -Q", voqsw_engine="vftree", vftree_lanes=2, voqsw_sls=16) as fabric:
        levels = levels_of_pairs(fabric)
        mixed = {pair: (level, layers[pair]) for pair, level in levels.items() if level // 8 != layers[pair]}
        expect(not mixed and len(set(levels.values())) > 4, mixed, levels)
        expect(fabric.check("minimal", host="H1")["lanes"] == list(range(8)), "lanes")
        # A switch has those of one layer for a service level: four of eight.
        for level, lanes in enumerate(lanes_of_levels(fabric)):
            expect(lanes and all(lane_of(vl, 2) == level // 8 for vl in lanes), level, lanes)
        mark = fabric.sm_mark()
        fabric.command('Unlink "L1-1"[5]')
        fabric.wait_sm(mark)
        fabric.check("minimal", host="H1")
    with Managed(TREE, "-R voqsw,no_fallback -Q", voqsw_engine="vftree") as fabric:
        expect(any("voqsw: no queue: vftree has 8 layers for 8 SLs and 8 VLs" in line
                   for line in fabric.plugin_log()), *fabric.plugin_log())


def too_few():
    """Tables and service levels stay when there are fewer lanes than the engine's layers, or more layers than
    service levels."""
    for had, has, options, why in (
            (4, 1, {"vftree_lanes": 2}, "vftree_lanes is 2, and a link between switches has 1 data VLs"),
            (3, 4, {"voqsw_sls": 4}, "vftree has 8 layers: 4 SLs and 8 VLs are too few")):
        with Managed(TREE, "-R voqsw,no_fallback -Q", voqsw_engine="vftree", conf=f"max_op_vls {had}",
                     **options) as fabric:
            before, levels = fabric.tables(), levels_of_pairs(fabric)
            for vls in has, had:
                said = fabric.let_use(vls)
                expect((f"voqsw: cannot route: {why}; the routing before it stays in force" in said) == (vls == has) ==
                       ("cannot route" in said), why, said)
                expect(fabric.tables() == before and levels_of_pairs(fabric) == levels, why, "tables stay")


def over_vswitch(engine):
    """With vswitch an engine keeps its own lanes, whatever voqsw_over says: here one."""
    with Managed(TREE, f"-R {engine},no_fallback -Q", voqsw_over="on", vswitch="dynamic", vswitch_socket="") as fabric:
        expect(any(f"voqsw over {engine}: not together with vswitch; it keeps its own lanes" in line
                   for line in fabric.plugin_log()), *fabric.plugin_log())
        expect(set(levels_of_pairs(fabric).values()) == {0}, engine)


def over_torus():
    """Torus-2QoS keeps turns apart by lanes, not only paths by service levels. Both stay: round a switch that failed there is
    no credit loop, and lanes are twice as many. Its table says which of its own is whose."""
    found = {}
    for over in "off", "on":
        with Torus("torus:5x5,hosts=1", "-R torus-2QoS,no_fallback -Q", voqsw_over=over, voqsw_sls=16) as fabric:
            expect("torus-2QoS tables configured" in fabric.sm_log(), fabric.sm_log()[-1000:])
            fabric.check(host="H1")
            mark = fabric.sm_mark()
            for port in range(1, 6):
                fabric.command(f'Unlink "S13"[{port}]')
            fabric.wait_sm(mark)
            fabric.check(host="H1")
            lanes = {(number, port, *turn): row.split("|") for number in range(1, 26) if number != 13
                     for port in "12345" for *turn, row in re.findall(r"in *(\d+), out *(\d+): \|(.*)\|", fabric.run(
                         "H1", "smpquery", "-G", "sl2vl", f"{fabric.guid(number):#x}", port))}
            found[over] = levels_of_pairs(fabric, {"H13"}), lanes
            expect(over == "off" or int(queued_crossings(fabric, "torus-2QoS")[1]) > 0, *fabric.plugin_log())
    (old, plain), (new, queued) = found["off"], found["on"]
    layers, each = max(old.values()) + 1, 16 // (max(old.values()) + 1)
    expect(layers == 4 and {pair: level // each for pair, level in new.items()} == old, old, new)
    expect(len(set(new.values())) > layers, new)
    expect(plain.keys() == queued.keys() and {int(lane) for row in plain.values() for lane in row[:layers]} == {0, 1, 2, 3},
           "four lanes of its own")
    for turn, row in queued.items():
        for level, lane in enumerate(row):
            expect(lane_of(int(lane), 4) == int(plain[turn][level // each]), turn, row, plain[turn])
    expect({int(lane) for row in queued.values() for lane in row} == set(range(8)), "eight lanes")


def lanes_of_levels(fabric):
    """By service level: the lanes that a switch of each level of a tree has for it, or two others, between switches."""
    found = [set() for _ in range(16)]
    for lid, ports in re.findall(
            r'Switch \d+ "(?:L\d-1|S[12])".*\n#\s+lid (\d+).*\n.*\n((?:\[.*\n)+)', fabric.command("Dump")):
        for port in re.findall(r'^\[(\d+)\]\t"[LS]', ports, re.M):
            text = fabric.run("H1", "smpquery", "sl2vl", lid, port)
            for row in re.findall(r"in *\d+, out *\d+: \|(.*)\|", text):
                for level, lane in enumerate(row.split("|")):
                    found[level].add(int(lane))
    return found


def loops_in_one_lane(fabric):
    return json.loads(fabric.repath_fabric_check("H1", "sl", "0").stdout)["credit_loops"]


def over_one_lane(engine, topology="xgft:4,4,2/1,2,2", more=""):
    """None needs lanes in a tree, nor dor in a mesh. minhop needs some in a ring, and has them no more than without."""
    options = {"voqsw_over": "on", "voqsw_sls": 16, "voqsw_hosts": "off"}
    with Managed(topology, f"-R {engine},no_fallback -Q {more}", **options) as fabric:
        found = fabric.check("minimal", host="H1")
        expect(f"{engine} tables configured" in fabric.sm_log(), fabric.sm_log()[-1000:])
        expect(len(found["lanes"]) > 4 and int(queued_crossings(fabric, engine)[1]) > 100, found)
        for lid in re.findall(r'Switch .*\n#\tlid (\d+)', fabric.command("Dump")):
            fabric.lanes_weigh_the_same(lid)
        expect(any(len(lanes) > 1 for lanes in lanes_of_levels(fabric)), engine, "one level, several lanes")
    if engine == "minhop":
        with Managed("torus:8", "-R minhop -Q", **options) as fabric:
            expect(json.loads(fabric.repath_fabric_check("H1").stdout)["credit_loops"], "a ring")


def over_file():
    """Of tables that another engine made, and OpenSM has written down (-D 0x43)."""
    with Managed("xgft:4,4,2/1,2,2", "-R updn,no_fallback -Q -D 0x43") as fabric:
        over_one_lane("file", more=f"-U {fabric.dir}/opensm-lfts.dump")


def over():
    plain, levels, lanes = rate("updn")
    expect(levels == {0} and lanes == {"0"}, levels, lanes)
    queued, levels, lanes = rate("updn", voqsw_over="on", voqsw_sls=16, voqsw_even="off", voqsw_hosts="off")
    print(f"updn: {plain} Gbit/s, with queues {queued}")
    expect(len(lanes) > 2, levels, lanes)
    expect(queued > 1.5 * plain, "the victim's rate:", queued, "not", plain)
    print("dfsssp", over_lanes("dfsssp", TOPOLOGY, loops_in_one_lane, 8))
    print("nue", over_lanes("nue", TOPOLOGY, loops_in_one_lane, 4, "nue_max_num_vls 4"))
    print("lash", over_lanes("lash", "torus:5x2,hosts=2", lambda fabric: "Lanes needed: 2" in fabric.sm_log(), 2))
    over_too_few("dfsssp", TOPOLOGY, "dfsssp has 8 layers: 1 SLs and 8 VLs are too few")
    for engine in "minhop", "ftree", "dnup", "sssp":
        over_one_lane(engine)
    over_one_lane("dor", "mesh:4x4,hosts=2")
    over_file()
    over_vftree()
    too_few()
    over_torus()
    over_too_few("torus-2QoS", "torus:5x5,hosts=1",
                 "torus-2QoS has 4 layers in 4 lanes: 1 SLs and 8 VLs are too few", Torus)
    over_management()
    over_vswitch("ftree")


def main():
    over()
    plain, levels, lanes = rate("updown")
    expect(levels == {0} and lanes == {"0"}, levels, lanes)
    queued, levels, lanes = rate("voqsw", voqsw_sls=16, voqsw_even="off", voqsw_hosts="off")
    print(f"{plain} Gbit/s, with queues {queued}")
    expect(len(lanes) > 2, levels, lanes)
    expect(queued > 1.5 * plain, "the victim's rate:", queued, "not", plain)
    return 0


if __name__ == "__main__":
    sys.exit(main())
