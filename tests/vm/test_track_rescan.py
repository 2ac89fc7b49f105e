# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What happened while no probe ran is repaired by a rescan: what came is adopted with its path,
what changed is asked for, what has gone is dropped."""

import tracking

PARAMETERS = "/sys/module/ib_repath/parameters"


def test(bed):
    (a,) = bed.guests("a")
    a.load_repath()
    leaver, _ = tracking.hold(a, "-q 4 -c")
    _, stays = tracking.hold(a, "-q 2 -c")
    assert len(tracking.user_qps(a)) == 6

    a.run("echo 0 > /sys/kernel/debug/kprobes/enabled")
    leaver.kill(9)
    a.wait_until("[ $(pidof holdqp | wc -w) = 1 ]")
    _, comes = tracking.hold(a, "-q 3 -c")
    blind = tracking.user_qps(a)
    assert len(blind) == 6 and not [qp for qp in blind.values() if qp["pid"] == comes["pid"]]
    a.run("echo 1 > /sys/kernel/debug/kprobes/enabled")

    a.run(f"echo 1 > {PARAMETERS}/rescan")
    tracking.wait_qps(a, 5)
    found = tracking.compare_with_kernel(a)
    for qpn in comes["qpns"]:
        qp = found["rxe0", qpn]
        assert (qp["state"], qp["dqpn"], qp["pid"]) == ("RTS", qpn, comes["pid"]), qp
    for qpn in stays["qpns"]:
        assert found["rxe0", qpn]["pid"] == stays["pid"], found
    device = tracking.device(a)
    assert (device["contexts"], device["processes"]) == (2, 2), device
    assert int(a.run(f"cat {PARAMETERS}/rescans")) >= 1
    assert a.run(f"cat {PARAMETERS}/no_memory").strip() == "0"

    a.run("killall holdqp")
    tracking.wait_qps(a, 0)
    tracking.compare_with_kernel(a)
