#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A subnet manager dies, a standby with the plugin takes over at another host, with nothing of the first one's but
the fabric, and gives back to the first when that returns: each VM keeps its LID and its GUID, also those that were
on their way, and moves on. It dies again, and the standby does not go by what it knew once. The same for one that
is killed and started again without any other. A VM whose port does not say its GUIDs at first keeps its place."""

import json
import os
import struct
import subprocess
import sys
import time

from bed import Client
from managed import TOP, Failed, expect, until
from vms import GUIDS, PATIENCE, PORT, Orchestrated, all_reached, has_guid

FIRST, SECOND, VM = "H1", "H16", 0x2c9000000a00
# A standby that notices soon.
OPTIONS = "polling_retry_number 2\nsminfo_polling_timeout 500\nforce_log_flush TRUE"


class Pair(Orchestrated):
    """Two OpenSMs, each with a directory of its own. self.dir, .sm, .sm_host are those of who is master."""

    def __init__(self, *words, **options):
        super().__init__(*words, conf=OPTIONS, sm_host=FIRST, **options)
        self.second = self.top = None

    def launch_opensm(self, options):
        self.top = self.top or self.dir
        self.dir = f"{self.top}/{self.sm_host}"
        os.makedirs(self.dir, exist_ok=True)
        super().launch_opensm(f"{options} -p {5 if self.sm_host == FIRST else 3}")

    def swap(self):
        """The other one is meant by all that follows."""
        other = self.second or (None, f"{self.top}/{SECOND}", SECOND)
        self.second = self.sm, self.dir, self.sm_host
        self.sm, self.dir, self.sm_host = other
        self.socket = f"{self.dir}/status"

    def launch_standby(self):
        """The other one is started, and knows its master."""
        self.swap()
        self.launch_opensm(self.sm_options)
        until(lambda: "Entering STANDBY state" in self.sm_log(), "a standby")
        self.swap()

    def kill(self):
        self.sm.kill()
        self.sm.wait()

    def taken_over(self, mark):
        """The other one is master, and has set all."""
        self.wait_sm(mark)
        self.reconnect()

    def take_over(self):
        """The master is killed."""
        self.kill()
        self.swap()
        self.taken_over(self.sm_mark())

    def list(self, silent=0):
        """VMs that the master knows of, by repath sm vm list: {GUID: (LID, name of the VF)}. It says how many ports
        are silent."""
        names = {f"{peer[0]:#018x}/{port}": at for peer in self.nodes().values() if peer[3] is not None
                 for port, (at, _) in peer[1].items()}
        said = subprocess.run([f"{TOP}/build/repath", "-j", "sm", "vm", "list", "socket", f"{self.dir}/vms"],
                              capture_output=True, text=True, check=True, timeout=PATIENCE)
        warned = [line for line in said.stderr.splitlines() if "not answered" in line]
        expect(len(warned) == (silent > 0) and (not silent or f" {silent} port" in warned[0]), silent, said.stderr)
        return {int(vm["guid"], 0): (vm["lid"], names[vm["at"]]) for vm in json.loads(said.stdout)}

    def end(self, failed):
        if self.second and self.second[0]:
            self.second[0].kill()
            self.second[0].wait()
        self.dir = self.top or self.dir
        super().end(failed)


def route(nodes, start, end):
    """Ports that lead from a host to another."""
    ways = {start: ()}
    for at in ways_of(nodes, start, ways):
        if at == end:
            return ways[end]
    raise Failed(f"no way from {start} to {end}")


def ways_of(nodes, start, ways):
    wait = [start]
    for at in wait:
        yield at
        for port, (peer, _) in nodes[at][1].items():
            if peer not in ways:
                ways[peer] = (*ways[at], port)
                wait.append(peer)


class Mover:
    """Says to ports what a subnet manager says that moves VMs, as far as it comes."""

    def __init__(self, fabric):
        self.client = Client(fabric, "H2", 77)
        self.nodes, self.tid = fabric.nodes(), 0

    def ask(self, how, host, attribute, *data):
        self.tid += 1
        how(self.tid, int(attribute, 0), *data, *route(self.nodes, "H2", host))
        status, tid, mad = self.client.hear(30)
        expect((status, tid, mad[4:6]) == (0, self.tid, b"\x80\0"), host, attribute, status, tid, mad[:24].hex())
        return mad[64:128]

    def lid(self, host, lid):
        info = bytearray(self.ask(self.client.get, host, PORT))
        struct.pack_into(">H", info, 16, lid)
        info[32] &= 0xf0        # the port's state does not change
        info[33] = 2
        self.ask(self.client.set, host, PORT, bytes(info))

    def guid(self, host, guid):
        self.ask(self.client.set, host, "0x14", struct.pack(">QQ48x", 0, guid))


def steps(mover, vm, lid, other, source, to):
    """In the order in which the plugin sends them."""
    return (lambda: mover.lid(to, lid), lambda: mover.guid(to, vm), lambda: mover.guid(source, 0),
            lambda: mover.lid(source, other))


class Vms:
    """What is where: {GUID: (LID, VFs where it may be)}."""

    def __init__(self, fabric):
        self.fabric, self.all = fabric, {}

    def start(self, number, host):
        answer = self.fabric.say(f"start {VM + number:#x} {self.fabric.lids()[host]}")
        has_guid(self.fabric, host, VM + number)
        self.all[VM + number] = answer["lid"], (host,)

    def move(self, number, to, how=""):
        lid, _ = self.all[VM + number]
        answer = self.fabric.say(f"move {VM + number:#x} {self.fabric.lids()[to]} {how}")
        expect((answer["state"], answer["lid"]) == ("moved", lid), answer)
        self.all[VM + number] = lid, (to,)

    def right(self, when):
        """All are where they were, with LID and GUID, the subnet manager knows it, and all are reached."""
        nodes, listed = self.fabric.nodes(), self.fabric.list()
        expect(listed.keys() == self.all.keys(), when, listed, self.all)
        for guid, (lid, places) in self.all.items():
            expect(listed[guid][0] == lid and listed[guid][1] in places, when, hex(guid), listed[guid], lid, places)
            place = listed[guid][1]
            expect(nodes[place][2] == lid, when, hex(guid), place, nodes[place][2], lid)
            has_guid(self.fabric, place, guid)
            self.all[guid] = lid, (place,)
        free = [name for name, node in nodes.items() if "v" in name and node[3] is None and
                (node[2], (name,)) not in self.all.values()]
        for name in free:
            has_guid(self.fabric, name, 0)
        all_reached(nodes)
        self.fabric.judge()


def killed_in_move(fabric, number, to):
    """Of a move something has been sent, and nobody hears an answer: the destination obeys, and says nothing."""
    lid, before = fabric.lids()[to], fabric.smps()
    fabric.command(f'Fault "{to}"[1] mute={PORT}')
    fabric.asker.sendall(f"move {VM + number:#x} {lid}\n".encode())
    end = time.monotonic() + PATIENCE
    while not sum(fabric.sent(before).values()):
        expect(time.monotonic() < end, "something is sent")
    fabric.kill()
    fabric.command(f'Fault "{to}"[1] mute=0')
    # Who is slow to kill it hears that it has waited in vain.
    said = fabric.answers.readline()
    expect(not said or json.loads(said).get("state") == "unfinished", said)


def unanswered(fabric, vms, number):
    """The second one has been master for a while, and a VM's port has not said its GUIDs: nobody takes the VM's
    place. It is asked again until it does."""
    lid, (host,) = vms.all[VM + number]
    until(lambda: "does not say its GUIDs" in fabric.sm_log(), "it is asked")
    fabric.reconnect()
    until(lambda: "not known" in (said := fabric.say_all([f"start {VM + 99:#x} {lid}"])[0].get("error", "")) or
          expect(said, "its place is taken"), "the subnet is up")
    expect(VM + number not in fabric.list(silent=1), "it is known")
    fabric.command(f'Fault "{host}"[1] mute=0')


def handed_over(mode, back=True):
    """To the second and back, and to the second again."""
    with Pair("xgft:4,4/1,4,vswitch=2", "-R ftree", vswitch=mode) as fabric:
        vms = Vms(fabric)
        for number, host in enumerate(("H1v1", "H2v2", "H3v1", "H4v1", "H5v1", "H6v1", "H7v1", "H8v1", "H14v2"), 1):
            vms.start(number, host)
        vms.move(1, "H9v1")
        vms.move(2, "H3v2", "limited")
        fabric.launch_standby()
        vms.right("before")
        # Begun here, ended nowhere; and one whose answer nobody hears.
        fabric.say(f"begin {VM + 3:#x} {fabric.lids()['H10v1']}")
        lids = fabric.lids()
        fabric.command(f'Fault "H14v2"[1] mute={GUIDS}')
        killed_in_move(fabric, 4, "H11v1")
        vms.all[VM + 4] = lids["H4v1"], ("H4v1", "H11v1")
        # Four more, each a step further than the one before.
        mover = Mover(fabric)
        for number, (source, to) in enumerate((("H5v1", "H12v1"), ("H6v1", "H13v1"), ("H7v1", "H14v1"),
                                               ("H8v1", "H15v1")), 1):
            vm = VM + 4 + number
            for step in steps(mover, vm, lids[source], lids[to], source, to)[:number]:
                step()
            vms.all[vm] = lids[source], ((source,), (source, to), (to,), (to,))[number - 1]
        mover.client.close()
        fabric.swap()
        unanswered(fabric, vms, 9)
        fabric.taken_over(0)
        vms.right("the second has taken over")
        answer = fabric.say_all([f"end {VM + 3:#x}"])[0]
        expect("no move of it has begun" in answer.get("error", ""), answer)
        vms.move(3, "H10v1")
        vms.move(1, "H1v2", "closed")
        vms.move(6, "H2v1")
        if not back:
            vms.right("moved there")
            return
        fabric.say(f"begin {VM + 2:#x} {fabric.lids()['H11v2']}")
        # The first one has its priority, and what it remembers of LIDs.
        mark = len(fabric.sm_log())
        fabric.swap()
        fabric.launch_opensm(fabric.sm_options)
        fabric.taken_over(0)
        vms.right("the first is back")
        vms.move(2, "H12v2")
        vms.move(5, "H5v2" if vms.all[VM + 5][1] == ("H5v1",) else "H5v1")
        fabric.swap()
        expect("Entering STANDBY state" in fabric.sm_log()[mark:], fabric.sm_log()[mark:])
        fabric.swap()
        fabric.take_over()
        vms.right("the second again")
        answer = fabric.say_all([f"end {VM + 2:#x}"])[0]
        expect("no move of it has begun" in answer.get("error", ""), answer)
        vms.move(2, "H11v2")
        # Killed before a sweep, and started again: what it remembers is of before the moves.
        fabric.kill()
        fabric.launch_opensm(fabric.sm_options)
        fabric.taken_over(0)
        vms.right("started again")
        vms.move(2, "H2v2")
        vms.right("moved")


def main():
    handed_over("prepopulated")
    handed_over("dynamic", back=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
