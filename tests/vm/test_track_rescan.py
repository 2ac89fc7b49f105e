# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What happened while no probe ran is repaired by a rescan: what came is adopted with its path,
what changed is asked for, what has gone is dropped. `repath adopt` does it and says what it took.
What hardware does without being told is asked for by who reads."""

import tracking

PARAMETERS = "/sys/module/ib_repath/parameters"
ALL_PROBES = "/sys/kernel/debug/kprobes/enabled"


def missed_by_the_hooks(a):
    """What happened while the hooks came is found at the first look."""
    for watch_ms in (2000, 10000, 50000):
        a.run(f"echo 0 > {ALL_PROBES}")
        a.load_repath(f"watch_ms={watch_ms}")
        holder, numbers = tracking.hold(a, "-q 3 -c")
        a.run(f"echo 1 > {ALL_PROBES}")
        if a.run(f"cat {PARAMETERS}/rescans").strip() == "0":
            break
        # That look came too early on so slow a machine.
        holder.kill(9)
        a.wait_until("! pidof holdqp")
        a.run("rmmod ib_repath")
    tracking.wait_qps(a, 3, timeout=100)
    found = tracking.compare_with_kernel(a)
    assert all(found["rxe0", qpn]["dqpn"] == qpn for qpn in numbers["qpns"]), found
    holder.kill(9)
    tracking.wait_qps(a, 0)
    a.run("rmmod ib_repath")


def modified_at_once(a):
    """Many threads each wait in a modification for a neighbour that is not there: all are seen."""
    a.load_repath()
    a.run("holdqp -b -d rxe0 -q 400 -w ::ffff:10.0.0.77", timeout=120)
    assert not tracking.missed_probes(a)
    a.run("rmmod ib_repath")


def test(bed):
    (a,) = bed.guests("a")
    modified_at_once(a)
    missed_by_the_hooks(a)
    # The first look does not come while everything is blind.
    a.load_repath("watch_ms=3600000")
    leaver, _ = tracking.hold(a, "-q 4 -c")
    _, stays = tracking.hold(a, "-q 2 -c")
    assert len(tracking.user_qps(a)) == 6

    a.run(f"echo 0 > {ALL_PROBES}")
    leaver.kill(9)
    a.wait_until("[ $(pidof holdqp | wc -w) = 1 ]")
    _, comes = tracking.hold(a, "-q 3 -c")
    blind = tracking.user_qps(a)
    assert len(blind) == 6 and not [qp for qp in blind.values() if qp["pid"] == comes["pid"]]
    a.run(f"echo 1 > {ALL_PROBES}")

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

    # The same by command, which says what it found; for who may change things only.
    a.run(f"echo 0 > {ALL_PROBES}")
    _, late = tracking.hold(a, "-q 2 -c")
    a.run("kill -9 %d" % stays["pid"])
    a.wait_until("[ $(pidof holdqp | wc -w) = 2 ]")
    a.run(f"echo 1 > {ALL_PROBES}")
    report, = tracking.repath(a, "adopt rxe0")
    assert report["adopted-qps"] == 2 and report["adopted-contexts"] == 1, report
    assert report["swept"] == 3, report     # two queue pairs and a context
    assert report["missing-qps"] == 0 and report["missing-contexts"] == 0, report
    assert not any("age-s" in qp for qp in tracking.qps(a, f"pid {late['pid']}").values())
    report, = tracking.repath(a, "adopt")
    assert report["adopted-qps"] == report["adopted-contexts"] == report["swept"] == 0, report
    # What the hooks have seen from the beginning is found as it is.
    _, seen = tracking.hold(a, "-q 3 -c")
    report, = tracking.repath(a, "adopt rxe0")
    assert report["corrected"] == 0, report
    a.run("kill -9 %d" % seen["pid"])
    a.wait_until("[ $(pidof holdqp | wc -w) = 2 ]")
    assert a.status("setpriv --bounding-set=-net_admin --inh-caps=-net_admin repath adopt") != 0
    counts = {stats.get("dev"): stats["counts"] for stats in tracking.repath(a, "stats all")}
    assert counts["rxe0"] == {**counts[None], **counts["rxe0"]}, counts
    # With the GSI queue pair, which is older than the module.
    assert counts["rxe0"]["qp-adopted"] == 6 and counts["rxe0"]["swept"] >= 7, counts
    tracking.compare_with_kernel(a)

    broken, numbers = tracking.hold(a, "-q 3 -c -e")
    found = tracking.qps(a, f"pid {numbers['pid']} state err")
    assert {qpn for _, qpn in found} == set(numbers["qpns"]), found
    assert all(qp["pkey"] == "0xffff" and "age-s" in qp for qp in found.values()), found
    assert not tracking.qps(a, f"pid {numbers['pid']} state rts")

    a.run("killall holdqp")
    tracking.wait_qps(a, 0)
    tracking.compare_with_kernel(a)
