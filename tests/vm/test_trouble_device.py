# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The new HCA never comes, comes and goes, is in the wrong network, has a smaller MTU: refused or
parked with the reason, resumed on another or on the old one; all data are right."""

from move import SHIM, moving, repath
from test_trouble_module import refused
from traffic import Pair
from trouble import kernel_says, rxe_elsewhere, shim_says

TIMEOUT = 300


def resume(guest, op, device, timeout=2):
    return repath(guest, f"resume {op['op']} on {device} timeout {timeout}", 60)


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        pair = Pair(a, b, "-q 2 -n 8 -b -k 4", env=SHIM)
        pair.wait_running()

        # It never comes: the processes stay where they are, and go back to the old one.
        op = mover.suspend(b)
        status, _, text = resume(b, op, "rxe5")
        assert status and "no RDMA device" in text, text
        assert "suspended" in b.run(f"repath status {op['op']}")
        mover.resume(b, op)
        pair.wait_progress()

        # It comes and goes before the resume.
        op = mover.suspend(b)
        nic = b.plug("rdma", ip="10.0.0.42")
        b.rxe_add("rxe5", nic)
        b.rxe_del("rxe5")
        status, _, text = resume(b, op, "rxe5")
        assert status and "no RDMA device" in text, text

        # Behind it is another network: no peer answers. Then the administrator takes the right one.
        rxe_elsewhere(b)
        status, found, text = resume(b, op, "rxe5")
        assert status == 5 and found["state"] == "parked" and "has not gone on" in text, (status, text)
        kernel_says(b, r"parked: PID \d+ \(rcheck\) has not gone on after stage recreate")
        shim_says(b, rf"(?s)op {op['op']}: resume on rxe5.*op {op['op']}, recreate: done")
        # Nobody else could wake the process.
        refused(b, "rmmod ib_repath", "in use", "unavailable", "busy")
        mover.resume(b, op, "rxe0")
        pair.wait_progress()

        # It comes, and goes when the process is on it already: whoever removes it waits for the
        # process, which the administrator sends elsewhere.
        op = mover.suspend(b)
        status, found, text = resume(b, op, "rxe5")
        assert status == 5 and found["state"] == "parked", (status, text)
        removal = b.start("rdma link del rxe5")
        b.wait_until("dmesg | grep -q 'rxe5 is removed while in use; with unplug_ms 0 nobody is asked to leave it'")
        mover.resume(b, op, "rxe0")
        shim_says(b, rf"(?s)op {op['op']}: resume on rxe5.*op {op['op']}: resume on rxe0.*op {op['op']}, replay: done")
        removal.wait(60)
        b.wait_until("[ ! -e /sys/class/infiniband/rxe5 ]")
        pair.wait_progress()

        # A smaller MTU, and the old one again: both ends use what both carry.
        for mtu in (600, 1500):
            op = mover.suspend(b)
            b.rxe_del("rxe0")
            b.run(f"ip link set {b.nics[0].ifname} mtu {mtu}")
            b.rxe_add("rxe0", b.nics[0])
            mover.resume(b, op)
            pair.wait_progress()
            active = {600: 512, 1500: 1024}[mtu]
            assert f"mtu {active}" in b.run("repath qp | grep rcheck"), b.run("repath qp")
            assert f"mtu {active}" in a.run("repath qp | grep rcheck"), a.run("repath qp")
        pair.finish()
