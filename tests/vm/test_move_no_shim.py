# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A process without the shim, and a peer without it, make a suspend refuse, with a name, before
anything is touched; by force the one is killed, the connections to the other fail, and the others are moved."""

from move import SHIM, moving, repath
from traffic import PROBING, Pair, check_all_dead, last_json
from trouble import kernel_says, shim_says


def refused(guest, *words):
    status, _, text = repath(guest, "suspend rxe0 timeout 20")
    assert status == 4, f"not refused ({status}):\n{text}"
    for word in words:
        assert str(word) in text, f"{word!r} is not named:\n{text}"


def hold(guest, arguments, env=""):
    job = guest.start(f"exec env {env} holdqp {arguments}")
    job.wait_for(r"^\{.*\}")
    return job, last_json(job.output())["pid"]


def end(job):
    job.kill(15)
    job.wait()


def half_shimmed(a, b, port):
    """A pair in traffic of which only the client, in guest @b, has the shim."""
    server = a.start(f"exec rcheck -p {port} {PROBING} -i 0.5 --numbers")
    client = b.start(f"exec env {SHIM} rcheck -p {port} {PROBING} -i 0.5 --numbers -q 2 -n 8 -b {a.mgmt_ip}")
    client.wait_for(r'"rate":[1-9]')
    return server, client


def by_force(mover, a, b):
    good = Pair(a, b, "-q 2 -n 8 -b", env=SHIM, port=18620)
    good.wait_running()
    half = half_shimmed(a, b, 18621)
    plain, pid = hold(b, "-c")
    status, op, text = repath(b, "suspend rxe0 timeout 20 force", 60)
    assert status == 0 and op["state"] == "suspended", text
    plain.wait(10, check=False)
    assert plain.status in (128 + 9, -9), plain.status
    mover.release(b)
    mover.new_device(b)
    mover.resume(b, op)
    good.wait_progress()
    good.finish()
    for job in half:
        job.wait(60, check=False)
        assert job.status == 1, f"{job.status}: {job.output()[-2000:]}"
        check_all_dead(job, 2)
    kernel_says(b, rf"PID {pid} \(holdqp\) has rxe0 open without libibrepath.so, will be killed")
    shim_says(b, "its connection is given up by force")


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        pair = Pair(a, b, "-q 2 -n 8 -b", env=SHIM)
        pair.wait_running()

        plain, pid = hold(b, "-c")
        refused(b, pid, "holdqp")
        pair.wait_progress()
        end(plain)

        # A context alone, without a queue pair, holds the device as well.
        plain, pid = hold(b, "-q 0 -m 0")
        refused(b, pid, "holdqp")
        end(plain)

        pair.wait_progress()
        pair.finish()

        lonely = Pair(a, b, "-n 8 -b", port=18601)      # neither has it
        lonely.wait_running()
        refused(b, "rcheck")
        lonely.finish()

        server, client = half_shimmed(a, b, 18602)
        refused(b, "rcheck")
        client.kill(15)
        for job in (client, server):
            job.wait(60)

        by_force(mover, a, b)
