# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Who may not administrate the device's network namespace reads, and suspends nothing: not even as
root of a namespace that sees the device."""

import tracking


def refused(guest, command, why):
    text = guest.run(command + " && echo DONE", check=False)
    assert "DONE" not in text and why in text, f"{command}: {text}"


def test(bed):
    (a,) = bed.guests("a")
    a.load_repath()
    job, numbers = tracking.hold(a, "-q 2 -c")

    # In a user namespace of its own, but in the first network namespace.
    refused(a, "unshare -U repath suspend rxe0", "not permitted")
    refused(a, "unshare -U repath abort 1", "not permitted")
    # Root over its own network namespace, which sees the device as all do.
    refused(a, "unshare -U -r -n repath suspend rxe0", "CAP_NET_ADMIN over the device's")
    assert len(tracking.user_qps(a)) == 2 and job.running
    assert "rxe0" in a.run("unshare -U repath device")
    assert f"qpn {numbers['qpns'][0]} " in a.run("unshare -U repath qp")

    # With the right to it: what refuses is the process without the shim.
    refused(a, "repath suspend rxe0", str(numbers["pid"]))
