# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Head-of-line blocking with real queue pairs in a fat tree, on the tables of OpenSM's ftree.

	       R1      R2
	      / | \\   / | \\		all leaves to both roots
	     A     B     C
	    1 2   3 4   5 6

1, 3 and 6 send to 5: the hot spot. 2-3 leaves by the uplink of 1-5, 4-1 by that of 3-5. On one VL
the victims get what the congested flow beside them gets; on a VL of their own they get
the rest of the link.
"""

from rc_flows import Flows, LINK, slow_links

TIMEOUT = 600
# The fabric is as busy as a guest: alone.
GUESTS = 2

CONGESTED = (("H1", "H5"), ("H3", "H5"), ("H6", "H5"))
VICTIMS = {("H2", "H3"): ("H1", "H5"), ("H4", "H1"): ("H3", "H5")}


def throughput(fabric, victim_sl):
    """{(from, to): part of a link}; what comes to H5 is one sum."""
    flows = Flows(fabric, [(a, b, 0) for a, b in CONGESTED] +
                  [(a, b, victim_sl) for a, b in VICTIMS])
    flows.rates(8)
    *hot, first, second = (rate / LINK for rate in flows.rates(15))
    flows.stop()
    print(f"  victims on SL {victim_sl}: hot spot {hot[0]:.3f}, victims {first:.3f} {second:.3f}",
          flush=True)
    return hot[0], first, second


def hot_spot(bed):
    """{service level of the victims: (hot spot, victim 2-3, victim 4-1), as parts of a link}"""
    fabric = bed.fabric("xgft:2,3/1,2", opensm="-R ftree -Q")
    slow_links(fabric)
    return {sl: throughput(fabric, sl) for sl in (0, 1)}


def test(bed):
    found = hot_spot(bed)
    for hot, *victims in found.values():
        assert 0.85 < hot < 1.05, f"the hot spot's link is not full: {hot}"
    for before, after in zip(found[0][1:], found[1][1:]):
        assert before < 0.35, f"a victim is not held up: {found}"
        assert after > 1.5 * before, f"a victim is not freed by its own VL: {found}"
