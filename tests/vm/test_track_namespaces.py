# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A reader sees the devices of its own network namespace and PIDs of its own PID namespace."""

import json

import tracking
from move import SHIM, repath
from test_track_permissions import CHANGING, refused


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
    # They are older by then.
    assert [qp.pop("age-s") for qp in chosen + mine] and chosen == mine and not nobody, (chosen, mine, nobody)


# What a reader in another network namespace is shown of an exclusive device: nothing, or that there is none.
SHOWING = ("device", "qp", "process", "qp pid {pid}", "process pid {pid}", "connection",
           "connection dev rxe0", "path", "path sm", "stats", "status", "adopt")
NAMED = ("device rxe0", "qp dev rxe0", "process dev rxe0", "path dev rxe0", "path sm dev rxe0",
         "stats dev rxe0",
         *(command for command in CHANGING if "rxe0" in command and not command.startswith("resume")))

# Generic netlink is protocol 16; the fourth column are groups.
LISTEN = """repath -j monitor & echo $! >/tmp/elsewhere
until grep -Eq "^[^ ]+ +16 +[^ ]+ +0*[1-9a-f]" /proc/net/netlink; do usleep 20000; done
touch /tmp/listens; wait"""


def elsewhere(a, numbers):
    """From another network namespace no command shows the device, or what is on it, or changes that."""
    a.run(f"kill {numbers['pid']}")
    tracking.wait_qps(a, 0)
    inside = a.start("exec repath -j monitor")
    outside = a.start(f"exec unshare -n sh -c '{LISTEN}'")
    a.wait_until("[ -e /tmp/listens ]")
    a.start(f"exec env {SHIM} holdqp -q 2 -c").wait_for("qpns")
    status, op, text = repath(a, "suspend rxe0")
    assert status == 0, text
    for what in SHOWING:
        what = what.format(pid=numbers["pid"])
        assert json.loads(a.run(f"unshare -n repath -j {what}")) == [], what
    for what in NAMED:
        refused(a, f"unshare -n repath {what}", "no RDMA device of this name")
    for what in ("status {op}", "resume {op}", "resume {op} on rxe0", "abort {op}"):
        refused(a, f"unshare -n repath {what.format(op=op['op'])}", "no ")
    refused(a, "unshare -n repath resume rxe0", "no operation has suspended this device")
    status, op, text = repath(a, f"resume {op['op']}")
    assert status == 0 and op["state"] == "resumed", text

    # Its monitor was told nothing, but that the module has gone: it was listening.
    for kind in ("qp", "process", "op"):
        inside.wait_for(f'"event":"{kind}"')
    a.run("killall holdqp")
    tracking.wait_qps(a, 0)
    a.run("rmmod ib_repath")
    outside.wait_for('"event":"module","action":"del"')
    assert outside.output().count('"event"') == 1, outside.output()
    a.run("kill $(cat /tmp/elsewhere)")


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
    elsewhere(a, numbers)
