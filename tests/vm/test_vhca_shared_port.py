# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""SR-IOV as a shared port: the PFs of two servers in one guest, a VF of each in another one. Functions
of a server have one LID and one space of QPNs; a VF has an alias GUID, which the SM chooses or the PF
is given. Stock OpenSM sees one HCA a server. VFs have no QP0; their QP1 is the PF's."""

import re

from rdma_cm import rdma_cm_ends
from traffic import Pair

GUESTS = 3

CHOSEN = 0x0002c9ff00000001


def port_guid(guest, device):
    gid = guest.run(f"cat /sys/class/infiniband/{device}/ports/1/gids/0")
    return int(gid.strip().replace(":", "")[16:], 16)


def gid_of(guid):
    digits = f"{guid:016x}"
    return "fe80::" + ":".join(digits[i:i + 4] for i in range(0, 16, 4))


def numbers(guest):
    return {int(n) for n in re.findall(r"lqpn (\d+)", guest.run("rdma resource show qp"))} - {0, 1}


def addresses(pf, vms, fabric):
    """One LID a server; the GUIDs are those that the SA knows."""
    net = pf.run("ibnetdiscover -C vhca1")
    assert len(re.findall(r"^Switch", net, re.M)) == 2, net
    assert len(re.findall(r"^Ca", net, re.M)) == 2, net
    for server, vf in (("H1", "H1v1"), ("H2", "H2v2")):
        assert fabric.lid(vf) == fabric.lid(server) != 0
        guid = port_guid(fabric.place[vf], fabric.hosts[vf])
        record = pf.run(f"saquery -C vhca1 GIR {fabric.lid(server)}/0")
        assert f"{guid:#018x}" in record, (hex(guid), record)
    assert port_guid(vms[0], "vhca1v1") == CHOSEN
    chosen_by_sm = port_guid(vms[1], "vhca2v2")
    assert chosen_by_sm not in (0, CHOSEN, fabric.port_guid("H2"), fabric.port_guid("H2v2"))
    return CHOSEN, chosen_by_sm


def management(pf, vms, fabric, guids):
    """QP0 of a VF leads nowhere, and its QP1 to the SA, and to what answers for itself."""
    dropped = int(re.search(r"vf_qp0,(\d+)", fabric.command("Results drops"))[1])
    job = vms[0].start("smpquery -C vhca1v1 -t 300 nodeinfo -D 0,1")
    job.wait(30, check=False)
    assert job.status, f"an SMP came through: {job.output()}"
    now = int(re.search(r"vf_qp0,(\d+)", fabric.command("Results drops"))[1])
    assert now > dropped, "the VF's SMP was not sent at all: it proves nothing"
    assert "NodeType:........................Channel" in vms[0].run("smpquery -C vhca1v1 nodeinfo -D 0")

    gids = [gid_of(guid) for guid in guids]
    for vm, device in ((vms[0], "vhca1v1"), (vms[1], "vhca2v2")):
        said = vm.run(f"saquery -C {device} --sgid-to-dgid {gids[0]}-{gids[1]}")
        assert f"dlid....................{fabric.lid('H2')}" in said, said
        # More than one MAD: RMPP.
        assert vm.run(f"saquery -C {device} NR").count("NodeRecord dump") == 4
        # A switch's agent, and the PF's of the other server.
        vm.run(f"perfquery -C {device} {fabric.lid('H2')} 1")


def data(a, b):
    """Between VFs of two servers: their QPNs say whose they are."""
    pair = Pair(a, b, "-q 4 -n 8 -b -k 4 -m all --vary -s 20000")
    pair.wait_running()
    assert {n >> 20 for n in numbers(a)} == {1}, numbers(a)
    assert {n >> 20 for n in numbers(b)} == {2}, numbers(b)
    pair.finish()


def connections(a, b):
    """IPoIB, which is multicast groups that the VFs join; and rdma_cm, both ways."""
    for n, vm in enumerate((a, b), 1):
        vm.run(f"insmod /lib/repath/ib_ipoib.ko; ip address add 10.9.0.{n}/24 dev ib0; "
               "ip link set ib0 up")
    b.wait_until("ping -c 1 -W 1 10.9.0.1", timeout=60)
    for server, client, address in ((a, b, "10.9.0.1"), (b, a, "10.9.0.2")):
        command = "ib_send_bw -F -R -n 100 -s 4096"
        _, said = rdma_cm_ends(server, client, command, f"{command} {address}")
        assert re.search(r"4096 +100 ", said), said


def moved(pf, a, b, fabric):
    """The VM of a VF goes to the other server: the GUID with it, and the LID is that server's. The two
    VFs of one HCA then reach each other within it."""
    guid = fabric.vguid("H2v2")
    fabric.move("H2v2", "H1v2")
    assert port_guid(b, "vhca2v2") == guid
    assert fabric.lid("H1v2") == fabric.lid("H1") != fabric.lid("H2")
    said = pf.run(f"saquery -C vhca1 --sgid-to-dgid {gid_of(CHOSEN)}-{gid_of(guid)}")
    assert f"dlid....................{fabric.lid('H1')}" in said, said
    data(a, b)


def test(bed):
    fabric = bed.fabric("mesh:2,shared=2", memory=320, vguids={"H1v1": CHOSEN},
                        guests={"pf": ["H1", "H2"], "vm1": ["H1v1"], "vm2": ["H2v2"]})
    pf, *vms = fabric.guests
    guids = addresses(pf, vms, fabric)
    management(pf, vms, fabric, guids)
    data(*vms)
    connections(*vms)
    moved(pf, *vms, fabric)
