#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Paths from and to the subnet manager's port have a service level of their own (sm_sl), before and after LASH has
taken another lane; hosts are told of no such path; that others have it, too, is said. tests/vm/test_sm_blocked.py
shows what it is good for: here what is said goes beside the data.
"""

import sys

from hosts import Hosts
from managed import NETS, Managed, expect

MESH = f"{NETS}/mesh3x2.net"
APART = "lash_start_vl 1\nsm_sl 0\n"
SHARED = "sm_sl 0\n"


def levels(hosts):
    """Service levels of the paths that end or begin at the SM's port, and of the others."""
    sm, found = hosts.lid["H1"], (set(), set())
    for (slid, dlid), (sl, *_) in hosts.records().items():
        found[sm not in (slid, dlid)].add(sl)
    return found


def apart():
    with Managed(MESH, "-R lash", conf=APART, method="repath-only", sm_sl="on") as fabric:
        with Hosts(fabric) as hosts:
            expect(levels(hosts) == ({0}, {1}), levels(hosts))
            hosts.fault('Unlink "S2"[3]')
            expect(levels(hosts) == ({0}, {1, 2}), levels(hosts))
            sm = hosts.lid["H1"]
            told = [notice for name in hosts.listeners for notice in hosts.heard(name)]
            expect(told and all(sm not in (n.slid, n.dlid) for n in told), "nothing of its paths:", told)
            # What a host was told is what the SA says.
            records = hosts.records()
            expect(all(records[n.slid, n.dlid][0] == n.sl for n in told), told)
            expect(not shares(fabric), fabric.plugin_log())


def shares(fabric):
    return any("other paths have service level 0" in line for line in fabric.plugin_log())


def main():
    apart()
    for sm_sl in "on", "off":
        with Managed(MESH, "-R lash", conf=SHARED, sm_sl=sm_sl) as fabric:
            expect(shares(fabric) == (sm_sl == "on"), sm_sl, fabric.plugin_log())
    return 0


if __name__ == "__main__":
    sys.exit(main())
