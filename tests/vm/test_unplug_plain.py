# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Soft RoCE devices that go with no command to repath. Deleted with its NIC alive, one works to the
end: it is left in time, and the next one is resumed on. With the NIC pulled it is dead when we hear of
it: the loss is told at once as unplanned, and nobody is waited for."""

import unplug
from move import SHIM, moving
from traffic import Pair
from trouble import kernel_says


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b, module=unplug.LOADED) as mover:
        pair = Pair(a, b, "-q 4 -n 8 -b -k 4 -m all --vary", env=SHIM)
        pair.wait_running()
        for _ in range(2):
            before = mover.numbers(b)
            b.rxe_del("rxe0")
            op = unplug.last(b)
            assert op["state"] == "suspended", op
            mover.note_inflight(op)
            b.unplug(b.nics[0])
            mover.moves += 1
            b.rxe_add("rxe0", b.plug("rdma", ip=f"10.0.0.{20 + mover.moves}"))
            op = unplug.wait_state(b, op["op"], "resumed")
            mover.check_numbers({"gid": before["gid"]}, mover.numbers(b))
            pair.wait_progress(50)
        pair.finish()

        # Without traffic: rxe loses count of its queue pairs if a NIC is pulled under that. It can
        # not take itself from a process either, so the NIC goes when the process has gone.
        holder = b.start(f"exec env {SHIM} holdqp -q 4 -c")
        holder.wait_for("qpns")
        b.start("until repath status | grep -q unplanned; do usleep 50000; done;"
                "kill $(pidof holdqp)")
        b.unplug(b.nics[0])
        holder.wait(20, check=False)
        op = unplug.last(b)
        assert op["state"] == "failed" and op["reason"].startswith(
            "unplanned: rxe0 was removed while in use, and did not work any more"), op
        kernel_says(b, r"rxe0 was removed while in use, and did not work any more; what used it")

        # The next one is a device as any other, and nothing waits for it.
        b.rxe_add("rxe0", b.plug("rdma", ip="10.0.0.30"))
        pair = Pair(a, b, "-q 2 -n 8 -b", env=SHIM)
        pair.wait_running()
        pair.finish()
        assert unplug.last(b)["op"] == op["op"], unplug.operations(b)
