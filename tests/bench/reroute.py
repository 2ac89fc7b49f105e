# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Move 200 queue pairs to a new path beside the bare verbs that it takes, in the same kernel, on a device
that is only a struct and whose verbs take so long (kmod/tests/reroute_bench.c): until the last one
sends by the new path, and with what comes after it, the reading back. And beside ten times as many that go
elsewhere, by what it takes beside as many. Then what it costs to be told of paths, with 16384 queue pairs of
which none has to be moved; what a host with one takes (paper I, figure 7); and hosts of subnets of up to 400 with a
queue pair to every other one, half of whose paths change and are told one by one (paper II, figure 11)."""

import os
import re
import sys

import image

sys.path.append(os.path.join(image.TOP, "tests", "kunit"))

import build    # noqa: E402  after the path is set


def bench(bed, record):
    suite = build.Suite(os.path.join(image.TOP, "kmod", "tests", "reroute_bench.c"))
    modules = build.build(bed.kernel, [suite])
    modules["kunit"] = os.path.join(build.core(bed.kernel), "kunit.ko")
    bed.files = {f"usr/lib/repath/{name}.ko": path for name, path in modules.items()}
    guest = bed.guest("kunit", rdma=False)
    guest.run("insmod /lib/repath/kunit.ko")
    guest.run(f"insmod /lib/repath/{suite.name}.ko", timeout=300)
    found = re.findall(r"reroute: (\w+) verbs (\d+) us: bare (\d+) ns, moved (\d+) ns, "
                       r"read back (\d+) ns", guest.dmesg())
    beside = re.findall(r"reroute: beside \d+ others: moved (\d+) ns, read back (\d+) ns", guest.dmesg())
    same = re.search(r"no change: (\d+) queue pairs, on another path: (\d+) ns with 16, (\d+) ns with all; "
                     r"on this one: 16 (\d+) ns, (\d+) (\d+) ns", guest.dmesg())
    one = re.search(r"one: on another path (\d+) ns, there already (\d+) ns, moved (\d+) ns, read back (\d+) ns, bare (\d+) ns",
                    guest.dmesg())
    hosts = re.findall(r"host of (\d+): (\d+) paths: bare (\d+) ns, moved (\d+) ns", guest.dmesg())
    assert len(found) == 5 and len(beside) == 2 and len(hosts) == 5 and same and one, guest.dmesg()[-3000:]
    for way, verb, *times in found:
        bare, moved, all_of_it = map(int, times)
        what = f"a queue pair by {way}, verbs of {verb} us, ns"
        aim = ("at most 10 % more", 1.1) if int(verb) else ()
        record(f"moved: {what}", moved, bare, *aim)
        record(f"and read back: {what}", all_of_it, bare)
    few, many = beside
    for what, a, b in zip(("moved", "and read back"), many, few):
        record(f"{what}: a queue pair by sqd, beside ten times as many others, ns", int(a), int(b),
               "within 10 %", 1.1)
    most, none, none_of_all, few, n, all_on_it = map(int, same.groups())
    record(f"a path is told that none of {most} queue pairs is on, beside none of 16, ns", none_of_all, none)
    record("a path is told that 16 of them are on already, ns", few)
    record(f"a path is told that {n} are on already, ns a queue pair", all_on_it // n, few // 16)
    none, there, moved, read_back, bare = map(int, one.groups())
    for what, ns in (("is on another path", none), ("is there already", there), ("is moved", moved),
                     ("is moved and read back", read_back)):
        record(f"a host with one queue pair, which {what}, verbs of 10 us, ns", ns, bare)
    for count, paths, bare, moved in hosts:
        record(f"a host of {count}: {paths} paths are told and their queue pairs moved, verbs of 10 us, ns", int(moved), int(bare),
               hosts=int(count))
