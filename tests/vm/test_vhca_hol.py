# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Head-of-line blocking with real queue pairs in a fat tree, on the tables of OpenSM's ftree.

	       R1      R2
	      / | \\   / | \\		all leaves to both roots
	     A     B     C
	    1 2   3 4   5 6

1, 3 and 6 send to 5: the hot spot. 2-3 leaves by the uplink of 1-5, 4-1 by that of 3-5. On one VL
the victims get what the congested flow beside them gets; on a VL of their own they get
the rest of the link. Each gets what tests/vfabric/test_hol.py has found in virtual time for sources like
these, within 10 %.

That is over STEADY seconds in which each of the five flows sends. What is lost while the machine stands still for a
moment costs a flow its time-out of 17 s, in which it gets nothing, and who shares a link with it gets
more. Such seconds are not counted, and the measurement is longer by them. They are known by what each host sends,
not by the shares that are judged: shares that are wrong stay wrong however long one waits, and flows that
hardly do anything but wait fail the test for themselves.
"""

from rc_flows import Flows, LINK, slow_links

TIMEOUT = 600
# Guests and fabric mostly wait.
PROCESSORS = 1

CONGESTED = (("H1", "H5"), ("H3", "H5"), ("H6", "H5"))
VICTIMS = {("H2", "H3"): ("H1", "H5"), ("H4", "H1"): ("H3", "H5")}
# In virtual time, by the victims' service level.
VIRTUAL = {0: (1.0, 0.25, 0.25), 1: (1.0, 0.75, 0.75)}
STEADY = 15


def agrees(found, wanted):
    return all(0.9 * part < real < 1.1 * part for real, part in zip(found, wanted))


def throughput(fabric, victim_sl):
    """(hot spot, victim 2-3, victim 4-1), as parts of a link; what comes to H5 is one sum."""
    flows = Flows(fabric, [(a, b, 0) for a, b in CONGESTED] +
                  [(a, b, victim_sl) for a, b in VICTIMS])
    flows.rates(8)
    *hot, first, second = (rate / LINK for rate in flows.steady_rates(STEADY))
    print(f"  victims on SL {victim_sl}: hot spot {hot[0]:.3f}, victims {first:.3f} {second:.3f}", flush=True)
    flows.stop()
    return hot[0], first, second


def hot_spot(bed):
    """{service level of the victims: what throughput() says}"""
    fabric = bed.fabric("xgft:2,3/1,2", opensm="-R ftree -Q")
    slow_links(fabric)
    return {sl: throughput(fabric, sl) for sl in (0, 1)}


def test(bed):
    found = hot_spot(bed)
    for sl, wanted in VIRTUAL.items():
        assert agrees(found[sl], wanted), f"victims on SL {sl}: {found[sl]}, in virtual time {wanted}"
