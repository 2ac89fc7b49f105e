# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Six software HCAs on a 3x2 mesh in one guest, stock OpenSM with LASH: the subnet comes up, and
stock diagnostics, verbs programs, IPoIB and rdma_cm work over LIDs."""

import re

from rdma_cm import rdma_cm_ends

# The fabric is as busy as a guest: alone.
GUESTS = 2

HOSTS = [f"H{n}" for n in range(1, 7)]
DEPTH = 64      # VHCA_LANE_DEPTH


def pair(a, server, client, timeout=60):
    """Run two programs that find each other by TCP; what both said."""
    job = a.start(server)
    a.wait_until("netstat -ltn | grep -q :18515", timeout=20)
    said = a.run(client, timeout)
    return job.wait(20) + said


def diagnostics(a, fabric):
    net = a.run("ibnetdiscover -C vhca1")
    for host in HOSTS:
        assert f'"{host} vhca"' in net, net
    assert len(re.findall(r"^Switch", net, re.M)) == 6, net
    links = a.run("iblinkinfo -C vhca1")
    # Six cables to HCAs, seen from both ends, and seven between switches, too.
    assert len(re.findall(r"4X +10\.0 Gbps Active/ +LinkUp", links)) == 26, links

    lid = fabric.lid("H3")
    at = f"-C vhca1 {lid} 1"
    assert "LinkState:.......................Active" in a.run(f"smpquery portinfo {at}")
    assert "H3 vhca" in a.run(f"smpquery nodedesc -C vhca1 {lid}")
    assert "0x0002c90200000030" in a.run(f"smpquery nodeinfo -C vhca1 {lid}")
    assert "0xffff" in a.run(f"smpquery pkeys {at}")
    assert len(re.findall(r"WEIGHT: ", a.run(f"smpquery vlarb {at}"))) == 2
    a.run(f"smpquery sl2vl {at}")

    records = a.run("saquery -C vhca1 NR")      # more than one MAD: RMPP
    assert records.count("NodeRecord dump") == 12, records
    path = a.run(f"saquery -C vhca1 --src-to-dst {fabric.lid('H1')}:{lid}")
    assert "PathRecord" in path, path


def counters(a, fabric):
    at = f"-C vhca1 {fabric.lid('H4')} 1"

    def packets(extended=""):
        return int(re.search(r"PortXmitPkts:\.*(\d+)", a.run(f"perfquery {extended} {at}"))[1])
    before = packets("-x")
    for _ in range(3):
        packets()
    assert packets("-x") > before
    a.run(f"perfquery -R {at}")
    assert packets() < before + 4, "the reset reset nothing"

    # All ports are the one that is asked; one that there is not has no counters, and the answer says so.
    lid = fabric.lid("H4")
    before = packets("-x")
    said = a.run(f"perfquery -x -C vhca1 {lid} 255")
    assert "PortSelect:......................255" in said, said
    assert int(re.search(r"PortXmitPkts:\.*(\d+)", said)[1]) > before, said
    for extended in ("", "-x"):
        job = a.start(f"perfquery {extended} -C vhca1 {lid} 2")
        job.wait(20, check=False)
        assert job.status and "PortXmitPkts" not in job.output(), job.output()


def programs(a):
    for kind in ("rc", "uc", "ud", "srq"):
        said = pair(a, f"ibv_{kind}_pingpong -d vhca1 -e -n 100",
                    f"ibv_{kind}_pingpong -d vhca6 -e -n 100 127.0.0.1")
        assert len(re.findall(r"100 iters in", said)) == 2, said
    for program, options in (("ib_send_bw", "-s 65536 -n 100"), ("ib_write_bw", "-s 65536 -n 100"),
                             ("ib_read_bw", "-s 65536 -n 100"), ("ib_atomic_bw", "-n 100"),
                             ("ib_send_lat", "-n 100 -I 0"), ("ib_write_lat", "-n 100 -I 0"),
                             ("ib_read_lat", "-n 100"), ("ib_atomic_lat", "-n 100"),
                             ("ib_send_bw", "-c UD -s 2048 -n 100"),
                             ("ib_send_lat", "-c UD -n 100 -I 0"),
                             ("ib_send_bw", "-c UC -s 8192 -n 100"),
                             ("ib_send_lat", "-c UC -n 100 -I 0"),
                             ("ib_write_bw", "-c UC -s 8192 -n 100"),
                             ("ib_write_lat", "-c UC -n 100 -I 0")):
        said = pair(a, f"{program} -F -d vhca2 {options}", f"{program} -F -d vhca5 {options} 127.0.0.1")
        assert re.search(r"^ *\d+ +100 ", said, re.M), said


def all_opcodes(a):
    """Everything an RC queue pair does, both ways, checked byte by byte."""
    server = a.start("rcheck -d vhca3 -T 20")
    said = a.run("sleep 0.5; rcheck -d vhca4 -m all -q 4 --vary -s 20000 -b -T 3 127.0.0.1")
    assert '"ok":true' in said, said
    assert '"ok":true' in server.wait(30)


def ipoib(a):
    """Over two interfaces in two network namespaces, or it would all be local."""
    a.run("ip netns add other; ip link set ib5 netns other; "
          "ip address add 10.9.0.1/24 dev ib0; ip link set ib0 up; "
          "ip -n other address add 10.9.0.6/24 dev ib5; ip -n other link set ib5 up; "
          "ip -n other link set lo up")
    a.wait_until("ip netns exec other ping -c 1 -W 1 10.9.0.1", timeout=60)
    a.run("ip netns exec other ping -c 20 -i 0.02 -s 1900 10.9.0.1")
    options = "-F -R -n 100 -s 4096"
    _, said = rdma_cm_ends(a, a, f"ib_send_bw -d vhca1 {options}",
                           f"ip netns exec other ib_send_bw -d vhca6 {options} 10.9.0.1")
    assert re.search(r"4096 +100 ", said), said


def multicast(a):
    """A program's queue pairs: the SM's SA lets both join, the switches have the group's tree."""
    receiver = a.start("mckey -m 239.9.0.1 -b 10.9.0.1 -C 50")
    a.wait_until("saquery -C vhca1 MCMR | grep 'MGID.*:f09:1$'", timeout=20)
    a.run("ip netns exec other mckey -m 239.9.0.1 -b 10.9.0.6 -C 50 -s")
    said = receiver.wait(20)
    assert "data transfers complete" in said, said


def test(bed):
    fabric = bed.fabric("mesh:3x2", opensm="-R lash", ipoib=True)
    a = fabric.guest
    diagnostics(a, fabric)
    counters(a, fabric)
    programs(a)
    all_opcodes(a)
    ipoib(a)
    multicast(a)
    # What waited for its turn in lanes, of all that: never more than there is room for.
    most = a.run("cat /sys/class/infiniband/vhca*/ports/1/vhca/lane_most").split()
    assert 0 < max(int(n) for n in most) <= DEPTH, f"packets in a lane: {most}"
