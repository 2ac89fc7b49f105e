# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's Open MPI over UCX on InfiniBand between two guests: a rank on the HCA of each, over RC and
over UD."""

import mpi
from test_vhca_mpi import packets


def test(bed):
    mpi.bring(bed)
    fabric = bed.fabric("mesh:2", memory=768, guests={"a": ["H1"], "b": ["H2"]})
    ends = [(fabric.place[host], device) for host, device in fabric.hosts.items()]
    for transports in ("rc_verbs,ud_verbs:aux,self", "ud_verbs,self"):
        before = [packets(*end) for end in ends]
        job = mpi.start(fabric.guests, 1, transports, plain=True,
                        device="vhca$((OMPI_COMM_WORLD_RANK + 1))")
        job.wait_rounds(2)
        print(f"  {transports}: {job.finish()}", flush=True)
        for end, count in zip(ends, before):
            assert packets(*end) > count + 100, f"{end}: not used, so it proves nothing"
