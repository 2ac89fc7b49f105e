# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The agents of a software HCA, asked by stock tools: LMC, SMInfo, a port that is disabled and enabled,
an M_Key that is asked for, packets with a wrong P_Key or Q_Key, the traps that tell the subnet
manager of it, and PortXmitWait."""

import re

# The fabric is as busy as a guest: alone.
GUESTS = 2

LMC = 3
KEY = "0x77"
PARTITIONS = "Default=0x7fff,ipoib:ALL=full;\\nblue=0x0001:ALL=full;\\n"

# A datagram with another Q_Key than its receiver's.
BAD_QKEY = """
    open a vhca1 1 ud
    open b vhca2 1 ud
    connect a b
    recv b 2
    send a 1 64 badkey
    done a send 1 success
    send a 1 64
    done b recv 1 success
"""

# From a queue pair of the second partition to one of the first, which is still there when it comes:
# tried for half a second.
BAD_PKEY = """
    open a vhca1 1 pkey=1
    open b vhca2 1
    connect a b timeout=14 retry=7
    recv b 1
    send a 1 64
    done a send 1 transport_retry_counter_exceeded
    quiet b 100
    fails done b recv 1 success 1
"""


def fails(a, command):
    job = a.start(command)
    job.wait(30, check=False)
    assert job.status, f"{command}: {job.output()}"


def wait_notice(a, number, since):
    a.wait_until(f"tail -n +{since} /run/opensm-H1/log | grep -q 'num:{number}'", timeout=30)


def log_end(a):
    return int(a.run("wc -l < /run/opensm-H1/log")) + 1


def lids(a, fabric):
    """A port answers by all of its LIDs, and by no other."""
    lid = fabric.lid("H2")
    assert lid % (1 << LMC) == 0 and abs(lid - fabric.lid("H1")) >= 1 << LMC
    info = a.run(f"smpquery -C vhca1 portinfo {lid + 5} 1")
    assert f"Lid:.............................{lid}\n" in info, info
    assert f"LMC:.............................{LMC}\n" in info, info
    a.run(f"perfquery -C vhca1 {lid + (1 << LMC) - 1} 1")
    fails(a, f"smpquery -C vhca1 -t 300 nodeinfo {lid + (1 << LMC)}")


def manager(a, fabric):
    for device in ("vhca1", "vhca2"):
        assert "SMINFO_MASTER" in a.run(f"sminfo -C {device}")
    # There is none at this port.
    fails(a, f"sminfo -C vhca1 -t 300 {fabric.lid('H2')}")


def link(a, fabric):
    """The switch at its cable turns the port off and on, and the manager makes it ACTIVE again."""
    net = a.run("ibnetdiscover -C vhca1")
    port = re.search(r'^\[(\d+)\].*"H2 vhca" lid', net, re.M)
    found = re.search(r'^Switch.*# "S2".* lid (\d+)', net, re.M)
    assert port and found, net
    state = "/sys/class/infiniband/vhca2/ports/1/state"
    a.run(f"ibportstate -C vhca1 {found[1]} {port[1]} disable")
    a.wait_until(f"grep -q DOWN {state}", timeout=30)
    a.run(f"ibportstate -C vhca1 {found[1]} {port[1]} enable")
    fabric.wait_active(["H2"])


def key(a, fabric):
    """At level 2 nobody reads without it either; who tries is counted, and told of by trap 256."""
    at = f"{fabric.lid('H2')} 1"
    a.run(f"ibportstate -C vhca1 {at} mkey {KEY} mkeyprot 2")
    since = log_end(a)
    fails(a, f"smpquery -C vhca1 -t 300 portinfo {at}")
    wait_notice(a, 256, since)
    fails(a, f"ibportstate -C vhca1 -t 300 -y 0x78 {at} mkeyprot 0")
    info = a.run(f"smpquery -C vhca1 -K -y {KEY} portinfo {at}")
    assert re.search(r"^Mkey:\.+0x0*77$", info, re.M), info
    assert int(re.search(r"^MkeyViolations:\.+(\d+)$", info, re.M)[1]) >= 2, info
    a.run(f"ibportstate -C vhca1 -y {KEY} {at} mkeyprot 0 mkey 0")
    a.run(f"smpquery -C vhca1 portinfo {at}")


def bad_keys(a, fabric):
    """What comes with a wrong key is dropped, counted, and told of by traps 257 and 258."""
    for name, number, script in (("Pkey", 257, BAD_PKEY), ("Qkey", 258, BAD_QKEY)):
        since = log_end(a)
        fabric.play(script)
        wait_notice(a, number, since)
        info = a.run(f"smpquery -C vhca1 portinfo {fabric.lid('H2')} 1")
        assert int(re.search(rf"^{name}Violations:\.+(\d+)$", info, re.M)[1]) >= 1, info


def description(a, fabric):
    since = log_end(a)
    a.run("echo another name > /sys/class/infiniband/vhca2/node_desc")
    wait_notice(a, 144, since)
    assert "another name" in a.run(f"smpquery -C vhca1 nodedesc {fabric.lid('H2')}")


def wait_counted(a, fabric):
    """Packets wait for credits behind a slow link."""
    def waited():
        said = a.run(f"perfquery -C vhca1 {fabric.lid('H1')} 1")
        return int(re.search(r"PortXmitWait:\.*(\d+)", said)[1])
    before = waited()
    fabric.command('Fault "S1"[2] slow=100000')
    server = a.start("exec ibv_rc_pingpong -d vhca2 -e -s 65536 -n 3")
    a.wait_until("netstat -ltn | grep -q :18515", timeout=20)
    a.run("ibv_rc_pingpong -d vhca1 -e -s 65536 -n 3 127.0.0.1")
    server.wait(20)
    assert waited() > before


def test(bed):
    fabric = bed.fabric("mesh:2", opensm=None)
    a = fabric.guest
    a.run(f"printf '{PARTITIONS}' >/run/partitions.conf")
    fabric.start_opensm(f"-l {LMC} -P /run/partitions.conf")
    fabric.wait_active()
    for part in (lids, manager, link, key, bad_keys, description, wait_counted):
        part(a, fabric)
