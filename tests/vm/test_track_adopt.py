# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Queue pairs and contexts that are older than the module are known when insmod returns; their
changes and their end are followed."""

import os
import re

import image
import tracking


def started_by_unit(guest):
    """The module is loaded by what the package's unit file runs when the machine boots; there are queue pairs then."""
    with open(os.path.join(image.TOP, "debian/repath.repath-adopt.service")) as f:
        load, adopt = re.findall("^ExecStart=(.*)$", f.read(), re.M)
    assert load == "/sbin/modprobe ib_repath", load
    guest.load_repath()
    found = guest.run(adopt.removeprefix("/usr/sbin/"))
    assert re.search("^dev rxe0 qps 8 contexts 2 .* missing-qps 0 missing-contexts 0", found), found    # and GSI


def test(bed):
    (a,) = bed.guests("a")
    connected, numbers = tracking.hold(a, "-q 5 -c")
    idle, idle_numbers = tracking.hold(a, "-q 2 -t ud")
    started_by_unit(a)

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
