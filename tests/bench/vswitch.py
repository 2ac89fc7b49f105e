# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""VMs that move with their LIDs on stock OpenSM: 1000 random moves on the fat trees of the vSwitch paper, with
their SMPs counted on the wire, beside a full reconfiguration: tables computed and all of them set (the
paper's equations 1 to 5, table I). And what moves to few switches cost in balance.

VSWITCH_PARTS="sizes dynamic" and VSWITCH_HOSTS="324 648" choose; with dynamic LIDs each hypervisor is a switch more,
and the trees of three levels, of which OpenSM then has 6804 and 13284, are asked for by name (VSWITCH_DYNAMIC="5832").
VSWITCH_LARGEST="dfsssp:11664 lash:5832" are how large a tree figure 7 has of an engine, where not all that there are:
these take minutes and hours, and by themselves stop at 5832 and 648. VSWITCH_PATIENCE="30000" is how many seconds OpenSM may
take for one, not 1500."""

import collections
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import threading
import time

import image

BED = False
TREES = {324: ("xgft:18,18/1,18", 1000), 648: ("tree:36,2", 1000),
         5832: ("xgft:18,18,18/1,18,18", 1000), 11664: ("tree:36,3", 1000)}
PAPER = {324: (360, 6, 216, 72), 648: (702, 11, 594, 108), 5832: (6804, 107, 104004, 1944),
         11664: (13284, 208, 336960, 3240)}     # LIDs, blocks, SMPs of all tables, at most of a move
# Figure 7, as far as the text has numbers: seconds to compute. And how large a tree each engine gets here.
PAPER_7 = {"ftree": {324: 0.012, 11664: 67}, "minhop": {}, "updn": {}, "dfsssp": {324: 0.142, 11664: 625},
           "lash": {11664: 39145}}
LARGEST = {"ftree": 11664, "minhop": 11664, "updn": 11664, "dfsssp": 5832, "lash": 648}
LARGEST |= {engine: int(n) for engine, n in (word.split(":") for word in os.environ.get("VSWITCH_LARGEST", "").split())}
HOSTS = [int(n) for n in os.environ.get("VSWITCH_HOSTS", "324 648 5832 11664").split()]
DYNAMIC = [int(n) for n in os.environ.get("VSWITCH_DYNAMIC", "324 648").split()]
MADE = {324: 30, 648: 10}      # moves with dynamic LIDs that are made, not only planned
BLOCK = 64
LEAF = 18           # hosts of a leaf
PACKETS = 20000     # a second, to VMs that move
PATIENCE = int(os.environ.get("VSWITCH_PATIENCE", "1500"))


def orchestrated():
    """tests/sm/vms.py, with what it imports."""
    os.environ["VFABRIC_TOP"] = image.TOP
    sys.path[:0] = [os.path.join(image.TOP, "tests", name) for name in ("sm", "vfabric")]
    mine = sys.modules.pop("bed", None)
    try:
        import vms
        vms.Orchestrated.judged = False
        vms.PATIENCE = max(vms.PATIENCE, PATIENCE)
    finally:
        del sys.path[:2]
        if mine:
            sys.modules["bed"] = mine
    return vms


vms = orchestrated()


class Watched(vms.Orchestrated):
    """Sees when OpenSM sets the first tables: (time, how many SMPs)."""

    def wait_sm(self, mark, want="", patience=PATIENCE):
        return super().wait_sm(mark, want, patience)

    def start_opensm(self, options):
        self.seen = [(0, 0)]
        self.ended = False
        thread = threading.Thread(target=self.watch)
        thread.start()
        try:
            return super().start_opensm(options)
        finally:
            self.ended = True
            thread.join()

    def watch(self):
        with socket.socket(socket.AF_UNIX) as console:
            console.connect(f"{self.dir}/control")
            with console.makefile("rw", encoding="utf-8") as lines:
                while not self.ended:
                    lines.write("Smps\n")
                    lines.flush()
                    n = 0
                    for line in iter(lines.readline, "ok\n"):
                        if f" {vms.TABLE} " in line:
                            n += int(line.split()[2])
                    if not n:
                        self.seen = [(time.monotonic(), 0)]
                    elif n > self.seen[-1][1]:
                        self.seen.append((time.monotonic(), n))
                    time.sleep(0.0005)

    def distribution(self, smps):
        """Seconds until so many were through, from the last look at which there was none."""
        return next(at for at, n in self.seen if n >= smps) - self.seen[0][0]


def told_of(fabric, name, what):
    """The nodeguid or lid of one: with the tables of all switches it is too much for the largest."""
    return int(re.search(rf"\b{what} (\w+)", fabric.command(f'Dump "{name}"'))[1], 16 if what == "nodeguid" else 10)


def lids_of(fabric):
    names = re.findall(r'^Hca\s+\d+\s+"([^"]+)"', net(fabric), re.M)
    return {name: told_of(fabric, name, "lid") for name in names}


def net(fabric):
    """In ibsim's format."""
    return subprocess.run([f"{image.TOP}/build/vfabric/vfabric", "-w", fabric.topology], check=True,
                          capture_output=True, text=True).stdout


def moves(fabric, count, how, seed):
    """The plugin's answers to random moves, and how many SMPs with tables were on the wire."""
    rng = random.Random(seed)
    place = lids_of(fabric)
    lids = sorted(set(place.values()) - {place[fabric.sm_host]})
    before = fabric.smps()
    found = [fabric.say("move %u %u %s" % (*rng.sample(lids, 2), how)) for _ in range(count)]
    return found, fabric.sent(before)[vms.TABLE]


def table_one(record, hosts):
    topology, count = TREES[hosts]
    lids, blocks, smps, most = PAPER[hosts]
    with Watched(topology, "-R ftree", conf="max_wire_smps 64") as fabric:
        fabric.settle()
        n = len(re.findall(r"^Switch", net(fabric), re.M))
        top = int(re.search(r"FDBtop (\d+)", fabric.command('Dump "L1-1"'))[1])
        full = fabric.smps()[vms.TABLE, False]
        computed = fabric.status()["vms"]["computed_us"] / 1e6
        distributed = fabric.distribution(n * (top // BLOCK + 1))
        found, wire = moves(fabric, count, "", hosts)
        sent = [answer["smps"] for answer in found]
        if sum(sent) != wire:
            raise RuntimeError(f"{sum(sent)} SMPs were told of, {wire} were on the wire")
        record(f"{hosts} hosts: SMPs of all tables against the paper's", n * (top // BLOCK + 1), smps,
               "the same", 1.0, 1.0, lids=top, paper_lids=lids, blocks=top // BLOCK + 1, paper_blocks=blocks,
               on_the_wire=full)
        record(f"{hosts} hosts: the most SMPs of {count} random moves against the paper's bound", max(sent), most,
               "not more", 1.0, least_smps=min(sent), mean=sum(sent) / count,
               switches=sum(a["switches"] for a in found) / count,
               smps_a_switch=sum(sent) / sum(a["switches"] for a in found))
        took = [answer["us"] / 1e6 for answer in found]
        record(f"{hosts} hosts: seconds of a move against a full reconfiguration", statistics.median(took),
               computed + distributed, "less", 1.0, slowest=max(took), computed=computed,
               distributed=distributed)
        before = fabric.status()["vms"]["computed"]
        tables = fabric.smps()
        fabric.sweep()
        record(f"{hosts} hosts: tables set by a heavy sweep after the moves", fabric.sent(tables).get(vms.TABLE, 0),
               None, "none", 0, computed=fabric.status()["vms"]["computed"] - before)


def talking(record, hosts):
    """The same moves while a host of each leaf, which stays, talks to all that move, and to the next."""
    topology, count = TREES[hosts]
    with Watched(topology, "-R ftree", conf="max_wire_smps 64", vfabric=("-r",)) as fabric:
        fabric.settle()
        staying = [f"H{number}" for number in range(1, hosts + 1, LEAF)]
        place = {lid: name for name, lid in lids_of(fabric).items() if name not in staying}
        rng = random.Random(hosts)
        pairs = [rng.sample(sorted(place), 2) for _ in range(count)]
        talk = vms.Talk(fabric, staying, {lid: place[lid] for pair in pairs for lid in pair}, PACKETS)
        fabric.sweep()      # the second one after a start sets tables again
        before, sent = fabric.smps(), 0
        for a, b in pairs:
            sent += fabric.say(f"move {a} {b}")["smps"]
            talk.moved(a, b)
        if sent != fabric.sent(before)[vms.TABLE]:
            raise RuntimeError(f"{sent} SMPs were told of, on the wire were {fabric.sent(before)}")
        found = talk.end()
        record(f"{hosts} hosts that talk: packets lost of those to VMs, {count} random moves",
               found["vms_lost"] / found["vms_sent"], **found, smps=sent)


def way(record):
    """k and r of the equations: an SMP at a time, by directed routes and by LIDs."""
    took = {}
    for routed in ("off", "on"):
        with vms.Orchestrated(TREES[648][0], "-R ftree", vswitch_routed=routed,
                              conf="max_wire_smps 1") as fabric:
            found, _ = moves(fabric, 300, "", 1)
            took[routed] = statistics.median(answer["us"] / (answer["smps"] + answer["lid_smps"])
                                             for answer in found)
    record("648 hosts, one SMP at a time: microseconds of one by LID (k) against a directed one (k + r)",
           took["on"], took["off"], r=took["off"] - took["on"])


def load(nodes):
    """Pairs of a leaf and a host elsewhere whose way shares a cable, on the busiest up and down."""
    up, down = collections.Counter(), collections.Counter()
    hosts = {node[2]: node[1][1][0] for node in nodes.values() if node[3] is None}
    for name, (_, ports, _, table) in nodes.items():
        if table is None or not name.startswith("L1-"):
            continue
        for lid, leaf in hosts.items():
            if leaf != name:
                spine = ports[table[lid]][0]
                up[name, spine] += 1
                down[spine, leaf] += 1
    return max(up.values()), max(down.values())


def balance(record):
    worst, switches = {}, {}
    for how in ("", "limited"):
        with vms.Orchestrated(TREES[324][0], "-R ftree") as fabric:
            first = load(fabric.nodes())
            found, _ = moves(fabric, 1000, how, 2)
            switches[how] = sum(answer["switches"] for answer in found) / len(found)
            worst[how] = load(fabric.nodes())
    record("324 hosts, limited: switches of a move against all that differ", switches["limited"], switches[""])
    for i, cable in enumerate(("up", "down")):
        record(f"324 hosts, limited: paths on the busiest cable {cable} after 1000 moves against all that differ",
               worst["limited"][i], worst[""][i], before=first[i])


def inside(record):
    """A move inside of each leaf, one after another and all together."""
    with vms.Orchestrated("xgft:18,18/1,18,vswitch=1", "-R ftree") as fabric:
        lids = lids_of(fabric)
        lines = [f"move {lids[f'H{18 * leaf + 2}v1']} {lids[f'H{18 * leaf + 3}v1']} limited"
                 for leaf in range(18)]
        alone, together = [], []
        for _ in range(11):
            before = time.monotonic()
            for line in lines:
                answer = fabric.say(line)
            alone.append(time.monotonic() - before)
            before = time.monotonic()
            fabric.say_all(lines)
            together.append(time.monotonic() - before)
        record("324 hypervisors, 18 moves inside of leaves: seconds together against one after another",
               statistics.median(together), statistics.median(alone), smps=answer["smps"], vswitch_smps=answer["vswitch_smps"],
               at_once=fabric.status()["vms"]["at_once"])


def spread(record):
    """By how many uplinks other leaves reach the VFs of one hypervisor."""
    for mode in ("prepopulated", "dynamic"):
        with vms.Orchestrated("xgft:18,18/1,18,vswitch=3", "-R ftree", vswitch=mode) as fabric:
            nodes = fabric.nodes()
            leaf = nodes["L1-18"][3]
            ways = [len({leaf.get(nodes[f"H{host}v{vf}"][2]) for vf in (1, 2, 3)})
                    for host in range(1, 307)]
            record(f"324 hypervisors, {mode}: uplinks by which the 3 VFs of one are reached from a leaf",
                   sum(ways) / len(ways))


def computed_by(engine, hosts):
    """Seconds of the processor to route, hop counts and tables, and the median time of a move then."""
    with Watched(TREES[hosts][0], f"-R {engine},no_fallback -Q", conf="max_wire_smps 64") as fabric:
        fabric.settle()
        if f"{engine} tables configured" not in fabric.sm_log():
            raise RuntimeError(f"{engine} did not route {hosts} hosts: {fabric.sm_log()[-500:]}")
        cpu = fabric.status()["paths"]["cpu"]
        known = fabric.status()["vms"]
        found, _ = moves(fabric, 100, "", hosts)
        if fabric.status()["vms"]["computed"] != known["computed"]:
            raise RuntimeError(f"{engine} has routed for a move")
    return known["computed_us"] / 1e6, statistics.median(answer["us"] for answer in found) / 1e6


def figure_7(record):
    for engine, paper in PAPER_7.items():
        for hosts in HOSTS:
            if hosts > LARGEST[engine]:
                break
            computed, move = computed_by(engine, hosts)
            record(f"figure 7, {engine}, {hosts} hosts: seconds of a move against those to compute", move,
                   computed, "less", 1.0, paper_s=paper.get(hosts))


def dynamic(record):
    for hosts in DYNAMIC:
        copies(record, hosts)


def rest(fabric, hosts):
    """Until OpenSM has no more to do. To route the largest trees takes it a minute, in which it says nothing."""
    fabric.settle()
    sent = None
    while hosts > 1000 and sent != (sent := fabric.smps()):
        time.sleep(90)


def copies(record, hosts):
    """Random VMs to random hypervisors, each of which has one VM and one free VF. 1000 are planned, the first ones
    made, with the VF that comes along."""
    topology, count = TREES[hosts]
    with Watched(f"{topology},vswitch=2", "-R ftree", vswitch="dynamic", conf="max_wire_smps 64") as fabric:
        for host in range(1, hosts + 1):
            fabric.command(f'Unlink "H{host}v2"[1]')
        rest(fabric, hosts)
        rng = random.Random(4)
        switches = len(re.findall(r'^Switch\s+\d+\s+"L', net(fabric), re.M))
        pairs = [rng.sample(range(1, hosts + 1), 2) for _ in range(count)]
        lines = [f"{told_of(fabric, f'H{a}v1', 'nodeguid') + 1:#x} {told_of(fabric, f'H{b}', 'lid')}" for a, b in pairs]
        planned = [fabric.say(f"plan {line}") for line in lines]
        made = set()
        for (a, b), line, plan in zip(pairs, lines, planned):
            if {a, b} & made or len(made) >= 2 * MADE.get(hosts, 4):
                continue
            made |= {a, b}
            to = int(fabric.say(f"begin {line}")["to"].split("/")[1])
            fabric.command(f'Unlink "H{a}v1"[1]')
            rest(fabric, hosts)
            before = fabric.smps()
            told = fabric.say(f"end {line.split()[0]}")
            if told["smps"] != plan["smps"] or \
                    told["smps"] + told["vswitch_smps"] != fabric.sent(before)[vms.TABLE]:
                raise RuntimeError(f"{line}: {told}, planned {plan}, {fabric.sent(before)}")
            fabric.command(f'Link "H{a}v1"[1] "H{b}-hca"[{to}]')
            rest(fabric, hosts)
        sent = [answer["smps"] for answer in planned]
        record(f"{hosts} hypervisors, dynamic LIDs: the most SMPs of {count} random moves against the switches", max(sent),
               switches, "not more", 1.0, least_smps=min(sent), mean=sum(sent) / len(sent), made=len(made) // 2)


def sizes(record):
    for hosts in HOSTS:
        table_one(record, hosts)
        talking(record, hosts)


def bench(record):
    record.parts(figure_7, dynamic, sizes, way, balance, inside, spread)
