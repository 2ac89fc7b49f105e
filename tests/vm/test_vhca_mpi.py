# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's Open MPI over UCX on InfiniBand: six HCAs of a mesh in one guest, a rank on each, over RC
and over UD."""

import re

import mpi

# The fabric is as busy as a guest: alone.
GUESTS = 2


def packets(a, device):
    said = a.run(f"cat /sys/class/infiniband/{device}/ports/1/counters/port_xmit_packets")
    return int(re.match(r"\d+", said)[0])


def test(bed):
    mpi.bring(bed)
    fabric = bed.fabric("mesh:3x2", memory=1280)
    a = fabric.guest
    for transports in ("rc_verbs,ud_verbs:aux,self", "ud_verbs,self"):
        before = {device: packets(a, device) for device in fabric.hosts.values()}
        job = mpi.start([a], 6, transports, plain=True,
                        device="vhca$((OMPI_COMM_WORLD_RANK + 1))")
        job.wait_rounds(2)
        print(f"  {transports}: {job.finish()}", flush=True)
        for device, count in before.items():
            assert packets(a, device) > count + 100, f"{device}: not used, so it proves nothing"
