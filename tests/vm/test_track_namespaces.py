# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A reader sees the devices of its own network namespace and PIDs of its own PID namespace."""

import json

import tracking


# A process of an inner PID namespace: the number that it has there, and what repath says of it there.
INNER = """holdqp -q 1 -c >/tmp/inner & echo $!
until grep -q } /tmp/inner; do sleep 0.1; done
repath -j qp; repath -j process; repath -j qp pid $!; repath -j qp pid 99999
touch /tmp/asked; until [ -e /tmp/seen ]; do sleep 0.1; done; kill $!"""


def inner(a):
    """It is seen inside by its number there, outside by the one that it has here."""
    job = a.start(f"exec unshare -p -f sh -c '{INNER}'")
    a.wait_until("[ -e /tmp/asked ]")
    outside = [int(pid) for pid in a.run("pidof holdqp").split()]
    seen = {qp.get("pid") for qp in tracking.repath(a, "qp")}
    a.run("touch /tmp/seen")
    pid, *lists = job.wait(60, check=False).splitlines()
    pid, (qps, processes, chosen, nobody) = int(pid), [json.loads(line) for line in lists]
    assert pid not in outside and seen >= set(outside), (pid, outside, seen)
    mine = [qp for qp in qps if "pid" in qp]
    assert mine and {(qp["pid"], qp["comm"]) for qp in mine} == {(pid, "holdqp")}, qps
    assert [process["pid"] for process in processes] == [pid], processes
    assert chosen == mine and not nobody, (chosen, nobody)


def test(bed):
    (a,) = bed.guests("a")
    a.load_repath()
    _, numbers = tracking.hold(a, "-q 1 -c")

    inside = json.loads(a.run("unshare -p -f repath -j qp"))
    assert len(inside) == len(tracking.qps(a)), inside
    assert not [qp for qp in inside if "pid" in qp or qp.get("comm") == "holdqp"], inside
    assert json.loads(a.run("unshare -p -f repath -j process")) == []

    inner(a)

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
