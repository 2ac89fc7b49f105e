# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Who moves VMs on a managed fabric, and what is on the wire and in the tables then:

    with Orchestrated("xgft:4,4/1,4,vswitch=2", "-R ftree") as fabric:
        fabric.say("move 0x2c90000000012 0x200042")
"""

import json
import re
import socket
import time

from managed import Failed, Managed, expect

TABLE, PORT, GUIDS = "0x19", "0x15", "0x14"     # attributes of SMPs
PATIENCE = 60


class Orchestrated(Managed):
    def __init__(self, topology, sm_options="", vswitch="prepopulated", conf="", **options):
        # A move waits for answers, and not for a machine that has other things to do.
        super().__init__(topology, sm_options, vswitch=vswitch,
                         conf=f"transaction_timeout 2000\n{conf}", **options)
        self.asker = None

    def launch_opensm(self, options):
        self.options_of_plugin["vswitch_socket"] = f"{self.dir}/vms"
        super().launch_opensm(options)

    def start_opensm(self, options):
        found = super().start_opensm(options)
        self.reconnect()
        return found

    def reconnect(self):
        if self.asker:
            self.answers.close()
            self.asker.close()
        self.asker = socket.socket(socket.AF_UNIX)
        self.asker.settimeout(PATIENCE)
        self.asker.connect(f"{self.dir}/vms")
        self.answers = self.asker.makefile("r", encoding="utf-8")

    def __exit__(self, *unused):
        if self.asker:
            self.answers.close()
            self.asker.close()
        super().__exit__(*unused)

    def say_all(self, lines):
        """All at once; the answers in the order in which they are through."""
        lines = list(lines)
        self.asker.sendall("".join(f"{line}\n" for line in lines).encode())
        return [json.loads(self.answers.readline()) for _ in lines]

    def say(self, line):
        found = self.say_all([line])[0]
        if "error" in found:
            raise Failed(f"{line}: {found['error']}")
        return found

    def smps(self):
        """SMPs that have set something so far: {(attribute, by LID or not): number}."""
        return {(attribute, how == "routed"): int(n) for how, attribute, n in
                re.findall(r"(\w+) (0x\w+) (\d+)\n", self.command("Smps"))}

    def sent(self, before):
        """Of each attribute, since then."""
        now, found = self.smps(), {}
        for (attribute, how), n in now.items():
            found[attribute] = found.get(attribute, 0) + n - before.get((attribute, how), 0)
        return found

    def nodes(self):
        """Hosts and switches: {name: (GUID, {port: (peer, peer's port)}, LID, table)}; no table of a host."""
        found = {}
        for text in self.command("Dump").split("\n\n"):
            head = re.match(r'\s*(Hca|Switch) \d+ "([^"]+)"\tnodeguid (\w+)', text)
            if not head:
                continue
            ports = {int(port): (peer, int(at)) for port, peer, at in
                     re.findall(r'^\[(\d+)\]\t"([^"]+)"\[(\d+)\]', text, re.M)}
            lid = re.search(r"\blid (\d+)", text)
            table = dict((int(a), int(b)) for a, b in re.findall(r" \[(\d+)\](\d+)", text))
            found[head[2]] = (int(head[3], 16), ports, int(lid[1]) if lid else 0,
                              table if head[1] == "Switch" else None)
        return found

    def lids(self):
        return {name: lid for name, (_, _, lid, table) in self.nodes().items() if table is None}

    def settle(self):
        """Until OpenSM has had no reason to sweep for a while."""
        seen = -1
        until = time.monotonic() + PATIENCE
        while seen != (seen := self.status()["paths"]["told"]) or not self.all_active():
            if time.monotonic() > until:
                raise Failed("OpenSM does not come to rest")
            time.sleep(1.5)


class Talk:
    """What is said on a fabric in real time (-r) while VMs move: by hosts that stay, to one another and to the LIDs
    of VMs. homes: {LID: host}; rate: packets a second to VMs, and as many between the others."""

    def __init__(self, fabric, staying, homes, rate):
        self.fabric, self.homes, self.moves = fabric, dict(homes), dict.fromkeys(homes, 0)
        ring = list(zip(staying, staying[1:] + staying[:1]))
        for a, b in ring:
            self._flow(a, b, rate / len(ring))
        for i, lid in enumerate(homes):
            a, b = ring[i % len(ring)]
            self._flow(a, b, rate / len(homes), f"dlid={lid}")
        self.wait_everywhere()

    def _flow(self, a, b, rate, how=""):
        self.fabric.command(f'Flow "{a}" "{b}" message=226 rate={rate * 256 * 8 / 1e9:.9f} poisson=1 {how}')

    def moved(self, a, b):
        """These have changed places."""
        self.homes[a], self.homes[b] = self.homes[b], self.homes[a]
        self.moves[a] += 1
        self.moves[b] += 1

    def _wait(self, wrong, what):
        until = time.monotonic() + PATIENCE
        while found := [flow for flow in self.results()["flows"] if wrong(flow)]:
            if time.monotonic() > until:
                raise Failed(f"{what}: {found}")
            time.sleep(0.1)

    def results(self):
        return json.loads(self.fabric.command("Results json"))

    def wait_everywhere(self):
        """Until each VM has had a packet where it is."""
        self._wait(lambda flow: "dlid" in flow and flow["at"] != self.homes[flow["dlid"]], "not at home")

    def end(self):
        """What has become of all packets. Those for hosts that stay have come; a VM's were taken where it was, and
        then where it is, and by nobody else, or got lost between the two."""
        self.wait_everywhere()
        deadlock = self.fabric.command("Deadlock")
        self.fabric.command("Stop")
        self._wait(lambda flow: flow["sent"] != flow["received"] + flow["lost"], "still under way")
        found = self.results()
        drops = {cause: n for cause, n in found["drops"].items() if n}
        if drops.keys() - {"not_my_lid", "looping"} or "no deadlock" not in deadlock:
            raise Failed(f"{drops}, {deadlock}")
        vms = [flow for flow in found["flows"] if "dlid" in flow]
        others = [flow for flow in found["flows"] if "dlid" not in flow]
        for flow in others:
            if flow["lost"] or not flow["received"]:
                raise Failed(f"of hosts that stay: {flow}, {drops}")
        for flow in vms:
            if flow["places"] > 1 + self.moves[flow["dlid"]]:
                raise Failed(f"somebody else has taken it: {flow}, {self.moves[flow['dlid']]} moves")
        return {"others_sent": sum(flow["sent"] for flow in others), "vms_sent": sum(flow["sent"] for flow in vms),
                "vms_lost": sum(flow["lost"] for flow in vms), "followed": sum(flow["places"] - 1 for flow in vms),
                **drops}


def reached(nodes, start, lid):
    """The host that a packet for a LID comes to, and by how many switches; None: it is lost."""
    at = nodes[start][1][1][0]
    for hops in range(1, 65):
        port = nodes[at][3].get(lid)
        if port not in nodes[at][1]:
            return None, hops
        at = nodes[at][1][port][0]
        if nodes[at][3] is None:
            return at, hops
    return None, 65


def all_reached(nodes):
    """From one host at each switch to every LID."""
    hosts = {lid: name for name, (_, _, lid, table) in nodes.items() if table is None}
    starts = {node[1][1][0]: name for name, node in nodes.items()
              if node[3] is None and 1 in node[1]}
    for start in starts.values():
        for lid, name in hosts.items():
            if name != start and 1 in nodes[name][1]:
                expect(reached(nodes, start, lid)[0] == name, start, lid, name,
                       reached(nodes, start, lid))


def guid_of(fabric, name):
    """Asked with patience: a second is not much on a machine that has other things to do."""
    words = fabric.run("H1", "smpquery", "-t", "20000", "GUIDInfo", str(fabric.lids()[name]))
    return [int(word, 16) for word in re.findall(r"0x[0-9a-f]{16}", words)][1]


def has_guid(fabric, name, guid):
    """What starts or stops a VM is answered before its SMP has arrived."""
    until = time.monotonic() + PATIENCE
    while guid_of(fabric, name) != guid:
        expect(time.monotonic() < until, name, "has GUID", hex(guid), "not", hex(guid_of(fabric, name)))
        time.sleep(0.01)
