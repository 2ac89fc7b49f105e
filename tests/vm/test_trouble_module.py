# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What is done to the system around connections: rmmod and insmod of the module, rmmod of ib_uverbs, the
device's network namespace, system suspend. Each is refused or works as documented, running and
suspended, and all data are right."""

from move import SHIM, moving, repath
from traffic import Pair
from trouble import start, wait_final

TIMEOUT = 300


def refused(guest, command, *words):
    job = guest.start(command)
    text = job.wait(60, check=False)
    assert job.status != 0, f"{command} was not refused"
    assert not words or any(word in text for word in words), text


def freeze(guest):
    """A system suspend as far as tasks are frozen and thawed again."""
    guest.run("echo freezer > /sys/power/pm_test && echo mem > /sys/power/state", timeout=90)


def ready(guest, count):
    guest.wait_until(f"[ $(repath connection | grep -c 'state ready') -ge {count} ]")


def test(bed):
    a, b = bed.guests("a", "b")
    b.run("echo 1 > /sys/module/suspend/parameters/pm_test_delay 2>/dev/null || true")
    with moving(a, b) as mover:
        pair = Pair(a, b, "-q 2 -n 8 -b -k 4 -r 500", "-i 0.3 --numbers", env=SHIM)
        pair.wait_running()
        ready(b, 2)

        # Running: ib_uverbs stays, as the module must be told of removals before it.
        refused(b, "rmmod ib_uverbs")
        # rxe lets nobody change its namespace. Where devices are shared nobody can, whatever the device;
        # that is changed while there is no other namespace, or not at all.
        b.run("rdma system set netns exclusive && ip netns add other")
        refused(b, "rdma dev set rxe0 netns other", "not supported")
        freeze(b)
        pair.wait_progress(50)

        # Suspended: the module stays, too, since nobody else could wake the processes.
        op = mover.suspend(b)
        refused(b, "rmmod ib_repath", "in use", "unavailable", "busy")
        refused(b, "rmmod ib_uverbs")
        refused(b, "rdma dev set rxe0 netns other", "not supported")
        freeze(b)
        freeze(a)
        mover.resume(b, op)
        pair.wait_progress(50)

        # While it is being suspended: who is frozen answers later.
        op = start(b, "suspend rxe0 timeout 30")
        freeze(a)
        state, text = wait_final(b, op)
        assert state == "suspended", text
        mover.resume(b, {"op": op})
        pair.wait_progress(50)

        # The module goes and comes, here and there; the processes never notice.
        for guests in ((b,), (a,)):
            for guest in guests:
                guest.run("rmmod ib_repath")
            pair.wait_progress(50)
            status, _, text = repath(b, "suspend rxe0 timeout 5")
            assert status, f"suspended without a module at one end:\n{text}"
            for guest in guests:
                guest.load_repath()
                ready(guest, 2)
            mover.resume(b, mover.suspend(b))
            pair.wait_progress(50)
        log = b.run("cat /tmp/shim.log")
        assert "the module was unloaded" in log and log.count("registered with the module") == 2, log
        # What it says of its device when it has registered is taken.
        assert "the module refused" not in log, log
        pair.finish()
