# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An InfiniBand HCA in full run is just removed, and another one comes at another place of the
fabric, with no command to repath: programs leave the one in time and go on with the other, also where the
guest is live-migrated between the two, as libvirt does it with an HCA that is passed through. A program
without the library holds it up for nobody: then the loss is told."""

import unplug
from move import SHIM, moving
from move_fabric import FabricMover
from traffic import Pair
from trouble import kernel_says
from unmodified import start, wait_traffic

def replace(mover, guest, migrated=False):
    """Remove and add the HCA, @migrated: with another QEMU in between; what must change has changed."""
    before = mover.numbers(guest)
    mover.release(guest)
    op = unplug.last(guest)
    assert op["state"] == "suspended", op
    mover.note_inflight(op)
    if migrated:
        qemu = guest.qemu
        guest.migrate()
        assert guest.qemu is not qemu
    mover.add_elsewhere(guest)
    op = unplug.wait_state(guest, op["op"], "resumed")
    mover.check_numbers(before, mover.numbers(guest))
    mover.suspended.append(op)


def test(bed):
    fabric = bed.fabric("mesh:3", guests={"a": ["H1"], "b": ["H2"]})
    a, b = fabric.guests
    with moving(a, b, mover=FabricMover(fabric, spare=["H3"]), module=unplug.LOADED) as mover:
        pair = Pair(a, b, "-q 4 -n 8 -b -k 4 -m all --vary -s 20000", env=SHIM)
        pair.wait_running()
        for migrated in (False, True, True):
            replace(mover, b, migrated)
            pair.wait_progress(50)
        pair.finish()

        mover.comm = "ib_write_bw"
        jobs = start(a, b, "ib_write_bw -s 4096 -t 16 -D 40 -F -b")
        wait_traffic(a)
        replace(mover, b, migrated=True)
        wait_traffic(b)
        assert all(job.running for job in jobs), "ended before the move did: it proves nothing"
        for job in jobs:
            job.wait(120)

        mover.comm = "rcheck"

        # Who can not leave does not make the others wait: all lose it, as without us.
        pair = Pair(a, b, "-q 2 -n 8 -b", env=SHIM)
        pair.wait_running()
        foreign = b.start("exec holdqp")
        foreign.wait_for("qpns")
        mover.release(b)
        op = unplug.last(b)
        assert op["state"] == "failed" and "unplanned" in op["reason"], op
        assert "without libibrepath.so" in op["reason"], op
        kernel_says(b, r"vhca2 was removed while in use; what used it has lost it")
        for job in pair.jobs:
            job.wait(90, check=False)
            assert job.status == 1, f"{job.status}: {job.output()[-2000:]}"
        foreign.kill(9)

        # And a new one is as good as ever.
        mover.add_elsewhere(b)
        pair = Pair(a, b, "-q 2 -n 8 -b", env=SHIM)
        pair.wait_running()
        replace(mover, b)
        pair.wait_progress(50)
        pair.finish()

        # It may be there already when the old one goes.
        pair = Pair(a, b, "-q 2 -n 8 -b", env=SHIM)
        pair.wait_running()
        old, spare = mover.host(b), mover.spare.pop(0)
        fabric.add(spare, name="spare0", guest=b)
        fabric.wait_active([spare])
        fabric.remove(old)
        op = unplug.wait_state(b, unplug.last(b)["op"], "resumed")
        pair.wait_progress(50)
        pair.finish()
