# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""OpenSM's plugin and the module, over the kernel's own MAD layer: six HCAs in the papers' mesh
subscribe; when S2-S5 is pulled each hears of its changed paths what the SA says of them. The way from the
SM to H5 was by that cable: the kernel repeats an UnPath to it, which comes after the RePath."""

import re
import time

from tracking import repath

PROCESSORS = 1


# The fabric is as busy as a guest: alone.
GUESTS = 2

HCAS = [f"vhca{i}" for i in range(1, 7)]


def told(fabric):
    """What the plugin says when nothing is on its way, and OpenSM has routed."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        status = fabric.repath_status()
        signal, paths = status["signal"], status["paths"]
        if paths["changed"] and paths["routings"] == paths["told"] and \
                not signal["queued"] and not signal["on_the_way"]:
            return status
        time.sleep(0.5)
    raise TimeoutError(str(status))


def sl_of(guest, slid, dlid):
    text = guest.run(f"saquery -C vhca1 --src-to-dst {slid}:{dlid}")
    return int(re.search(r"sl\.+0x(\w+)", text)[1], 16)


def heard(guest):
    """How many paths hosts know by a report; all of them are as the SA has them."""
    n = 0
    for hca in HCAS:
        for path in repath(guest, f"path dev {hca}"):
            if path["source"] == "report" and not path["unpath"]:
                sl = sl_of(guest, path["slid"], path["dlid"])
                assert path["sl"] == sl, (hca, path, sl)
                n += 1
    return n


def test(bed):
    fabric = bed.fabric("mesh:3x2", opensm="-R lash -Q", repath="method auto")
    fabric.judged = True
    guest = fabric.guest
    guest.load_repath()
    for hca in HCAS:
        guest.wait_until(f'repath path sm dev {hca} | grep -q "state subscribed"', timeout=60)
    fabric.command('Unlink "S2"[4]')
    status = told(fabric)
    signal, paths = status["signal"], status["paths"]
    assert signal["subscribers"] == len(HCAS), signal
    assert signal["given_up"] == 0, signal
    assert signal["repath"] == paths["paths"] > 0, (signal, paths)
    until = time.monotonic() + 20
    while heard(guest) != signal["repath"]:
        if time.monotonic() > until:
            raise TimeoutError([repath(guest, f"path dev {hca}") for hca in HCAS])
        time.sleep(0.5)
