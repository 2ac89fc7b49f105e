# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The module and libibrepath.so are of different releases, either one the newer: both logs say so, a
suspend is refused by name, and the program goes on, unmoved. One of the module's release moves."""

from move import LOG, SHIM, moving, repath
from traffic import Pair
from trouble import LIBRARIES

GUESTS = 2
ABI = 1


def refused(a, b, abi, port):
    log = f"{LOG}.{abi}"
    pair = Pair(a, b, "-q 2 -n 8 -b -k 4", port=port,
                env=f'STOPPER_ABI={abi} LD_PRELOAD="{LIBRARIES}" REPATH_LOG=info:{log}')
    pair.wait_running()
    for guest in (a, b):
        text = guest.run("dmesg | grep repath:")
        assert f"its libibrepath.so has ABI {abi}, this module {ABI}" in text, text
        text = guest.run(f"cat {log}")
        assert "ib_repath.ko has another ABI than this libibrepath.so" in text, text
        assert "registered with the module" not in text, text
    pid = b.run("pidof rcheck").strip()
    status, _, text = repath(b, "suspend rxe0 timeout 5")
    assert status and f"PID {pid} " in text, text
    pair.wait_progress()
    pair.finish()


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for number, abi in enumerate((ABI + 1, ABI - 1)):
            refused(a, b, abi, 18600 + number)
        pair = Pair(a, b, "-q 2 -n 8 -b -k 4", env=SHIM, port=18610)
        pair.wait_running()
        mover.resume(b, mover.suspend(b))
        pair.wait_progress()
        pair.finish()
