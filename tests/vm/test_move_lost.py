# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Moves in which the two ends can not find each other again: both go to new addresses at once, the host of one
vanishes, the one that moves or the one that does not, the module of who stays is unloaded meanwhile. Both ends,
or who is left, get the error that verbs define for a peer that has vanished, after the lease and not never; and
the logs say why. LONG=1: also of a peer that vanishes while the mover is away, or as gates are closed."""

import time

from move import LOG, LONG, SHIM, moving
from test_move_both_guests import at_once
from traffic import PROBING, Pair, check_all_dead
from trouble import Case, kernel_said, kernel_says, start, wait_state

PROCESSORS = 1
QPS = 2
LEASE = 8       # s
GIVEN_UP = rf"PID {{pid}} \(rcheck\): the peer of QP 0x\w+ has not come back in {LEASE} s: the connection is given up"


def make(a, b, port):
    pair = Pair(a, b, f"-q {QPS} -n 8 -b -k 4 -r 300", f"-i 0.3 --stall 90 {PROBING}", env=SHIM, port=port)
    pair.wait_running()
    return pair


def told_dead(job, guest, since=None):
    """@since: kernel_said() of before; its log has it as well. Not of who was loaded anew and has heard of nobody, which
    only the shim is told."""
    job.wait(120, check=False)
    print(f"  {job}: {check_all_dead(job, QPS)}", flush=True)
    log = guest.run(f"cat {LOG}")
    assert "peer's end is gone" in log, f"{guest}: {log}"
    if since is not None:
        kernel_says(guest, r"\(rcheck\): the peer of QP 0x\w+(, which is suspended, is gone| has not come back in)", since)


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
    said = {guest: kernel_said(guest) for guest in (a, b)}
    ops = at_once(*(lambda g=g: mover.suspend(g, timeout=60) for g in (a, b)))
    for guest in (a, b):
        mover.release(guest)
    for guest in (a, b):
        mover.new_device(guest)
    for guest, op in zip((a, b), ops):
        guest.run(f"repath resume {op['op']} on {mover.device(guest)} nowait")
    for job, guest in ((pair.server, a), (pair.client, b)):
        told_dead(job, guest, said[guest])


def vanished(mover, a, b):
    """A host ends with its processes suspended."""
    pair = make(a, b, 18602)
    mover.suspend(b)
    said = kernel_said(a)
    b.kill()
    time.sleep(2)
    assert pair.server.running, "told at once, before the lease is over"
    told_dead(pair.server, a, said)


def told_vanished(b, case, op, ends, *kernel, shim):
    """The host of @case's peer is not heard any more: @op comes to its end, the program gets the error, and both logs
    of the mover say why. Its device is moved again in what comes next."""
    pid = case.mover_pid()
    case.pair.client.wait(120, check=False)
    print(f"  {case}: {check_all_dead(case.pair.client, QPS)}", flush=True)
    wait_state(b, op, ends)
    log = case.log_of(b)
    assert shim in log, f"the survivor's log:\n{log}"
    for pattern in kernel:
        kernel_says(b, pattern.format(op=op, pid=pid))
    case.signal(9)


def peer_case(a, b, number, point):
    """It comes to its point in the next operation of b's, and says no more."""
    case = Case(a, b, 40 + number, "peer", point)
    case.pair.wait_running()
    return case


def peer_vanished_asked(_mover, a, b):
    """The gates are open yet: what was refused has nothing to do with it, the HCA finds out by itself."""
    case = peer_case(a, b, 0, "before msg PREPARED")
    case.arm("stop")
    op = start(b, "suspend rxe0 timeout 30")
    case.wait_hit()
    with b.bed.networks.cut("rdma"):
        told_vanished(b, case, op, "failed",
                      r"operation {op} on rxe0: failed: PID {pid} \(rcheck\): its peer does not answer",
                      shim="its peer has not answered any retry of the HCA")


def peer_vanished_stopping(_mover, a, b, number=1, point="before msg READY"):
    case = peer_case(a, b, number, point)
    case.arm("stop")
    op = start(b, "suspend rxe0 timeout 4")
    case.wait_hit()
    with b.bed.networks.cut("rdma"):
        told_vanished(b, case, op, "failed",
                      r"operation {op} on rxe0: aborting: PID {pid} \(rcheck\) has not gone on after stage", GIVEN_UP,
                      r"operation {op} on rxe0: failed", shim="the peer's end is gone")


def peer_vanished_closing(mover, a, b):
    """It has been told to close its gates, and has not said that it has."""
    peer_vanished_stopping(mover, a, b, 4, "before msg GATE/READY")


def peer_vanished_resuming(mover, a, b):
    case = peer_case(a, b, 2, "before msg INFO")
    op = mover.suspend(b)["op"]
    case.arm("stop")
    start(b, f"resume {op} on rxe0 timeout 60")
    case.wait_hit()
    with b.bed.networks.cut("rdma"):
        told_vanished(b, case, op, "resumed", GIVEN_UP, r"operation {op} on rxe0: resumed",
                      shim="the peer's end is gone")


def peer_vanished_meanwhile(mover, a, b):
    """Nobody there has heard anything of the resume."""
    case = peer_case(a, b, 3, "before reply none")
    op = mover.suspend(b)["op"]
    with b.bed.networks.cut("rdma"):
        start(b, f"resume {op} on rxe0 timeout 60")
        told_vanished(b, case, op, "resumed", GIVEN_UP, r"operation {op} on rxe0: resumed",
                      shim="the peer's end is gone")


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b, module=f"peer_lease_s={LEASE}") as mover:
        for case in (unloaded_peer, both_new, peer_vanished_asked, peer_vanished_stopping, peer_vanished_resuming,
                     *([peer_vanished_meanwhile, peer_vanished_closing] if LONG else []), vanished):
            case(mover, a, b)
            print(f"  {case.__name__}", flush=True)
            for guest in (a, b):
                if guest.alive:
                    guest.run(f"rm -f {LOG}")
