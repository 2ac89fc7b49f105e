# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Both ends of connections are moved at the same moment, each to an InfiniBand HCA at another place of the fabric: neither
finds the other, but that one of them is told the other's new GID and LID, before it goes on."""

import ipaddress

from move import SHIM, moving, repath
from move_fabric import FabricMover
from test_move_both_guests import resume_all, take_all
from traffic import Pair

QPS = 3


def place(mover, guest):
    """(GID as repath shows it, LID)"""
    gid = guest.run(f"cat /sys/class/infiniband/{mover.device(guest)}/ports/1/gids/0")
    return str(ipaddress.ip_address(gid.strip())), mover.fabric.lid(mover.host(guest))


def test(bed):
    # OpenSM's HCA stays.
    fabric = bed.fabric("mesh:5", guests={"sm": ["H1"], "a": ["H2"], "b": ["H3"]})
    _, a, b = fabric.guests
    with moving(a, b, mover=FabricMover(fabric, spare=["H4", "H5"])) as mover:
        pair = Pair(a, b, f"-q {QPS} -n 8 -b -k 4 -m all --vary -s 20000", env=SHIM)
        pair.wait_running()
        was = place(mover, b)
        ops = take_all(mover, (a, b))
        for guest in (a, b):
            mover.new_device(guest)
        now, device = place(mover, b), mover.device(a)
        assert now[0] != was[0] and now[1] != was[1]
        told = f"connection moved {device} dgid {was[0]}"
        for wrong in (f"to {now[0]}", f"to ff12::1 lid {now[1]}", f"dlid {was[1]} lid {now[1]}"):
            status, _, text = repath(a, f"{told} {wrong}")
            assert status, (wrong, text)
        status, found, text = repath(a, f"{told} to {now[0]} lid {now[1]}")
        assert status == 0 and found["connections"] == QPS, (status, text)
        resume_all(mover, (a, b), ops, timeout=20)
        pair.wait_progress(50)
        print(f"  {pair.finish()[0]}", flush=True)
