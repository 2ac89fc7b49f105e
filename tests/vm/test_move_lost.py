# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Moves in which the two ends can not find each other again: both go to new addresses at once, the host of one
vanishes, the module of who stays is unloaded meanwhile. Both ends, or who is left, get the error that verbs
define for a peer that has vanished, after the lease and not never; and the logs say why."""

import time

from move import LOG, SHIM, moving
from test_move_both_guests import at_once
from traffic import PROBING, Pair, check_all_dead

PROCESSORS = 1
QPS = 2
LEASE = 8       # s


def make(a, b, port):
    pair = Pair(a, b, f"-q {QPS} -n 8 -b -k 4 -r 300", f"-i 0.3 --stall 90 {PROBING}", env=SHIM, port=port)
    pair.wait_running()
    return pair


def told_dead(job, guest):
    job.wait(120, check=False)
    print(f"  {job}: {check_all_dead(job, QPS)}", flush=True)
    log = guest.run(f"cat {LOG}")
    assert "peer's end is gone" in log, f"{guest}: {log}"


def unloaded_peer(mover, a, b):
    """The module of the end that stays is taken out, and put in again, while the other one is away."""
    pair = make(a, b, 18600)
    op = mover.suspend(b)
    mover.note_inflight(op)
    time.sleep(1)
    assert all(job.running for job in pair.jobs), [job.output()[-500:] for job in pair.jobs]
    a.run("rmmod ib_repath")
    a.load_repath(f"peer_lease_s={LEASE}")
    mover.resume(b, op)
    for job, guest in ((pair.server, a), (pair.client, b)):
        told_dead(job, guest)


def both_new(mover, a, b):
    """Both are away at once, and neither comes back to where it was."""
    pair = make(a, b, 18601)
    ops = at_once(*(lambda g=g: mover.suspend(g, timeout=60) for g in (a, b)))
    for guest in (a, b):
        mover.release(guest)
    for guest in (a, b):
        mover.new_device(guest)
    for guest, op in zip((a, b), ops):
        guest.run(f"repath resume {op['op']} on {mover.device(guest)} nowait")
    for job, guest in ((pair.server, a), (pair.client, b)):
        told_dead(job, guest)


def vanished(mover, a, b):
    """A host ends with its processes suspended."""
    pair = make(a, b, 18602)
    mover.suspend(b)
    b.kill()
    time.sleep(2)
    assert pair.server.running, "told at once, before the lease is over"
    told_dead(pair.server, a)


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b, module=f"peer_lease_s={LEASE}") as mover:
        for case in (unloaded_peer, both_new, vanished):
            case(mover, a, b)
            print(f"  {case.__name__}", flush=True)
            for guest in (a, b):
                if guest.alive:
                    guest.run(f"rm -f {LOG}")
