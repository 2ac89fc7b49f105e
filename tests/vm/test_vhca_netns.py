# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An HCA that can be taken from its programs gets another network namespace. That is no removal: nothing is
suspended for it. Who uses it loses it and is told so, at both ends; who is suspended goes on when it is back; in
the other namespace it is tracked, and seen by that namespace alone."""

import re

import unplug
from move import SHIM, moving, repath
from move_fabric import FabricMover
from traffic import Pair, last_json
from trouble import kernel_says, shim_says


def is_in(guest, device, namespace):
    """By the kernel."""
    return guest.status(f"ip netns exec {namespace} rdma dev show {device}") == 0


def send_away(guest, device):
    guest.run(f"rdma dev set {device} netns other")
    assert is_in(guest, device, "other")


def fetch_back(guest, device):
    guest.run(f"ip netns exec other rdma dev set {device} netns first")
    assert not is_in(guest, device, "other")


def test(bed):
    fabric = bed.fabric("mesh:2", guests={"a": ["H1"], "b": ["H2"]})
    a, b = fabric.guests
    # While there is one namespace only: later the kernel refuses it.
    b.run("rdma system set netns exclusive && ip netns add other && ip netns attach first 1")
    with moving(a, b, mover=FabricMover(fabric, spare=[]), module=unplug.LOADED) as mover:
        device = mover.device(b)
        pair = Pair(a, b, "-q 4 -n 8 -b", env=SHIM)
        pair.wait_running()
        watch = b.start(f"exec env {SHIM} stdbuf -oL ibv_asyncwatch -d {device}")
        watch.wait_for("async event FD")
        send_away(b, device)
        for job in pair.jobs:
            job.wait(90, check=False)
            assert job.status == 1, f"{job.status}: {job.output()[-2000:]}"
        # As from an HCA that is gone: its file descriptor answers EIO, its events say so.
        error = last_json(pair.client.output())["error"]
        assert re.search("Input/output error|local catastrophic error", error), error
        watch.wait_for("DEVICE_FATAL")
        watch.kill(9)
        kernel_says(b, f"{device} goes to another network namespace while in use; what used it loses it")
        shim_says(b, f"{device}: IBV_EVENT_DEVICE_FATAL: it is gone")
        assert not unplug.operations(b), unplug.operations(b)

        # There, and there only.
        holder = b.start(f"exec ip netns exec other holdqp -d {device} -q 3")
        holder.wait_for("qpns")
        _, found, text = repath(b, f"qp dev {device}")
        assert not found and "no RDMA device" in text, text
        inside = b.run(f"ip netns exec other repath -j qp dev {device}")
        assert inside.count('"comm":"holdqp"') == 3, inside
        holder.kill(15)
        holder.wait(20, check=False)
        fetch_back(b, device)
        fabric.wait_active(["H2"])

        # Away and back while its process is suspended.
        pair = Pair(a, b, "-q 4 -n 8 -b", env=SHIM)
        pair.wait_running()
        op = mover.suspend(b)
        send_away(b, device)
        status, _, text = repath(b, f"resume {op['op']} timeout 5")
        assert status, f"resumed on a device of another namespace:\n{text}"
        fetch_back(b, device)
        fabric.wait_active(["H2"])
        mover.resume(b, op)
        pair.wait_progress(50)
        pair.finish()
