# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A reader sees the devices of its own network namespace and PIDs of its own PID namespace."""

import json

import tracking
from move import SHIM, repath
from test_track_permissions import CHANGING, FAILED, refused

PROCESSORS = 1


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


# A monitor in an inner PID namespace, and a process there, whose number there it prints.
MONITORED = """repath -j monitor >/tmp/monitored &
until grep -q event /tmp/monitored; do holdqp -b >/dev/null; done
touch /tmp/monitors; until [ -e /tmp/outer ]; do sleep 0.1; done
holdqp -q 1 -c >/tmp/inner2 & echo $!
until grep -q } /tmp/inner2; do sleep 0.1; done; cat /tmp/inner2
kill $!; wait $!
until grep -q "process.*del.*pid.:$!," /tmp/monitored; do sleep 0.1; done"""


def monitored(a):
    """So do monitors, in the initial network namespace, too: each knows the processes that it sees, no others."""
    outside = a.start("exec repath -j monitor")
    a.run("holdqp -b >/dev/null; holdqp -b >/dev/null")
    outside.wait_for('"event":"process","action":"del"')
    job = a.start(f"exec unshare -p -f sh -c '{MONITORED}'")
    a.wait_until("[ -e /tmp/monitors ]")
    outer, numbers = tracking.hold(a, "-q 2 -c")
    outer.kill()
    outside.wait_for(f'"event":"process","action":"del".*"pid":{numbers["pid"]},')
    a.run("touch /tmp/outer")
    pid, inner_numbers = job.wait(60, check=False).splitlines()[:2]
    pid, qpn = int(pid), json.loads(inner_numbers)["qpns"][0]

    inside = [json.loads(line) for line in a.run("cat /tmp/monitored").splitlines()]
    # The outer one's queue pairs are nobody's here, and it is no process.
    mine = [event["qp"] for event in inside if event["event"] == "qp" and event["qp"]["qpn"] == qpn]
    theirs = [event["qp"] for event in inside if event["event"] == "qp" and event["qp"]["qpn"] in numbers["qpns"]]
    processes = [event["process"] for event in inside if event["event"] == "process"]
    assert mine and {(qp.get("pid"), qp.get("comm")) for qp in mine} == {(pid, "holdqp")}, mine
    assert theirs and not [qp for qp in theirs if "pid" in qp or "comm" in qp], theirs
    assert processes and all("pid" in each for each in processes), processes
    assert numbers["pid"] not in {each["pid"] for each in processes}, (numbers, processes)
    # Out here both have numbers, those of here.
    outside.wait_for(f'"event":"qp","action":"del".*"qpn":{qpn},')
    seen = [event["qp"] for event in map(json.loads, outside.output().splitlines()) if event["event"] == "qp"]
    assert {qp["pid"] for qp in seen if qp["qpn"] in numbers["qpns"]} == {numbers["pid"]}, seen
    here = {qp["pid"] for qp in seen if qp["qpn"] == qpn}
    assert len(here) == 1 and pid not in here, (pid, here)
    outside.kill()


# Of a device of another network namespace a reader is told that there is none.
NAMED = ("device rxe0", "qp dev rxe0", "process dev rxe0", "path dev rxe0", "path sm dev rxe0",
         "stats dev rxe0",
         *(command for command in CHANGING if "rxe0" in command and not command.startswith("resume")))

# It listens when it waits in poll(), which is system call 7.
LISTEN = """repath -j monitor & echo $! >/tmp/elsewhere
until grep -q "^7 " /proc/$!/syscall; do usleep 20000; done
touch /tmp/listens; wait"""


def unseen(a, *commands):
    """There is something here, and nothing from another network namespace."""
    for what in commands:
        assert json.loads(a.run(f"repath -j {what}")), what
        assert json.loads(a.run(f"unshare -n repath -j {what}")) == [], what


def elsewhere(a, numbers):
    """From another network namespace no command shows the device, or what is on it, or changes that."""
    a.run(f"kill {numbers['pid']}")
    tracking.wait_qps(a, 0)
    inside = a.start("exec repath -j monitor")
    outside = a.start(f"exec unshare -n sh -c '{LISTEN}'")
    a.wait_until("[ -e /tmp/listens ]")
    holder = a.start(f"exec env {SHIM} holdqp -q 2 -c")
    holder.wait_for(r"\}\n")
    pid = json.loads(holder.output())["pid"]
    shown = ("device", "qp", "process", f"qp pid {pid}", f"process pid {pid}", "connection", "connection dev rxe0",
             "stats", "adopt")
    unseen(a, *shown)
    status, op, text = repath(a, "suspend rxe0")
    assert status == 0, text
    unseen(a, "status")
    for what in (*shown, "path", "path sm"):
        assert json.loads(a.run(f"unshare -n repath -j {what}")) == [], what
    for what in NAMED:
        refused(a, f"unshare -n repath {what}", "no RDMA device of this name", FAILED)
    for what in ("status {op}", "resume {op}", "resume {op} on rxe0", "abort {op}"):
        refused(a, f"unshare -n repath {what.format(op=op['op'])}", "no ", FAILED)
    refused(a, "unshare -n repath resume rxe0", "no operation has suspended this device", FAILED)
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
    monitored(a)

    # Shared: every network namespace sees every device.
    assert len(json.loads(a.run("unshare -n repath -j device"))) == 1
    a.run("killall holdqp")
    tracking.wait_qps(a, 0)
    a.run("rdma system set netns exclusive")
    _, numbers = tracking.hold(a, "-q 1 -c")
    assert numbers["pid"] in {qp.get("pid") for qp in tracking.repath(a, "qp")}
    elsewhere(a, numbers)
