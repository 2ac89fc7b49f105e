# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A reader sees the devices of its own network namespace and PIDs of its own PID namespace."""

import json

import tracking


def test(bed):
    (a,) = bed.guests("a")
    a.load_repath()
    _, numbers = tracking.hold(a, "-q 1 -c")

    inside = json.loads(a.run("unshare -p -f repath -j qp"))
    assert len(inside) == len(tracking.qps(a)), inside
    assert not [qp for qp in inside if "pid" in qp or qp.get("comm") == "holdqp"], inside
    assert json.loads(a.run("unshare -p -f repath -j process")) == []

    # Shared: every network namespace sees every device.
    assert len(json.loads(a.run("unshare -n repath -j device"))) == 1
    a.run("killall holdqp")
    tracking.wait_qps(a, 0)
    a.run("rdma system set netns exclusive")
    _, numbers = tracking.hold(a, "-q 1 -c")
    assert numbers["pid"] in {qp.get("pid") for qp in tracking.repath(a, "qp")}
    for what in ("device", "qp", "process", f"qp pid {numbers['pid']}"):
        assert json.loads(a.run(f"unshare -n repath -j {what}")) == [], what
    text = a.run("unshare -n repath suspend rxe0", check=False)
    assert "no RDMA device of this name" in text, text
