# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The papers' deadlock with real queue pairs, in real time, out of credits alone: RC traffic
1-3 2-4 3-5 4-6 5-1 6-2 on a 3x2 mesh, on the service levels that OpenSM's SA names. The link S2-S5 goes
down and LASH reroutes with two lanes: who keeps the old service level stops, and the ring is named;
a packet taken out by hand lets it move for a moment; who starts with what the SA says then, runs.
What they get together, before and then, is within 10 % of what tests/vfabric/test_deadlock.py has found
in virtual time.

What they get is counted over STEADY seconds in which each of them sends. Where the machine stands still for a
moment a packet may be lost, and a queue pair whose time-out is 17 s (it has to be: who hangs shall not send
anew) gets nothing as long, and the others more than their share. Such seconds, and those beside them, do not count,
and others are waited for; they are known by what the sender sends, not by what is judged. (A time-out of a second for
the new queue pairs is none: no flow was under way for a minute.)

They are watched for STILL seconds. Lifetimes are infinite here: on links that are ten thousand times slower than
real ones the standard's longest, 2 s, is that of a few packets. What the default ones let move is in
tests/vfabric/test_deadlock.py.

Nothing here or in vfabric knows of this case. (Messages are no multiple of the MTU: with packets of one
size the six symmetric flows fall into lock-step and no buffer ever fills.)
"""

import os
import re
import time

import image
from move import LONG
from rc_flows import Flows, LINK, service_level, slow_links

TIMEOUT = 600
# Guests and fabric mostly wait.
PROCESSORS = 1

PAIRS = [(f"H{a}", f"H{b}") for a, b in ((1, 3), (2, 4), (3, 5), (4, 6), (5, 1), (6, 2))]
STEADY = 15
STILL = 60 if LONG else 20
RING = [f"S{n}" for n in range(1, 7)]
NET = os.path.join(image.TOP, "tests/vfabric/nets/mesh3x2.net")
VIRTUAL = os.path.join(image.TOP, "tests/vfabric/test_deadlock.py")


def flows_of(fabric):
    return [(a, b, service_level(fabric, a, b)) for a, b in PAIRS]


def reroute(fabric):
    fabric.command('Unlink "S2"[3]')
    fabric.guest.wait_until("grep -q 'Lanes needed: 2' /run/opensm-H1/log", timeout=60)


def wait_deadlock(fabric, patience=90):
    """The input queues of the ring as [(switch, port)]."""
    end = time.monotonic() + patience
    while True:
        said = fabric.command("Deadlock")
        ring = re.findall(r'^ *"(\w+)"\[(\d+)\] VL\d', said, re.M)
        if ring:
            return ring
        if time.monotonic() > end:
            raise TimeoutError(f"no deadlock: {said}")
        time.sleep(0.5)


def virtual():
    """What all six flows get in virtual time with sources like these, in parts of a link: mesh, new lanes."""
    with open(VIRTUAL) as f:
        mesh, new = re.search(r"^MESH, NEW_LANES = ([\d.]+), ([\d.]+)$", f.read(), re.M).groups()
    return float(mesh), float(new)


def deadlock(bed):
    """({phase: [part of a link that each flow has]}, [(seconds, bytes)], {event: seconds})"""
    with open(NET) as f:
        fabric = bed.fabric(f.read(), opensm="-R lash -Q", options="-i")
    slow_links(fabric)
    old = flows_of(fabric)
    assert len({sl for _, _, sl in old}) == 1, old
    samples = []
    flows = Flows(fabric, old, samples=samples)
    flows.rates(5)
    mesh = flows.steady_rates(STEADY)
    assert not re.search("VL", fabric.command("Deadlock")), "a deadlock in the mesh"
    assert sum(mesh) > 2 * LINK, f"the links were not the limit: {mesh}"

    cut, _ = flows.received()
    reroute(fabric)
    ring = wait_deadlock(fabric)
    assert sorted(switch for switch, _ in ring) == RING, ring
    flows.rates(2)              # what is beyond the ring still arrives
    still = flows.rates(STILL)
    # The SM's own packets are counted, too.
    assert sum(still) < 0.001 * sum(mesh), f"it moves: {still}"
    removed, before = flows.received()
    fabric.command(f'Remove "{ring[0][0]}"[{ring[0][1]}] 0')
    flows.rates(2)
    _, after = flows.received()
    freed = sum(after) - sum(before)
    assert freed > 2048 + 4 * sum(still), f"a packet less has freed {freed} bytes"

    # Nobody sends any more; what hangs in the ring is taken out.
    flows.stop()
    while (said := fabric.command("Deadlock")) and "VL" in said:
        switch, port = re.search(r'"(\w+)"\[(\d+)\]', said).groups()
        fabric.command(f'Remove "{switch}"[{port}] 0')
        time.sleep(0.2)
    new = flows_of(fabric)
    assert len({sl for _, _, sl in new}) == 2, new
    flows = Flows(fabric, new, samples=samples)
    begun, _ = flows.received()
    flows.rates(5)
    fresh = flows.steady_rates(STEADY)
    assert sum(fresh) > 0.4 * sum(mesh), fresh
    assert "VL" not in fabric.command("Deadlock")
    flows.stop()
    rates = {"mesh": mesh, "old lanes": still, "new lanes": fresh}
    for name, values in rates.items():
        print(f"  {name}: " + " ".join(f"{value / LINK:.3f}" for value in values), flush=True)
    return {name: [value / LINK for value in values] for name, values in rates.items()}, samples, \
        {"S2-S5 down": cut, "a packet taken out": removed, "new queue pairs": begun}


def test(bed):
    mesh, new = virtual()
    found, _, _ = deadlock(bed)
    for phase, wanted in (("mesh", mesh), ("new lanes", new)):
        share = sum(found[phase])
        assert 0.9 < share / wanted < 1.1, f"{phase}: {share} of a link, in virtual time {wanted}"
