# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A process without the shim, and a peer without it, make a suspend refuse, with a name, before
anything is touched."""

from move import SHIM, moving, repath
from traffic import Pair, last_json


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


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b):
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

        half = a.start("exec rcheck -p 18602 -i 0.5")
        client = b.start(f"exec env {SHIM} rcheck -p 18602 -i 0.5 -n 8 -b {a.mgmt_ip}")
        client.wait_for(r'"rate":[1-9]')
        refused(b, "rcheck")
        client.kill(15)
        for job in (client, half):
            job.wait(60)
