# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""RC over wires that lose, double, delay and disorder packets: every opcode, nothing wrong.

LOSS_SECONDS=n runs so long, with messages up to LOSS_SIZE=n bytes, and LOSS_SEED=n is vfabric's: for a
count of messages that is worth a table.
"""

import json
import os

from fabric import LANE_DEPTH

# The fabric is as busy as a guest: alone.
GUESTS = 2

SECONDS = int(os.environ.get("LOSS_SECONDS") or 10)
SIZE = int(os.environ.get("LOSS_SIZE") or 16384)
SEED = int(os.environ.get("LOSS_SEED") or 1)
TIMEOUT = 290 + SECONDS

# In ns. Eight packets of the largest size take 8250: so far may one that is late fall behind, and of small ones
# behind more.
FAULT = "loss=0.01 duplicate=0.01 reorder=0.01 window=8250 delay=20000 jitter=1000"
COUNTERS = ("rc_resends rc_timeouts rc_sequence_naks rc_duplicates rc_gaps rc_read_replays rc_atomic_replays "
            "rc_ack_requests rc_acks").split()
PORTS = ('"S1"[2]', '"S2"[1]')


def counters(guest):
    """{name: of both HCAs}"""
    ports = "/sys/class/infiniband/vhca*/ports/1/vhca"
    return {name: sum(int(n) for n in guest.run(f"cat {ports}/{name}").split()) for name in COUNTERS}


def play(a, seconds):
    """Every opcode for so long, between the two HCAs: what the one that began says of it."""
    server = a.start(f"rcheck -d vhca1 -T {seconds + 50}")
    said = a.run(f"sleep 0.5; rcheck -d vhca2 -m all -q 8 -n 16 --vary -s {SIZE} -b -T {seconds} "
                 "--timeout 13 127.0.0.1", timeout=seconds + 80)
    assert '"ok":true' in said, said
    assert '"ok":true' in server.wait(60)
    return said


# One at a time: what vfabric says that it did, and which counters of the HCAs must rise by it.
# In ns; a packet that is late for longer than a queue pair waits is sent again, and comes twice.
KINDS = {
    "duplicate=0.05": ("doubled", ["rc_duplicates"]),
    "reorder=0.05 window=8250": ("overtook", ["rc_gaps", "rc_sequence_naks", "rc_resends"]),
    "delay=5e7": ("delayed", ["rc_timeouts", "rc_duplicates"]),
}
CALM = "loss=0 duplicate=0 reorder=0 delay=0 jitter=0"


def one_kind(fabric, fault):
    """With that fault only."""
    done, rises = KINDS[fault]
    a = fabric.guest
    for name in PORTS:
        fabric.command(f"Fault {name} {CALM} {fault}")
    faults = {name: fabric.faults(name.replace('"', "")) for name in PORTS}
    before = counters(a)
    play(a, 3)
    for name in PORTS:
        after = fabric.faults(name.replace('"', ""))
        done_now = {what: after[what] - n for what, n in faults[name].items() if after[what] > n}
        assert done in done_now, f"{fault} at {name}: {done_now}"
        others = set(done_now) - {done, "late", "most", "not_doubled"}
        assert not others, f"{fault} at {name}: {done_now}"
    counted = {name: count - before[name] for name, count in counters(a).items()}
    print(f"  {fault}: {done_now}, {counted}", flush=True)
    for name in rises:
        assert counted[name], f"{fault}: no {name}: {counted}"


def test(bed):
    fabric = bed.fabric("mesh:2", options=f"-s {SEED}")
    a = fabric.guest
    for name in PORTS:
        fabric.command(f"Fault {name} {FAULT}")
    before = counters(a)
    said = play(a, SECONDS)
    counted = {name: count - before[name] for name, count in counters(a).items()}
    for name in PORTS:
        did = fabric.faults(name.replace('"', ""))
        assert all(did[what] for what in ("lost", "doubled", "delayed", "late", "overtook")), did
        print(f"  {name}: {did}", flush=True)
        assert did["most"] > 1, f"no packet was overtaken by more than one: {did}"
    print(f"  {json.loads(said.splitlines()[-1])['msgs']} messages, {counted}", flush=True)
    for name, count in counted.items():
        assert count, f"{name}: it did not happen, so it proves nothing"
    assert counted["rc_acks"] < counted["rc_ack_requests"] + counted["rc_duplicates"], counted
    most = a.run("cat /sys/class/infiniband/vhca*/ports/1/vhca/lane_most").split()
    assert max(int(n) for n in most) <= LANE_DEPTH, f"packets in a lane: {most}"
    for fault in KINDS:
        one_kind(fabric, fault)
