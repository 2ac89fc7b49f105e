# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The system of one end sleeps (suspend to memory, ACPI S3), running and while a move is under way, shorter and
longer than the other end waits. All data are right, or both ends get the error that verbs define, and
both logs say why. LONG=1: all ways of sleeping too long."""

import os

from move import LOG, LONG, SHIM, moving, repath
from traffic import PROBING, Pair, check_all_dead
from trouble import kernel_said, kernel_says

PROCESSORS = 1
TIMEOUT = 900
QPS = 2
TRAFFIC = f"-q {QPS} -n 8 -b -k 4 -r 300"
SLEPT = r"the system has slept for \d+ s, with \d+ connections"
# As soft RoCE takes it; InfiniBand tries for two minutes then, and is quiet in between.
FOR_EVER = "--retry 7"
if os.environ.get("INFINIBAND"):
    FOR_EVER += " --timeout 22"


def wait_state(guest, op, wanted, timeout=60):
    guest.wait_until(f"repath -j status {op} | grep -q '\"state\":\"{wanted}\"'", timeout)


def lease(guest, seconds):
    guest.run(f"echo {seconds} > /sys/module/ib_repath/parameters/peer_lease_s")


def mortal(a, b, port):
    """Its ends find out when the other one is gone."""
    pair = Pair(a, b, TRAFFIC, f"-i 0.3 --stall 90 {PROBING}", env=SHIM, port=port)
    pair.wait_running()
    return pair


def told_dead(job, guest, why):
    job.wait(120, check=False)
    print(f"    {job}: {check_all_dead(job, QPS)}", flush=True)
    log = guest.run(f"cat {LOG}")
    assert why in log, f"{guest}: no {why!r}:\n{log}"
    guest.run(f"rm {LOG}")


def running(_mover, a, b):
    """Nothing is under way. What the HCA repeats for long enough goes on; what it does not has failed. Who watches
    watches on. Who can not be asked is not moved."""
    monitor = b.start("exec repath monitor")
    pair = Pair(a, b, TRAFFIC, f"-i 0.3 {FOR_EVER}", env=SHIM.replace(LOG, "/tmp/goes-on.log"), port=18600)
    pair.wait_running()
    with b.asleep():
        pass
    pair.wait_progress(50)
    kernel_says(b, SLEPT)

    dies = mortal(a, b, 18601)
    with a.asleep():
        status, _, text = repath(b, "suspend rxe0 timeout 10")
        assert status and "does not answer" in text, text
        told_dead(dies.client, b, "its peer has not answered any retry of the HCA")
        assert monitor.running, monitor.output()
    pair.wait_progress(50)
    told_dead(dies.server, a, "its peer has not answered any retry of the HCA")
    kernel_says(a, SLEPT)
    kernel_says(b, "failed: .* does not answer")

    said = len(monitor.output())
    Pair(a, b, "-T 1", env=SHIM, port=18602).wait()
    assert "process" in monitor.output()[said:], monitor.output()[said:]
    monitor.kill(15)
    return pair


def suspended(mover, a, b, pair):
    """One end, then the other, sleeps while the connections are suspended; the peer is looked for when it wakes."""
    op = mover.suspend(b)
    said = kernel_said(b)
    with b.asleep():
        pass
    kernel_says(b, SLEPT, since=said)
    with a.asleep():
        b.run(f"repath resume {op['op']} on rxe0 timeout 60 nowait")
        b.wait_until(f"repath -j status {op['op']} | grep -q recreate")
    wait_state(b, op["op"], "resumed")
    pair.wait_progress(50)
    pair.finish()


def peer_given_up(mover, a, b):
    """The peer sleeps for longer than the mover, which is back, waits for it. It hears of that when it wakes, from
    the module alone: the process has gone."""
    pair = mortal(a, b, 18610)
    op = mover.suspend(b)["op"]
    lease(b, 2)
    said = kernel_said(a)
    with a.asleep():
        b.run(f"repath resume {op} on rxe0 timeout 60 nowait")
        told_dead(pair.client, b, "the peer's end is gone")
        kernel_says(b, r"the peer of QP 0x\w+ has not come back in 2 s")
        wait_state(b, op, "resumed")
        lease(b, 3600)
    kernel_says(a, SLEPT + ", 2 of them on a move", since=said)
    told_dead(pair.server, a, "the peer's end is gone")


def mover_given_up(mover, a, b):
    """The mover sleeps for longer than the peer waits, and comes back."""
    pair = mortal(a, b, 18611)
    op = mover.suspend(b)["op"]
    lease(a, 2)
    with b.asleep():
        told_dead(pair.server, a, "the peer's end is gone")
        kernel_says(a, r"the peer of QP 0x\w+ has not come back in 2 s")
        lease(a, 3600)
    b.run(f"repath resume {op} on rxe0 timeout 60 nowait")
    told_dead(pair.client, b, "the peer's end is gone")
    wait_state(b, op, "resumed")


def mover_forgotten(mover, a, b):
    """The same, and the peer's process, which is busy with something else, still has its queue pairs: its module
    answers for it."""
    pair = mortal(a, b, 18612)
    op = mover.suspend(b)["op"]
    lease(a, 2)
    with b.asleep():
        a.run("kill -STOP $(pidof rcheck)")
        a.wait_until("[ $(repath connection | grep -c 'state gone') -ge 2 ]")
        lease(a, 3600)
    b.run(f"repath resume {op} on rxe0 timeout 60 nowait")
    told_dead(pair.client, b, "the peer's end is gone")
    a.run("kill -CONT $(pidof rcheck)")
    told_dead(pair.server, a, "the peer's end is gone")


def test(bed):
    bed.sleeps = True
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        suspended(mover, a, b, running(mover, a, b))
        for case in (peer_given_up, mover_given_up, mover_forgotten) if LONG \
                else (peer_given_up,):
            print(f"  {case.__name__}", flush=True)
            case(mover, a, b)
