# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the shim adds to a post and a poll, before a move and after it, as a share of what soft RoCE's
own provider spends (steps.c): by instructions in user space, which the guest's processor counts one by
one. Those of the whole call, system call and all, which QEMU's -icount counts, are for information: an
aim that is a share of the provider's own is not met by dividing by the kernel's, too."""

import bed as beds
from move import SHIM, Mover
from traffic import json_lines

BED = False
BATCH = 16
# name, what it is, calls that share its count; the aim: below the best published sums
WAYS = [("post_send", "ibv_post_send of one signalled SEND", 1, 0.037),
        ("wr_send", "ibv_wr_start, _send, _set_sge, _complete", 1, 0.037),
        ("post_recv", "ibv_post_recv of one request", 1, 0.089),
        ("poll_send", "ibv_poll_cq that finds one SEND", 1, 0.037),
        ("poll_recv", "ibv_poll_cq that finds one receive", 1, 0.089),
        ("poll_batch", "ibv_poll_cq that finds 16 receives, each", BATCH, 0.089),
        ("poll_empty", "ibv_poll_cq that finds none", 1, None)]


def counts(guest, options):
    """(without the shim, with it, with it after a move)"""
    plain = json_lines(guest.run(f"steps {options} rxe0 </dev/null", timeout=120), "steps")[-1]
    mover = Mover("steps")
    guest.run("rm -f /tmp/again; mkfifo /tmp/again")
    job = guest.start(f"exec env {SHIM} steps {options} rxe0 <> /tmp/again")
    job.wait_for(r'"steps".*\n', 120)
    mover.swap(guest, inflight=False)
    guest.run("echo > /tmp/again")
    job.wait_for(r'(?s)("steps".*\n.*){2}', 120)
    before, after = json_lines(job.output(), "steps")
    guest.run("kill -9 $(pidof steps)")
    job.wait(check=False)
    return plain["steps"], before["steps"], after["steps"]


def record_all(record, what, plain, before, after, aimed):
    for name, text, each, most in WAYS:
        aim = most if aimed else None
        for when, ours in (("", before), (" after a move", after)):
            record(f"{text}{when}: {what} added to the provider's own",
                   (ours[name] - plain[name]) / each, plain[name] / each,
                   aim and f"below {100 * aim:g} %", aim, with_shim=ours[name] / each)


def bench(record):
    for options, what, icount in (("", "instructions in user space", False),
                                  ("-t", "instructions of the whole call", True)):
        with beds.Bed() as bed:
            bed.icount = icount
            a = bed.guest("a")
            a.load_repath()
            record_all(record, what, *counts(a, options), aimed=not icount)
