# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A migration is called off: processes resume on the device that they left, by resume and by
abort, and on a NIC that was unplugged and plugged again."""

from move import SHIM, moving, repath
from traffic import Pair


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        pair = Pair(a, b, "-q 4 -n 8 -b -k 4", env=SHIM)
        pair.wait_running()

        op = mover.suspend(b)
        mover.note_inflight(op)
        dst = b.prepare_destination(with_nics=True)
        b.start_migration(dst, bandwidth=1 << 20)
        b.migrate_cancel(dst)
        mover.resume(b, op)
        pair.wait_progress()

        op = mover.suspend(b)
        status, end, text = repath(b, f"abort {op['op']}")
        assert status == 0, text
        pair.wait_progress()

        op = mover.suspend(b)
        nic = b.nics[0]
        mover.release(b)
        nic = b.plug("rdma", ip=nic.ip, mac=nic.mac)
        b.rxe_add("rxe0", nic)
        mover.resume(b, op)
        pair.wait_progress()

        # A dry run only asks.
        status, checked, text = repath(b, "suspend rxe0 dry-run")
        assert status == 0 and checked["state"] == "checked", text
        pair.wait_progress()
        pair.finish()
