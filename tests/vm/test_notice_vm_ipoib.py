# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""IPoIB to a VM that goes to another server with its vGUID (paper VI, figure 5): with the signal it comes
back, and without it does not, until that is given."""

import re
import time

from test_notice_heard import count
from vm_moves import VfMover, servers, start_relays

TIMEOUT = 400
GUESTS = 3

PING = "exec ping -D -i 0.2 10.9.0.1"


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


def move(fabric, mover, relays, dev):
    """VM 1 to the server of @dev. It has another queue pair there, and so another hardware address: others
    hear of that when it asks for theirs, as whoever begins to talk does. (Else they notice when theirs
    is too old, which takes up to a minute.)"""
    vm1 = fabric.guests[1]
    relays.stop(vm1)
    mover.release(vm1)
    mover.add_elsewhere(vm1)
    ipoib(vm1, 1)
    relays.start(vm1, dev, "vhca1v1")
    vm1.start("exec ping -i 0.5 10.9.0.2")


def test(bed):
    fabric = servers(bed)
    pf, vm1, vm2 = fabric.guests
    for guest in fabric.guests:
        guest.load_repath()
    mover = VfMover(fabric, spare=["H2v1", "H1v2"])
    relays = start_relays(fabric)
    for number, vm in enumerate((vm1, vm2), 1):
        ipoib(vm, number)
    ping = vm2.start(PING)
    wait_reply(fabric, ping)
    told = count(vm2, "vhca3v1", "path-kernel-told")
    move(fabric, mover, relays, "vhca2")
    wait_reply(fabric, ping, replies(ping)[-1])
    assert count(vm2, "vhca3v1", "path-kernel-told") > told, told
    print(f"  with the signal away for {gap(replies(ping)):.1f} s", flush=True)
    ping.kill(9)

    relays.stop(vm2)
    vm2.run("repath path listen vhca3v1 off")
    ping = vm2.start(PING)
    wait_reply(fabric, ping)
    move(fabric, mover, relays, "vhca1")
    there = float(vm2.run("date +%s")) + 1
    told = count(vm2, "vhca3v1", "path-kernel-told")
    time.sleep(8)
    assert count(vm2, "vhca3v1", "path-kernel-told") == told, told
    assert not [t for t in replies(ping) if t > there], ping.output()[-500:]
    vm2.run("repath path listen vhca3v1 on")
    relays.start(vm2, "vhca3", "vhca3v1")
    wait_reply(fabric, ping, there)
    print(f"  without it away for {gap(replies(ping)):.1f} s, until it was told", flush=True)
    ping.kill(9)
