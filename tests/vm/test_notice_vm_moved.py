# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A VM's VF goes to the PF of another server with its vGUID, and so to another LID (paper VI). Three PFs
in one guest, as three servers, and a VM on two of them. The subnet manager tells each server once, these
tell their VMs, and who talks to the VM follows: a process's queue pairs under the shim, and IPoIB, that is
lost for good when nobody tells it. The flow of a bystander to the server that the VM has left, the same
LID until then, is not touched."""

import re
import time

from hypervisor import give_agent, relay
from move import SHIM, moving
from move_fabric import FabricMover
from test_notice_heard import count, subscriptions, wait_count, wait_subscribed
from tracking import user_qps
from traffic import Pair, json_lines

PENDING = "too new to run with all"
TIMEOUT = 400
GUESTS = 3

VGUID = 0x0002c9ff00000001
PFS = ("vhca1", "vhca2", "vhca3")
PING = "exec ping -D -i 0.2 10.9.0.1"


class VfMover(FabricMover):
    """What moves is a VF: its GID stays, and nothing else."""

    def release(self, guest):
        host = self.host(guest)
        self.vguid, self.guid = self.fabric.vguid(host), self.fabric.guids[host]
        self.fabric.remove(host)
        self.fabric.set_vguid(host, "none")

    def add_elsewhere(self, guest):
        self.moves += 1
        host = self.spare.pop(0)
        self.fabric.set_vguid(host, self.vguid)
        self.fabric.add(host, name=self.device(guest), guest=guest, guid=self.guid)
        self.fabric.wait_active([host])
        ipoib(guest, 1)

    @staticmethod
    def check_numbers(before, after):
        assert before.pop("gid") == after["gid"], (before, after)
        FabricMover.check_numbers(before, after)


def ipoib(vm, number):
    """Loaded when the VF has its GUID: it looks for that once."""
    vm.run("if grep -q ^ib_ipoib /proc/modules; then rmmod ib_ipoib; fi; "
           "insmod /lib/repath/ib_ipoib.ko; "
           f"ip address add 10.9.0.{number}/24 dev ib0; ip link set ib0 up")


def replies(ping):
    """When they came."""
    return [float(t) for t in re.findall(r"^\[([\d.]+)\] 64 bytes from", ping.output(), re.M)]


def explain(vm, dev):
    print(f"--- {vm}", vm.run(
        "mount -t debugfs none /sys/kernel/debug; grep . /sys/kernel/debug/ipoib/ib0_*;"
        f"ip neigh; ip -s link show ib0; repath path; repath stats dev {dev}", check=False), flush=True)


def wait_reply(fabric, ping, after=0.0, timeout=60):
    """The first reply that came later than @after by the guest's clock: when."""
    end = time.monotonic() + timeout
    while not (later := [t for t in replies(ping) if t > after]):
        if time.monotonic() > end:
            explain(fabric.guests[1], "vhca1v1")
            explain(fabric.guests[2], "vhca3v1")
            raise AssertionError(ping.output()[-500:])
        time.sleep(0.2)
    return later[0]


def gap(times):
    return max(b - a for a, b in zip(times, times[1:]))


def rates(pair):
    """Messages a second of a pair's server, half a second each."""
    return [line["rate"] for line in json_lines(pair.server.output(), "rate")]


def told(fabric, before):
    """Registrations are two a server, and notices one a server, however many VMs these have."""
    pf, vm1, vm2 = fabric.guests
    status = fabric.repath_status()
    assert status["signal"]["subscribers"] == len(PFS), status
    assert len(subscriptions(pf)) == 2 * len(PFS), subscriptions(pf)
    assert status["moves"]["moves"] == 1 and status["moves"]["notices"] == len(PFS), status
    for pf_dev, old in zip(PFS, before):
        wait_count(pf, pf_dev, "notice-repath", old + 1)
    print(f"  {status['signal']}\n  {status['moves']}", flush=True)


def with_signal(fabric, mover, jobs, sockets):
    pf, vm1, vm2 = fabric.guests
    before = [count(pf, dev, "notice-repath") for dev in PFS]
    relayed = count(vm2, "vhca3v1", "notice-relayed")
    bystander = Pair(pf, vm2, "-q 2 -n 4 -b -r 60 -m send,write", port=18700,
                     server_options="-d vhca1")
    pair = Pair(vm1, vm2, "-q 2 -n 4 -b -k 4 -r 60 -m all --vary -s 8000", env=SHIM)
    ping = vm2.start(PING)
    for one in (bystander, pair):
        one.wait_running()
    wait_reply(fabric, ping)
    left = fabric.lid("H1")
    jobs["vm1"].kill(15)
    mark = len(rates(bystander))
    mover.swap(vm1, inflight=False)
    lid = fabric.lid("H2v1")
    assert lid == fabric.lid("H2") != left
    jobs["vm1"] = relay(pf, "vhca2", (sockets["vm1"], "vhca1v1"))
    wait_count(vm2, "vhca3v1", "notice-relayed", relayed + 1)
    wait_reply(fabric, ping, replies(ping)[-1])
    pair.wait_progress(50)
    bystander.wait_progress(60)
    told(fabric, before)
    found = list(user_qps(vm2, "state RTS").values())
    assert sorted(qp["dlid"] for qp in found) == sorted([left] * 2 + [lid] * 2), found
    assert not any("moved-by" in qp for qp in found if qp["dlid"] == left), found
    print(f"  IPoIB was away for {gap(replies(ping)):.1f} s; bystander, messages a second: "
          f"{rates(bystander)[:mark]}, with the move: {rates(bystander)[mark:]}", flush=True)
    for one in (bystander, pair):
        one.finish()
    ping.kill(9)


def without_signal(fabric, mover, jobs, sockets):
    """The same back, and VM 2 is not told."""
    pf, vm1, vm2 = fabric.guests
    jobs["vm2"].kill(15)
    vm2.run("repath path listen vhca3v1 off")
    ping = vm2.start(PING)
    wait_reply(fabric, ping)
    jobs["vm1"].kill(15)
    mover.release(vm1)
    mover.new_device(vm1)
    now = float(vm2.run("date +%s"))
    time.sleep(6)
    assert not [t for t in replies(ping) if t > now + 1], ping.output()[-500:]
    vm2.run("repath path listen vhca3v1 on")
    jobs["vm2"] = relay(pf, "vhca3", (sockets["vm2"], "vhca3v1"))
    back = wait_reply(fabric, ping, now + 1)
    print(f"  IPoIB was away for {gap(replies(ping)):.1f} s, until it was told", flush=True)
    assert back
    ping.kill(9)


def test(bed):
    fabric = bed.fabric("mesh:3,shared=2", repath="", memory=320,
                        vguids={"H1v1": VGUID},
                        guests={"pf": ["H1", "H2", "H3"], "vm1": ["H1v1"], "vm2": ["H3v1"]})
    pf, vm1, vm2 = fabric.guests
    with moving(*fabric.guests, mover=VfMover(fabric, spare=["H2v1", "H1v2"])) as mover:
        wait_subscribed(pf, PFS)
        for number, vm in enumerate((vm1, vm2), 1):
            vm.start("exec repath agent")
            ipoib(vm, number)
        sockets = {vm.name: give_agent(pf, vm) for vm in (vm1, vm2)}
        jobs = {"vm1": relay(pf, "vhca1", (sockets["vm1"], "vhca1v1")),
                "vm2": relay(pf, "vhca3", (sockets["vm2"], "vhca3v1"))}
        with_signal(fabric, mover, jobs, sockets)
        without_signal(fabric, mover, jobs, sockets)
