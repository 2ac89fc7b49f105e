# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An rxe device is deleted under a process: tracking forgets both at once, though the deletion
waits for the process, and a device of the same name is another one."""

import tracking


def test(bed):
    (a,) = bed.guests("a")
    a.load_repath()
    job, _ = tracking.hold(a, "-q 4 -c")
    index = tracking.device(a)["index"]
    deletion = a.start("rdma link delete rxe0")

    # rxe can not take its contexts away from a process: the deletion waits.
    a.wait_until("! repath device | grep -q rxe0")
    assert tracking.repath(a, "qp") == [] and tracking.repath(a, "process") == []
    assert deletion.running and job.running
    job.kill(9)
    deletion.wait()

    a.rxe_add("rxe0")
    assert tracking.device(a)["index"] != index
    _, numbers = tracking.hold(a, "-q 2 -c")
    assert set(numbers["qpns"]) == {qpn for _, qpn in tracking.user_qps(a)}
    tracking.compare_with_kernel(a)
