# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that are not linked to libibverbs, but load it and ask for its functions by version, are moved,
one with a live migration: what they were given are the shim's functions."""

import os
import subprocess

import image
from move import SHIM, moving
from traffic import Pair


def test(bed):
    program = os.path.join(image.TOP, "build/apps/rcheck-dlopen")
    needed = subprocess.run(["readelf", "-d", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "NEEDED" in needed and "libibverbs" not in needed, needed
    a, b = bed.guests("a", "b")
    with moving(a, b, comm="rcheck-dlopen") as mover:
        pair = Pair(a, b, "-q 4 -n 8 -b -k 4", env=SHIM, program="rcheck-dlopen")
        pair.wait_running()
        mover.swap(b)
        pair.wait_progress()
        mover.migrate(a)
        pair.wait_progress()
        pair.finish()
