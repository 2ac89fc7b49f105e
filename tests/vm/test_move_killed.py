# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A mover or a peer is killed at each stage of a move: the operation comes to an end, the other
process gets the errors that verbs define on each connection, the device is free, and a new pair can be moved. The
mover's kernel log has how the operation ended, and who left it where.
LONG=1: at more moments of each stage."""

import re
import time

from move import LOG, LONG, SHIM, moving
from traffic import PROBING, Pair, check_all_dead
from trouble import DEAD, kernel_says, start, wait_final

PROCESSORS = 1
TIMEOUT = 900
QPS = 4


def kill(guest):
    """Its number."""
    return guest.run("pid=$(pidof rcheck); kill -9 $pid; echo $pid").strip()


def freeze(guest):
    guest.run("kill -STOP $(pidof rcheck)")


def thaw(guest):
    guest.run("kill -CONT $(pidof rcheck)", check=False)


def clean_up(mover_guest, op, pair, victim, left=""):
    """The other end has got the verbs' errors. Nothing is left of the pair, and the devices are free: of
    processes, and of the operation. @left: what is said of a mover that was killed before the operation was over."""
    # First of all: what a survivor calls while it is suspended waits for the resume.
    if wait_final(mover_guest, op)[0] in ("suspended", "parked"):
        start(mover_guest, f"resume {op} timeout 10")
        wait_final(mover_guest, op)
    kernel_says(mover_guest, rf"operation {op} on rxe0: (failed|suspended|resumed)")
    if left:
        kernel_says(mover_guest, rf"operation {op} on rxe0: {left}")
    for job in pair.jobs:
        job.wait(60, check=False)
    survivor = pair.server if victim is pair.client_guest else pair.client
    print(f"    {check_all_dead(survivor, QPS)}", flush=True)
    log = (pair.server_guest if survivor is pair.server else pair.client_guest).run(f"cat {LOG}")
    assert re.search(DEAD, log), f"the survivor's log:\n{log}"
    for guest in (pair.client_guest, pair.server_guest):
        guest.run(f"rm -f {LOG}")
        guest.wait_until("! pidof rcheck")
        guest.rxe_del("rxe0")
        guest.rxe_add("rxe0")


def test(bed):
    a, b = bed.guests("a", "b")
    port = 18600

    def pair():
        nonlocal port
        port += 1
        made = Pair(a, b, f"-q {QPS} -n 8 -b -k 4", f"-i 0.2 {PROBING}", env=SHIM, port=port)
        made.wait_running()
        return made

    with moving(a, b) as mover:
        # Held at a stage by a process that does not answer, then killed there. b is the mover.
        for victim, frozen in ((b, b), (b, a), (a, a)):
            print(f"  checking: {victim} killed, {frozen} frozen", flush=True)
            both = pair()
            freeze(frozen)
            op = start(b, "suspend rxe0 timeout 8")
            time.sleep(0.5)
            pid = kill(victim)
            thaw(frozen)
            clean_up(b, op, both, victim, f"PID {pid} has left after stage start" if victim is b else "")
        # Killed a while after the beginning: gates, drain, reset, release.
        for victim in (b, a):
            for delay in (0, 0.03, 0.06, 0.1, 0.15, 0.25) if LONG else (0.03, 0.1):
                print(f"  suspending: {victim} killed after {delay} s", flush=True)
                both = pair()
                op = start(b, "suspend rxe0 timeout 8")
                time.sleep(delay)
                kill(victim)
                clean_up(b, op, both, victim)
        # Suspended.
        for victim in (b, a):
            print(f"  suspended: {victim} killed", flush=True)
            both = pair()
            op = mover.suspend(b)["op"]
            pid = kill(victim)
            clean_up(b, op, both, victim, f"PID {pid} has left after stage release" if victim is b else "")
        # Resuming, the peer does not answer.
        for victim in (b, a):
            print(f"  resuming: {victim} killed, peer frozen", flush=True)
            both = pair()
            op = mover.suspend(b)["op"]
            freeze(a)
            start(b, f"resume {op} timeout 8")
            time.sleep(0.5)
            pid = kill(victim)
            thaw(a)
            clean_up(b, op, both, victim, f"PID {pid} has left after stage" if victim is b else "")
        for victim in (b, a):
            for delay in (0, 0.05, 0.1) if LONG else (0, 0.1):
                print(f"  resuming: {victim} killed after {delay} s", flush=True)
                both = pair()
                op = mover.suspend(b)["op"]
                start(b, f"resume {op} timeout 8")
                time.sleep(delay)
                kill(victim)
                clean_up(b, op, both, victim)

        both = pair()
        mover.swap(b)
        both.wait_progress()
        both.finish()
