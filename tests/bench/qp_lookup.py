# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Look for the 1, 10 and 100 queue pairs of one DLID among 1024 and 65536, in the kernel, on a device
that is only a struct (kmod/tests/lookup_bench.c); beside a walk of all of them."""

import os
import re
import sys

import image

sys.path.append(os.path.join(image.TOP, "tests", "kunit"))

import build    # noqa: E402  after the path is set

FEW, MANY = 1024, 65536


def bench(bed, record):
    suite = build.Suite(os.path.join(image.TOP, "kmod", "tests", "lookup_bench.c"))
    modules = build.build(bed.kernel, [suite])
    modules["kunit"] = os.path.join(build.core(bed.kernel), "kunit.ko")
    bed.files = {f"usr/lib/repath/{name}.ko": path for name, path in modules.items()}
    guest = bed.guest("kunit", rdma=False)
    guest.run("insmod /lib/repath/kunit.ko")
    guest.run(f"insmod /lib/repath/{suite.name}.ko", timeout=300)
    took = {(int(count), int(total)): int(ns) for count, total, ns in
            re.findall(r"lookup: (\d+) of (\d+): (\d+) ns", guest.dmesg())}
    for count in (1, 10, 100):
        record(f"look-up of {count} among {MANY} beside among {FEW}, ns",
               took[count, MANY], took[count, FEW], "flat", 1.5)
        record(f"look-up of {count} beside a walk of all {MANY}, ns",
               took[count, MANY], took[MANY, MANY])
