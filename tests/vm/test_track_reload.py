# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rmmod with queue pairs open and traffic on them, and insmod again: nothing of the traffic is
disturbed, and the same queue pairs are tracked as before."""

import tracking
import traffic


def test(bed):
    a, b = bed.guests("a", "b")
    a.load_repath()
    b.load_repath()
    idle, _ = tracking.hold(a, "-q 8 -c")
    pair = traffic.Pair(server=a, client=b, options="-q 2")
    pair.wait_running()
    before = tracking.user_qps(a)
    assert len(before) == 10, before

    for _ in range(5):
        a.run("rmmod ib_repath")
        a.load_repath()
        after = tracking.user_qps(a)
        assert after == before, (before, after)
    pair.wait_progress()
    a.run("rmmod ib_repath")
    pair.finish()
    a.load_repath()
    assert len(tracking.user_qps(a)) == 8
    idle.kill(9)
    tracking.wait_qps(a, 0)
    tracking.compare_with_kernel(a)
