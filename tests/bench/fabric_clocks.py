# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Real time against virtual time: what part of a link each flow gets, with real queue pairs on software
HCAs while the clock of the wall runs, and with vfabric's closed-loop sources in virtual time. On the 3x2
mesh before its link is cut (the papers' deadlock), and at a hot spot in a fat tree."""

import importlib.util
import json
import os
import sys

import bed as beds
import image
import test_vhca_deadlock
import test_vhca_hol

BED = False
LINK = 32.0         # Gbit/s of data on 4x QDR
TOP = image.TOP
# ACKs as a queue pair of vhca asks for them. Its window is 64 packets, but some of them, and ACKs, wait
# in a lane of the HCA, which hosts of the model do not have: 32 is what fits.
SOURCE = "message=20000 window=32 ack=16"


def vfabric():
    """tests/vfabric/bed.py, whose name this process has given to another file."""
    spec = importlib.util.spec_from_file_location(
        "vfabric_bed", os.path.join(TOP, "tests", "vfabric", "bed.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def received(fabric, hosts, windows):
    """What each of @hosts receives on the average, Gbit/s, in each of @windows, one behind the other: (microseconds
    to wait before it, its own)."""
    found = []
    for wait, time in windows:
        if wait:
            fabric.command(f"Advance {wait}")
        fabric.command("Measure")
        fabric.command(f"Advance {time}")
        found.append(json.loads(fabric.command("Results json"))["gbps"] / hosts)
    return found


def of_sm(name):
    """A module of tests/sm, which imports that bed."""
    other = sys.modules["bed"]
    sys.modules["bed"] = vfabric()
    sys.path.insert(0, os.path.join(TOP, "tests", "sm"))
    try:
        return importlib.import_module(name)
    finally:
        sys.modules["bed"] = other


def managed():
    """tests/sm/managed.py"""
    found = of_sm("managed")
    found.Managed.judged = False
    return found


def virtual(topology, opensm, flows):
    """The part of a link that each (from, to, service level) gets."""
    with vfabric().Fabric(topology, opensm=opensm) as fabric:
        for a, b, sl in flows:
            fabric.command(f'Flow "{a}" "{b}" {SOURCE} sl={sl}')
        fabric.command("Advance 3000")
        fabric.command("Measure 1000")
        fabric.command("Advance 20000")
        found = json.loads(fabric.command("Results json"))["flows"]
    gbps = {(flow["from"], flow["to"]): flow["gbps"] for flow in found}
    return [gbps[a, b] / LINK for a, b, _ in flows]


def compare(record, name, real, model):
    record(f"{name}: part of a link", real, model, "within 10 %", most=1.1, least=0.9)


def bench(record):
    os.environ["VFABRIC_TOP"] = TOP
    with beds.Bed() as bed:
        parts, samples, events = test_vhca_deadlock.deadlock(bed)
    model = virtual(test_vhca_deadlock.NET, "-R lash -Q",
                    [(a, b, 0) for a, b in test_vhca_deadlock.PAIRS])
    for (a, b), real, wanted in zip(test_vhca_deadlock.PAIRS, parts["mesh"], model):
        compare(record, f"mesh {a}-{b}", real, wanted)
    record("mesh with its link cut, old lanes beside the mesh", sum(parts["old lanes"]),
           sum(parts["mesh"]), "below 1 %", 0.01, samples=samples, events=events)
    record("mesh with its link cut, new lanes beside the mesh", sum(parts["new lanes"]),
           sum(parts["mesh"]))

    with beds.Bed() as bed:
        found = test_vhca_hol.hot_spot(bed)
    for sl, real in found.items():
        flows = [(a, b, 0) for a, b in test_vhca_hol.CONGESTED] + \
                [(a, b, sl) for a, b in test_vhca_hol.VICTIMS]
        *hot, first, second = virtual("xgft:2,3/1,2", "-R ftree -Q", flows)
        for name, part, wanted in zip(("hot spot", "2-3", "4-1"), real, (sum(hot), first, second)):
            compare(record, f"fat tree, victims on SL {sl}, {name}", part, wanted)
