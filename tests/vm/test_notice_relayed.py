# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A hypervisor relays what the subnet manager says to guests whose VFs share its port: the PF in one
guest, two VFs in two others. Stock OpenSM reroutes; the PF's host has one subscription and is told
once, and the queue pairs of all three are moved. What a guest says on the channel is refused and
counted, and when it listens again it has what it missed."""

import re
import shlex
import struct
import time

from agent import Refused, connect
from hypervisor import give_agent, relay
from test_notice_heard import count, paths, subscriptions, wait_count, wait_subscribed
from test_sm_plugin import told
from tracking import repath, user_qps
from traffic import Pair, json_lines

GUESTS = 3

# IBA 13.4.8.2 and include/repath_sm.h: type, producer, trap; mask .. number; path record.
NOTICE = struct.Struct(">B3sHHH QBBHIII30x 16x 8x16x16xHHIBBHHBBBB6x 56x")
SLID, DLID, SL = (1 << bit for bit in (5, 4, 15))


def service_level(pf, slid, dlid):
    text = pf.run(f"saquery -C vhca1 -t 8000 --src-to-dst {slid}:{dlid}")
    return int(re.search(r"\bsl\.+(?:0x)?(\w+)", text)[1], 16)


def wait_moved(guest, dev, dlid, sl, number, timeout=60):
    """Wait until the queue pairs of @dev to @dlid are on @sl, moved by the module."""
    end = time.monotonic() + timeout
    while True:
        found = [qp for (name, _), qp in user_qps(guest, "state RTS").items()
                 if name == dev and qp["dlid"] == dlid and qp["sl"] == sl and "moved-by" in str(qp)]
        if len(found) == number:
            return
        if time.monotonic() > end:
            raise TimeoutError((guest, user_qps(guest), repath(guest, "path")))
        time.sleep(0.3)


def said(job, event, path):
    """The last line of the relay about an event of one guest."""
    lines = [line for line in json_lines(job.output(), "event")
             if line["event"] == event and line["socket"] == path]
    return lines[-1] if lines else None


def one_subscription(pf, vms):
    for vm, dev in vms:
        sm, = repath(vm, f"path sm dev {dev}")
        assert sm["state"] == "relayed", sm
    # Of H1, whatever its functions asked for before, and of H5.
    assert [trap for _, trap in subscriptions(pf)] == ["68", "69"] * 2, subscriptions(pf)


def notice(slid, dlid, sl):
    """A RePath as a hypervisor would be told."""
    return NOTICE.pack(0x83, b"\0\0\4", 69, 0, 0, SLID | DLID | SL, 0, 1, 0, 1, 1, 1,
                       dlid, slid, 0, 0, 0x80, 0, sl, 0, 0, 0, 0).hex()


def port_of_agent(vm):
    return vm.run("for p in /sys/class/virtio-ports/*; do "
                  "[ $(cat $p/name) = repath.0 ] && echo /dev/${p##*/}; done").strip()


def only_its_own(pf, vms, stranger, lids):
    """Each VF has been told what its own port was, as often, and the one that nobody relays to nothing."""
    heard = {dev: count(pf, dev, "notice-rx") - count(pf, dev, "notice-again")
             for dev in ("vhca1", "vhca5")}
    assert heard["vhca1"] and heard["vhca5"], heard
    for vm, dev in vms:
        wait_count(vm, dev, "notice-relayed", heard["vhca1"])
        assert count(vm, dev, "notice-relayed") == heard["vhca1"], (dev, heard)
        assert count(vm, dev, "notice-rx") == 0
        assert {path["slid"] for path in repath(vm, f"path dev {dev}")} == {lids[0]}
    vm, dev = stranger
    for name in "notice-relayed", "notice-rx", "notice-repath", "notice-unpath":
        assert count(vm, dev, name) == 0, (dev, name)
    assert not any(path["relayed"] for path in repath(vm, f"path dev {dev}")), repath(vm, "path")
    return heard


def not_begun(vm, dev, lids):
    """A notice for a VF whose hypervisor has not begun to tell it anything."""
    agent = connect(vm.agent_path)
    try:
        agent.ask("relay", dev=dev, port=1, notice=notice(lids[1], lids[0], 9))
        raise AssertionError(f"{dev} has taken what it was not told to expect")
    except Refused as refused:
        assert refused.answer["code"] == "ENOTCONN", refused.answer
    finally:
        agent.close()
    assert count(vm, dev, "notice-relayed") == 0
    assert all(path["sl"] != 9 for path in repath(vm, f"path dev {dev}"))


def nothing_upward(fabric, job, agent, vm, other, lids):
    """A guest says to its hypervisor what that would say to it, while it is told something itself. It
    misses that, and makes it good when it listens again; the others are told as ever."""
    pf, (vm, dev) = fabric.guest, vm
    agent.kill(9)
    agent.wait(20, check=False)
    line = (f'{{"id":1,"cmd":"relay","dev":"vhca1","port":1,"notice":"{notice(*lids, 9)}"}}\n'
            '{"id":1,"ok":true}')
    assert len(notice(*lids, 9)) == 400
    liar = vm.start(f"while sleep 0.3; do printf '%s\\n' {shlex.quote(line)}; done "
                    f"> {port_of_agent(vm)}")
    fabric.command('ReLink "S2"[4]')
    job.wait_for(r'"refused","socket":"/run/vm1.agent"')
    wait_moved(*other, lids[1], 0, 2)
    assert said(job, "refused", "/run/vm1.agent")["refused"] > 0
    assert said(job, "refused", "/run/vm2.agent") is None
    assert count(pf, "vhca1", "notice-relayed") == count(pf, "vhca5", "notice-relayed") == 0
    assert all(path["sl"] != 9 for path in paths(pf, "vhca1").values())
    begun = said(job, "begun", "/run/vm1.agent")["begun"]
    liar.kill(9)
    liar.wait(20, check=False)
    vm.start("exec repath agent")
    end = time.monotonic() + 60
    while said(job, "begun", "/run/vm1.agent")["begun"] == begun:
        if time.monotonic() > end:
            raise TimeoutError(job.output())
        time.sleep(0.2)
    wait_moved(vm, dev, lids[1], 0, 2)


def refused(pf):
    """A device that is not there is waited for; one that has no InfiniBand port of that number is not."""
    for port, why, ends in (("vhca9/1", "it is waited for", False),
                            ("vhca1/2", "no such InfiniBand port; repath path sm lists them", True)):
        said = pf.run(f"timeout 5 repath relay {port} to /run/vm1.agent vhca1v1/1 2>&1; echo $?", check=False)
        assert why in said and (said.split()[-1] == "1") == ends and "begun" not in said, said


def test(bed):
    fabric = bed.fabric("mesh:3x2,shared=2", opensm="-R lash -Q", repath="method auto", memory=320,
                        guests={"pf": ["H1", "H5"], "vm1": ["H1v1"], "vm2": ["H1v2", "H5v1"]})
    pf, vm1, vm2 = fabric.guests
    vms = ((vm1, "vhca1v1"), (vm2, "vhca1v2"))
    for guest in fabric.guests:
        guest.load_repath()
    agents = [vm.start("exec repath agent") for vm, _ in vms]
    wait_subscribed(pf, ("vhca1", "vhca5"))
    refused(pf)
    job = relay(pf, "vhca1", *((give_agent(pf, vm), dev) for vm, dev in vms))
    one_subscription(pf, vms)
    lids = fabric.lid("H1"), fabric.lid("H5")
    assert service_level(pf, *lids) == 0
    pairs = [Pair(pf, vm, "-q 2 -n 4 -b -r 40", port=18600 + i, each_options="-i 0.5",
                  server_options="-d vhca5") for i, (vm, _) in enumerate(vms)]
    for pair in pairs:
        pair.wait_running()

    fabric.command('Unlink "S2"[4]')
    told(fabric)
    sl = service_level(pf, *lids)
    assert sl != 0
    for vm, dev in vms:
        wait_moved(vm, dev, lids[1], sl, 2)
        path = paths(vm, dev)[lids[1]]
        assert path["relayed"] and path["sl"] == sl, path
    for pair in pairs:
        pair.wait_progress(20)
    heard = only_its_own(pf, vms, (vm2, "vhca5v1"), lids)
    status = fabric.repath_status()["signal"]
    print(f"  notices by port: {heard}; {status}", flush=True)
    assert status["subscribers"] == 2, status

    nothing_upward(fabric, job, agents[0], *vms, lids)
    for pair in pairs:
        pair.finish()
    job.kill(15)
    job.wait(20, check=False)
    not_begun(vm2, "vhca5v1", lids)
