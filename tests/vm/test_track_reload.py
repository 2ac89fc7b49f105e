# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rmmod with queue pairs open and traffic on them, and insmod again: nothing of the traffic is
disturbed, and the same queue pairs are tracked as before."""

import time

import tracking
import traffic


def ageless(guest):
    """Those of processes, without what the module learns only of those that it sees being made."""
    return {key: {name: value for name, value in qp.items() if name != "age-s"}
            for key, qp in tracking.user_qps(guest).items()}


def check_ages(guest):
    """Time goes on for those that are there, and begins for a new one."""
    first = {key: qp["age-s"] for key, qp in tracking.user_qps(guest).items()}
    time.sleep(2)
    new, _ = tracking.hold(guest, "-q 1")
    ages = {key: qp["age-s"] for key, qp in tracking.user_qps(guest).items()}
    assert all(ages[key] >= age + 1 for key, age in first.items()), (first, ages)
    (young,) = [age for key, age in ages.items() if key not in first]
    assert young < min(ages[key] for key in first), (first, ages)
    new.kill(9)
    tracking.wait_qps(guest, len(first))


def test(bed):
    a, b = bed.guests("a", "b")
    a.load_repath()
    b.load_repath()
    idle, _ = tracking.hold(a, "-q 8 -c")
    pair = traffic.Pair(server=a, client=b, options="-q 2")
    pair.wait_running()
    check_ages(a)
    before = ageless(a)
    assert len(before) == 10, before

    for _ in range(5):
        a.run("rmmod ib_repath")
        a.load_repath()
        pair.wait_progress()
        after = ageless(a)
        assert after == before, (before, after)
    a.run("rmmod ib_repath")
    pair.finish()
    a.load_repath()
    assert len(tracking.user_qps(a)) == 8
    idle.kill(9)
    tracking.wait_qps(a, 0)
    tracking.compare_with_kernel(a)
