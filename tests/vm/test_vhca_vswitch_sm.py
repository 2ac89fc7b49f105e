# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A VM is live-migrated to another server's QEMU with its VF (SR-IOV as a vSwitch), there and back, and OpenSM's
plugin is told before and after: its LID and GID come along, forwarding entries change places, nothing is routed.

There, the VF's state goes with the VM's, as where the HCA can hand it over: nobody has the module or the shim, and
no queue pair is modified, at neither end. Back, by repath-migrate and with another VF: the peer connects to new
queue pair numbers at the address that it has."""

import json
import re
import socket
import time

import agent
import move
from move import SHIM, moving
from move_fabric import MigratingMover
from test_vhca_vswitch import VfMover
from traffic import Pair

GUESTS = 3
SOCKET = "/run/osm-repath-vm.sock"
FIRST_VF = 3            # its port of the vSwitch: the cable and the PF come first
TABLE = "0x19"          # the attribute of SMPs with forwarding entries
TRACE = "/sys/kernel/tracing"
MIX = "-q 4 -n 8 -b -k 4 -m all --vary -s 20000"


class Orchestrator:
    """Says what it does, at the first server, and counts what it costs."""

    def __init__(self, fabric):
        self.fabric = fabric

    def say(self, words):
        return json.loads(self.fabric.guest.run(f"repath -j sm vm {words} socket {SOCKET}", timeout=60))

    def smps(self):
        """SMPs that have set something so far, of each attribute."""
        found = {}
        for attribute, n in re.findall(r"\w+ (0x\w+) (\d+)\n", self.fabric.command("Smps")):
            found[attribute] = found.get(attribute, 0) + int(n)
        return found

    def place(self, host):
        """A VF's, as vfabric wants it and the plugin: H1v2 is port 4 of H1-hca."""
        server, _, number = host.partition("v")
        port = FIRST_VF - 1 + int(number)
        guid = self.fabric.command(f'Dump "{server}-hca"').split("nodeguid ")[1].split()[0]
        return f'"{server}-hca"[{port}]', f"0x{guid}/{port}"

    def begin(self, host, to):
        self.vf = self.fabric.port_guid(host)
        self.lid = self.fabric.lid(host)
        self.known = self.fabric.repath_status()["vms"]
        self.sent = self.smps()
        self.fabric.command("Journal 10000")
        self.moves = f"{self.vf:#x} {self.place(to)[1]}"
        self.begun = self.say(f"begin {self.moves}")
        assert self.begun["state"] == "begun" and self.begun["switches"] >= 1, self.begun

    def wait_swept(self, timeout=60):
        """OpenSM has seen that the VF has gone, and has nothing more to set."""
        self.fabric.guest.wait_until(
            f"repath sm vm plan {self.moves} socket {SOCKET} 2>&1 | grep -q 'no such VM'", timeout)
        end, before = time.monotonic() + timeout, None
        while before != (before := self.smps()):
            assert time.monotonic() < end, before
            time.sleep(0.5)

    def end(self):
        """Tables have been written as planned, and nothing else for the move."""
        self.wait_swept()
        before = self.smps()
        self.ended = self.say(f"end {self.vf:#x}")
        assert self.ended["state"] == "moved" and self.ended["lid"] == self.lid, self.ended
        assert not self.ended["lid_smps"] and not self.ended["guid_smps"], self.ended
        for key in ("from", "to", "switches", "smps", "vswitch_smps"):
            assert self.ended[key] == self.begun[key], (self.begun, self.ended)
        self.tables = self.smps().get(TABLE, 0) - before.get(TABLE, 0)
        assert self.tables == self.ended["smps"] + self.ended["vswitch_smps"], (self.tables, self.ended)

    def entries(self):
        """What each switch's entry for the VM has been since it began, without repetitions."""
        found = {}
        for name, block in re.findall(rf'^\d+ block "(.+)" {self.lid // 64} (\w+)$', self.fabric.command("Journal"), re.M):
            entry = int(block[2 * (self.lid % 64):][:2], 16)
            if found.setdefault(name, [entry])[-1] != entry:
                found[name].append(entry)
        return found

    def arrived(self):
        """OpenSM has seen it there. Sweeps have routed nothing, and what they have written, as ports of vSwitches came and
        went, has for the VM what was there before the move or what that has set."""
        now = self.fabric.repath_status()["vms"]
        sent = {key: n - self.sent.get(key, 0) for key, n in self.smps().items()}
        print(f"  {self.ended}\n  on the wire, with all sweeps: {sent}", flush=True)
        assert now["computed"] == self.known["computed"] and now["reused"] > self.known["reused"], now
        assert now["expected"] == 0, now
        entries = self.entries()
        assert max(map(len, entries.values())) == 2, entries
        changed = sum(len(entry) == 2 for entry in entries.values())
        assert changed == self.ended["switches"] + self.ended["vswitch_smps"] == self.tables, (entries, self.ended)


