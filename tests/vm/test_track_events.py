# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The group "monitor" hears of every queue pair, process and device, in order."""

import tracking


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
