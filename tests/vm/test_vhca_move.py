# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A process is moved to another InfiniBand HCA at another place of the fabric, with a live migration
and without: LID, GID, queue pair numbers and keys change. Nothing is lost, and unmodified perftest
goes on, whose connections have no GRH. A soft RoCE device is refused, as no peer could be reached by it."""

from move import SHIM, moving, repath
from move_fabric import FabricMover
from traffic import Pair
from trouble import rxe_elsewhere
from unmodified import bandwidth_report, move_in_full_run, start

# What is moved is the client, and then the server.
RUNS = ("ib_write_bw -s 4096 -t 16 -D 20", "ib_send_bw -s 1024 -q 4 -t 4 -r 32 -D 20")


def perftest(mover, a, b, command):
    mover.comm = command.split()[0]
    for server, client in ((a, b), (b, a)):
        jobs = start(server, client, f"{command} -F -b")
        move_in_full_run(mover, jobs, b, a)
        print(f"  {command}: {bandwidth_report(jobs[1])}", flush=True)


def wrong_link_layer(mover, b):
    """It is refused at once, and resumed on the right one."""
    op = mover.suspend(b)
    rxe_elsewhere(b)
    status, _, text = repath(b, f"resume {op['op']} on rxe5 timeout 5")
    assert status == 1 and "of InfiniBand and Ethernet, this device is the other one" in text, (status, text)
    assert " state suspended " in b.run(f"repath status {op['op']}")
    mover.release(b)
    mover.new_device(b)
    mover.resume(b, op)
    b.rxe_del("rxe5")


def test(bed):
    fabric = bed.fabric("mesh:3", guests={"a": ["H1"], "b": ["H2"]})
    a, b = fabric.guests
    with moving(a, b, mover=FabricMover(fabric, spare=["H3"])) as mover:
        pair = Pair(a, b, "-q 4 -n 8 -b -k 4 -m all --vary -s 20000", env=SHIM)
        pair.wait_running()
        mover.migrate(b)
        pair.wait_progress(50)
        wrong_link_layer(mover, b)
        pair.wait_progress(50)
        client, _ = pair.finish()
        print(f"  rcheck: gap {client['max_gap_ms']} ms, {client['msgs']} messages", flush=True)
        for command in RUNS:
            perftest(mover, a, b, command)