def count_modified(guest):
    """From now on: which queue pairs are modified, by whomever."""
    guest.run(f"mountpoint -q {TRACE} || mount -t tracefs none {TRACE};"
              f"echo p:modified rdmavt:rvt_modify_qp >> {TRACE}/kprobe_events;"
              f"echo 1 > {TRACE}/events/kprobes/modified/enable")


def modified(guest):
    return int(guest.run(f"cat {TRACE}/kprobe_profile").split()[1])


def carry(fabric, vm, host, to, orchestrator):
    """QEMU moves the VM with its VF's state, and the VFs change places when it stands still."""
    (old, _), (new, _) = orchestrator.place(host), orchestrator.place(to)
    orchestrator.begin(host, to)
    dst = vm.prepare_destination()
    vm.qemu.qmp("migrate-set-capabilities",
                capabilities=[{"capability": "pause-before-switchover", "state": True}])
    vm.start_migration(dst)
    while (status := vm.qemu.qmp("query-migrate")["status"]) != "pre-switchover":
        assert status in ("setup", "active"), status
        time.sleep(0.01)
    for name in (host, to):
        fabric.command(f'Unlink "{name}"[1]')
    orchestrator.end()
    fabric.command(f'Link "{host}"[1] {new}')
    fabric.command(f'Link "{to}"[1] {old}')
    vm.qemu.qmp("migrate-continue", state="pre-switchover")
    vm.adopt(dst)
    fabric.wait_active([host])


class ToldMover(MigratingMover):
    """By repath-migrate, with another VF. Before that is attached the orchestrator is asked, by TCP."""

    check_numbers = staticmethod(VfMover.check_numbers)

    def __init__(self, fabric, spare, orchestrator):
        super().__init__(fabric, spare)
        self.orchestrator = orchestrator
        self.asked = socket.create_server((fabric.address, 0))
        self.asked.settimeout(120)

    def guid_there(self, old):
        return self.fabric.guids[old]

    def comes(self, old, new, name):
        address, port = self.asked.getsockname()
        return f"{{ nc {address} {port} </dev/null; {super().comes(old, new, name)}; }}"

    def meanwhile(self, old, new):
        with self.asked, self.asked.accept()[0]:
            self.orchestrator.end()

    def migrate(self, guest, mode="early"):
        self.orchestrator.begin(self.host(guest), self.spare[0])
        return super().migrate(guest, mode)


def stock(fabric, vms, orchestrator):
    """To the first server, with all that the VF knows."""
    def all_numbers():
        return [move.numbers(guest, "rcheck", fabric.hosts[host])
                for guest, host in zip(vms, ("H1v1", "H2v1"))]

    for guest in vms:
        count_modified(guest)
    pair = Pair(*vms, f"{MIX} -r 400", "-i 0.5 --timeout 19")     # seconds, in all its retries
    pair.wait_running()
    before, counts = all_numbers(), [modified(guest) for guest in vms]
    carry(fabric, vms[1], "H2v1", "H1v2", orchestrator)
    pair.wait_progress(50)
    orchestrator.arrived()
    assert before == all_numbers(), (before, all_numbers())
    assert all(counts) and counts == [modified(guest) for guest in vms], counts
    client, _ = pair.finish()
    print(f"  rcheck: gap {client['max_gap_ms']} ms, {client['msgs']} messages", flush=True)


def test(bed):
    fabric = bed.fabric("mesh:2,vswitch=2", opensm="-R minhop", memory=320,
                        repath=f"vswitch prepopulated\nvswitch_socket {SOCKET}",
                        guests={"pf": ["H1"], "vm1": ["H1v1"], "vm2": ["H2v1"]})
    vms, orchestrator = fabric.guests[1:], Orchestrator(fabric)
    stock(fabric, vms, orchestrator)
    vms[1].plug("rdma")
    serving = agent.serve(vms[1])
    with moving(*fabric.guests, mover=ToldMover(fabric, ["H2v2"], orchestrator)) as mover:
        pair = Pair(*vms, MIX, env=SHIM)
        pair.wait_running()
        mover.migrate(vms[1])
        pair.wait_progress(50)
        orchestrator.arrived()
        pair.finish()
    assert serving.running, serving.output()
