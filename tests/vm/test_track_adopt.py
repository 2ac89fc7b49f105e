# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Queue pairs and contexts that are older than the module are known when insmod returns; their
changes and their end are followed."""

import tracking


def test(bed):
    (a,) = bed.guests("a")
    connected, numbers = tracking.hold(a, "-q 5 -c")
    idle, idle_numbers = tracking.hold(a, "-q 2 -t ud")
    a.load_repath()

    found = tracking.compare_with_kernel(a)
    for qpn in numbers["qpns"]:
        qp = found["rxe0", qpn]
        assert (qp["state"], qp["dqpn"], qp["pid"]) == ("RTS", qpn, numbers["pid"]), qp
        assert qp["dgid"] == tracking.ipv4_gid("10.0.0.1"), qp
    for qpn in idle_numbers["qpns"]:
        assert found["rxe0", qpn]["type"] == "UD", found
    assert any(qp["type"] == "GSI" and qp["kernel"] for qp in found.values()), found
    device = tracking.device(a)
    assert (device["contexts"], device["processes"]) == (2, 2), device

    connected.kill(9)
    tracking.wait_qps(a, 2)
    assert tracking.device(a)["contexts"] == 1
    idle.kill(15)
    tracking.wait_qps(a, 0)
    a.wait_until("repath device | grep -q 'contexts 0'")
    tracking.compare_with_kernel(a)
