# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Who listens hears of every queue pair, process and device, in order."""

import json
import signal

import tracking
from move import SHIM, repath

PROCESSORS = 1


def alive(events):
    """Queue pairs after all that has been told: {(device, QPN)}."""
    found = set()
    for event in events:
        if event["event"] == "qp":
            change = found.discard if event["action"] == "del" else found.add
            change((event["qp"]["dev"], event["qp"]["qpn"]))
    return found


def lost(a):
    """Who has not read for so long that events were lost knows all there is afterwards, and no more."""
    a.run("killall repath")
    monitor = a.start("exec stdbuf -oL repath -j monitor qp")
    a.run("until pidof repath; do usleep 20000; done")
    # The youngest repath waits in poll(): it listens.
    a.run("until grep -q '^7 ' /proc/$(pidof repath | cut -d ' ' -f 1)/syscall; do usleep 20000; done")
    marker, _ = tracking.hold(a, "-q 1")
    monitor.wait_for('"action":"new"')
    monitor.kill(signal.SIGSTOP)
    a.run("n=0; until [ $n = 4 ]; do holdqp -q 1000 -b >/dev/null; n=$((n + 1)); done")
    marker.kill(9)
    job, _ = tracking.hold(a, "-q 3 -c")
    tracking.wait_qps(a, 3)
    monitor.kill(signal.SIGCONT)
    monitor.wait_for('"event":"lost"')
    last, _ = tracking.hold(a, "-q 1")
    last.kill(9)
    monitor.wait_for(r'(?s)"event":"lost".*"action":"del"')
    tracking.wait_qps(a, 3)
    told = [json.loads(line) for line in monitor.output().splitlines()]
    end = max(i for i, event in enumerate(told) if event["event"] == "lost")
    assert alive(told[end:]) == set(tracking.qps(a)), told[end:]
    job.kill(9)
    tracking.wait_qps(a, 0)


def no_names(a):
    """Multicasts are one message for all PID namespaces: they name no process."""
    heard = {group: a.start(f"exec nlhear {group}") for group in ("monitor", "operation")}
    for job in heard.values():
        job.wait_for("listening")
    held = a.start(f"exec env {SHIM} holdqp -q 2 -c")
    held.wait_for("qpns")
    status, op, text = repath(a, "suspend rxe0")
    assert status == 0, text
    status, _, text = repath(a, f"resume {op['op']}")
    assert status == 0, text
    held.kill(9)
    tracking.wait_qps(a, 0)
    for group, least in (("monitor", 10), ("operation", 4)):
        heard[group].wait_for(f"(?s)(attrs.*){{{least}}}")
        text = heard[group].output()
        assert not [word for word in ("pid", "comm", "reason") if word in text], text


def test(bed):
    (a,) = bed.guests("a")
    a.load_repath()
    monitor = a.start("exec stdbuf -oL repath monitor")
    # It has joined when it hears of somebody who comes and goes.
    a.run("n=0; until [ $n = 5 ]; do holdqp -b >/dev/null; n=$((n + 1)); done")
    monitor.wait_for("process del")

    job, numbers = tracking.hold(a, "-q 3 -c")
    job.kill(9)
    pid = numbers["pid"]
    monitor.wait_for(f"process del .*pid {pid}")
    text = monitor.output()
    for qpn in numbers["qpns"]:
        lines = [line for line in text.splitlines()
                 if line.startswith("qp ") and f" qpn {qpn} " in line and f"pid {pid} " in line]
        actions = [line.split()[1] for line in lines]
        assert actions[0] == "new" and actions[-1] == "del", lines
        assert "change" in actions[1:-1] and actions.count("del") == 1, lines
        assert f"dqpn {qpn}" in lines[-1], lines
    assert len([line for line in tracking.events(text, "process", "new")
                if f"pid {pid} " in line]) == 1, text

    # It joins while events come, too: what it asks the kernel is not answered by one of these.
    late = a.start("STOPPER_JOIN=500 LD_PRELOAD=/usr/bin/libstopper.so"
                   " exec stdbuf -oL repath monitor")
    a.run("until grep -q libstopper /proc/[0-9]*/maps; do :; done 2>/dev/null;"
          "n=0; until [ $n = 20 ]; do holdqp -b >/dev/null; n=$((n + 1)); done")
    late.wait_for("process del")

    a.rxe_del("rxe0")
    monitor.wait_for("device del dev rxe0")
    a.rxe_add("rxe0")
    monitor.wait_for("device new dev rxe0")

    no_names(a)
    lost(a)
