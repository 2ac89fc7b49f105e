# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A NIC is unplugged with its rxe device and comes back as another: new MAC, new GID."""


def test(bed):
    a, b = bed.guests("a", "b")
    old_nic, old_gid = b.nics[0], b.gid()
    old_link_local = b.gid(index=0)

    b.rxe_del("rxe0")
    b.unplug(old_nic)
    assert "rxe0" not in b.run("rdma link show")
    assert old_nic.mac not in b.run("ip link show")

    nic = b.plug("rdma", ip="10.0.0.12")
    b.rxe_add("rxe0", nic)
    assert nic.mac != old_nic.mac
    assert b.gid() != old_gid and b.gid().endswith("ffff:0a00:000c"), b.gid()
    assert b.gid(index=0) != old_link_local
    a.run("ping -c 1 10.0.0.12")

    second = b.plug("rdma", ip="10.0.0.22")
    assert (second.port, b.nics) == (1, [nic, second])
    b.rxe_add("rxe1", second)
    b.rxe_del("rxe1")
    b.unplug(second)
