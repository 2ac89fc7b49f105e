# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The command repath against the module: filters, plans, exit statuses, two administrators at once,
progress on a terminal, the monitor through rmmod, and an agent whose host goes away."""

import json
import re
import time

import agent
import tracking
from move import SHIM, repath
from traffic import Pair

PROCESSORS = 1
TIMEOUT = 200


def filters(a, pids):
    """Each filter gives what the whole list says it should."""
    whole = tracking.repath(a, "qp")
    assert len(whole) > 8, whole
    dgid = tracking.ipv4_gid("10.0.0.1")
    connected = next(qp for qp in whole if qp.get("dgid") == dgid)
    for words, choose in (
            ("dev rxe0", lambda qp: qp["dev"] == "rxe0"),
            ("port 1", lambda qp: qp.get("port") == 1),
            ("port 2", lambda qp: qp.get("port") == 2),
            (f"pid {pids[0]}", lambda qp: qp.get("pid") == pids[0]),
            (f"qpn {connected['qpn']}", lambda qp: qp["qpn"] == connected["qpn"]),
            ("dgid 10.0.0.1", lambda qp: qp.get("dgid") == dgid),
            (f"dgid {dgid}", lambda qp: qp.get("dgid") == dgid),
            ("dgid fe80::1", lambda qp: False),
            ("dlid 77", lambda qp: False),
            ("type RC", lambda qp: qp["type"] == "RC"),
            ("type gsi", lambda qp: qp["type"] == "GSI"),
            ("type UC", lambda qp: False),
            ("state RTS", lambda qp: qp["state"] == "RTS"),
            ("state rts", lambda qp: qp["state"] == "RTS"),
            ("state reset", lambda qp: qp["state"] == "RESET"),
            (f"--pid {pids[0]} --state RTS dgid 10.0.0.1 dev rxe0",
             lambda qp: qp.get("pid") == pids[0] and qp["state"] == "RTS"
             and qp.get("dgid") == dgid)):
        found = {qp["qpn"] for qp in tracking.repath(a, "qp " + words)}
        assert found == {qp["qpn"] for qp in whole if choose(qp)}, (words, found, whole)
    text = a.run(f"repath qp pid {pids[0]} dgid 10.0.0.1").splitlines()
    assert text and all(f"pid {pids[0]} comm rcheck shim" in line for line in text), text


def looking(a, pids):
    processes = {p["pid"]: p for p in tracking.repath(a, "process dev rxe0")}
    assert set(pids) <= set(processes), processes
    assert [p["pid"] for p in tracking.repath(a, f"process pid {pids[1]}")] == [pids[1]]
    assert processes[pids[0]]["shim"] and not processes[pids[1]]["shim"], processes
    device = tracking.device(a)
    assert device["processes"] == len(processes), (device, processes)
    assert device["qps"] == len(tracking.repath(a, "qp dev rxe0")), device

    found = tracking.repath(a, "connection dev rxe0")
    assert found and {one["dev"] for one in found} == {"rxe0"}, found
    for state in {"new", "ready", "no-shim", "no-answer", "gone", "no-peer"}:
        same = [one["conn"] for one in tracking.repath(a, f"connection state {state}")]
        assert same == [one["conn"] for one in found if one["state"] == state], (state, same, found)

    module, of_rxe0 = tracking.repath(a, "stats")
    assert module["module"] and of_rxe0["dev"] == "rxe0", (module, of_rxe0)
    assert "qp-new" in of_rxe0["counts"] and "tx-ok" in module["counts"], (module, of_rxe0)
    text = a.run("repath stats dev rxe0 all")
    assert re.search(r"^dev rxe0\n(  \S+ +\d+\n)+$", text), text
    assert re.search(r"^  unplug-lost +0$", text, re.M), text

    adoption, = tracking.repath(a, "adopt rxe0")
    assert adoption["qps"] == device["qps"] and adoption["missing-qps"] == 0, adoption
    assert a.status("repath adopt rxe9") == 1 and a.status("repath qp dev rxe9") == 1


def plans(a, pids):
    """Who would be moved, who refuses and why; nothing is touched; the status tells."""
    status, op, text = repath(a, "suspend rxe0 --dry-run")
    plan = {row["pid"]: row for row in op["plan"] if "pid" in row}
    assert status == 4 and op["state"] == "failed", text
    assert plan[pids[0]]["would"] == "move" and "reason" not in plan[pids[0]], plan
    assert plan[pids[1]]["would"] == "refuse", plan
    assert "without libibrepath.so" in plan[pids[1]]["reason"], plan
    assert plan[pids[0]]["qps"] >= 2 and plan[pids[0]]["connections"] >= 2, plan

    job = a.start("repath suspend rxe0 dry-run")
    text = job.wait(30, check=False)
    assert job.status == 4, text
    assert re.search(rf"^would move pid {pids[0]} comm rcheck ", text, re.M), text
    assert re.search(rf"^would refuse pid {pids[1]} comm holdqp .*reason it runs without", text,
                     re.M), text
    status, op, text = repath(a, "suspend rxe0 --dry-run --force")
    plan = {row["pid"]: row["would"] for row in op["plan"] if "pid" in row}
    assert status == 0 and op["state"] == "checked", text
    assert plan[pids[0]] == "move" and plan[pids[1]] == "kill", plan
    # Asked for in earnest, the same is said, and nothing has happened.
    status, op, text = repath(a, "suspend rxe0")
    assert status == 4 and f"PID {pids[1]} (holdqp)" in text, text
    assert all(p["moving"] == 0 for p in tracking.repath(a, "process")), text


def two_administrators(a):
    """Of two who want the same at once one gets it, the other hears why not."""
    jobs = [a.start("repath -j suspend rxe0 timeout 30; echo status $?") for _ in range(2)]
    texts = [job.wait(60) for job in jobs]
    statuses = sorted(int(re.search(r"^status (\d+)", text, re.M)[1]) for text in texts)
    assert statuses == [0, 4], texts
    loser = next(text for text in texts if "status 4" in text)
    assert "suspend rxe0: the device is " in loser and "operation" in loser, loser
    op = next(json.loads(text.splitlines()[0]) for text in texts if "status 0" in text)

    jobs = [a.start(f"repath resume {op['op']} timeout 30; echo status $?") for _ in range(2)]
    texts = [job.wait(60) for job in jobs]
    statuses = sorted(int(re.search(r"^status (\d+)", text, re.M)[1]) for text in texts)
    # The second one comes while the first one's goes on, or when it is over.
    assert statuses[0] == 0 and statuses[1] in (0, 1, 4), texts

    # One suspends and the other takes it back: the first one hears of it.
    a.run("kill -STOP $(pidof rcheck)")
    first = a.start("repath suspend rxe0 timeout 30")
    a.wait_until("repath status | grep -q 'state \\(checking\\|suspending\\)'")
    op = next(o for o in tracking.repath(a, "status") if o["state"] in ("checking", "suspending"))
    status, _, text = repath(a, f"abort {op['op']} nowait")
    assert status == 0, text
    a.run("kill -CONT $(pidof rcheck)")
    text = first.wait(60, check=False)
    assert first.status in (1, 4), (first.status, text)
    assert "everything is as before" in text, text


def wait_over(a, number, state):
    a.wait_until(f"repath status {number} | grep -q 'state {state}'")


def goes_on(a):
    """An interrupt leaves a resume going on: status 6."""
    status, op, text = repath(a, "suspend rxe0")
    assert status == 0, text
    a.run("kill -STOP $(pidof rcheck)")
    job = a.start(f"exec repath resume {op['op']} timeout 60")
    wait_over(a, op["op"], "resuming")
    job.kill(2)
    text = job.wait(30, check=False)
    assert job.status == 6 and f"operation {op['op']} goes on" in text, (job.status, text)
    wait_over(a, op["op"], "resuming")
    a.run("kill -CONT $(pidof rcheck)")
    wait_over(a, op["op"], "resumed")


def interrupted(a):
    """An interrupt takes a suspend back."""
    a.run("kill -STOP $(pidof rcheck)")
    job = a.start("exec repath suspend rxe0 timeout 30")
    a.wait_until("repath status | grep -q 'state \\(checking\\|suspending\\)'")
    job.kill(2)
    job.wait_for("interrupted: taking operation")
    a.run("kill -CONT $(pidof rcheck)")
    job.wait(60, check=False)
    assert job.status in (1, 4), job.output()


def agents(a):
    """The host goes away in the middle: the operation goes on, and the next host finds it."""
    server = agent.start(a)
    host = agent.connect(a.agent_path)
    before = {op["op"] for op in tracking.repath(a, "status")}
    agent.raw(host, '{"id":"first","cmd":"suspend","dev":"rxe0","timeout":30}\n', wait=0)
    host.close()
    host = agent.connect(a.agent_path)
    end = time.monotonic() + 60
    while True:
        ops = host.ask("status")["ops"]
        mine = [op for op in ops if op["op"] not in before]
        if mine and mine[0]["state"] == "suspended":
            break
        if time.monotonic() > end:
            raise TimeoutError(ops)
    # An administrator and the agent are two as well.
    status, _, text = repath(a, "suspend rxe0")
    assert status == 4, text
    host.ask("resume", op=mine[0]["op"], timeout=30)
    assert server.running, server.output()
    return host


def monitor(a, host):
    """It says that the module goes and comes, and what there is then; so does the agent see it."""
    job = a.start("exec repath -j monitor")
    a.run("holdqp -b >/dev/null; holdqp -b >/dev/null")
    job.wait_for('"event":"qp","action":"del"')
    holder, numbers = tracking.hold(a, "-q 2")
    a.run("rmmod ib_repath")
    job.wait_for('"event":"module","action":"del"')
    assert a.status("repath qp") == 3
    a.load_repath()
    job.wait_for('"event":"module","action":"new"')
    for qpn in numbers["qpns"]:
        job.wait_for(rf'"event":"qp","action":"(now|new)",.*"qpn":{qpn},')
    holder.kill()
    job.wait_for(rf'"event":"process","action":"del",.*"pid":{numbers["pid"]},')
    # At once, not at the second try.
    assert host.ask("devices")["devices"][0]["dev"] == "rxe0"


def test(bed):
    bed.files["usr/bin/script"] = "/usr/bin/script"
    a = bed.guest("a")
    a.load_repath()
    pair = Pair(a, a, "-q 2", env=SHIM)     # both ends move together
    pair.wait_running()
    holder, numbers = tracking.hold(a, "-q 8")
    pids = [int(a.run("pidof rcheck").split()[0]), numbers["pid"]]

    filters(a, pids)
    looking(a, pids)
    plans(a, pids)
    holder.kill()
    holder.wait(30, check=False)

    # Progress for a person: a line for each stage; for a pipe only the end.
    shown = a.run("script -qec 'repath suspend rxe0' /dev/null")
    for stage in ("check", "gate", "drain", "release"):
        assert re.search(rf"^ +\d\.\d+ s +{stage} +PID {pids[0]} \(rcheck\)", shown, re.M), shown
    shown = a.run("repath resume rxe0")
    assert re.fullmatch(r"resumed rxe0, operation \d+, 2 processes: open .*\n", shown), shown
    pair.wait_progress()

    two_administrators(a)
    interrupted(a)
    goes_on(a)
    host = agents(a)
    pair.wait_progress()
    # Where there is nothing to resume on, nobody is touched. Status 5 is trouble_device's.
    status, op, text = repath(a, "suspend rxe0")
    assert status == 0, text
    assert a.status(f"repath resume {op['op']} on rxe7") == 1
    status, _, text = repath(a, f"resume {op['op']}")
    assert status == 0, text
    pair.wait_progress()
    pair.finish()
    monitor(a, host)
