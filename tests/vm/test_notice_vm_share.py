# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Paper VI's experiment II (figures 6 and 7) on links that are slow enough to be filled: three flows from server 1 to server 2,
and one from a VM on server 1 to a VM on server 3, share the link of server 1. The VM moves to server 3 with its vGUID, and all
servers and VMs are told of that: the three have the link for themselves then, none of them stops, and the fourth goes on inside
of server 3. The shares are printed."""

import statistics
import time

from move import SHIM, moving
from rc_flows import LINK, slow_links
from test_notice_heard import count, wait_count
from traffic import Pair, json_lines
from tracking import user_qps
from vm_moves import PFS, VfMover, servers, start_relays

PENDING = "it belongs to a table of measurements; notice_vm_moved has the same move"

TIMEOUT = 600
GUESTS = 3

SIZE = 4096
SECONDS = 15
TRAFFIC = f"-q 1 -n 4 -m write -s {SIZE} --timeout 19"


def shares(pairs, seconds):
    """Of a link, by what each flow has sent from now on."""
    marks = [len(json_lines(pair.client.output(), "rate")) for pair in pairs]
    time.sleep(seconds)
    found = []
    for pair, mark in zip(pairs, marks):
        rates = [line["rate"] for line in json_lines(pair.client.output(), "rate")[mark:]]
        found.append(statistics.mean(rates) * SIZE / LINK)
    return found


def told(name, found):
    print(f"  {name}: 1 to 2: {', '.join(f'{share:.2f}' for share in found[:3])}; the VM: {found[3]:.2f}", flush=True)
    return found


def test(bed):
    fabric = servers(bed)
    slow_links(fabric)
    pf, vm1, vm2 = fabric.guests
    with moving(*fabric.guests, mover=VfMover(fabric, spare=["H3v2"])) as mover:
        relays = start_relays(fabric)
        heard = [count(pf, dev, "notice-repath") for dev in PFS]
        pairs = [Pair(pf, pf, f"{TRAFFIC} -d vhca1", port=18700 + n, server_options="-d vhca2") for n in range(3)]
        pairs.append(Pair(vm2, vm1, TRAFFIC, env=SHIM))
        for pair in pairs:
            pair.wait_running()
        before = told("before", shares(pairs, SECONDS))
        relays.stop(vm1)
        mover.swap(vm1, inflight=False)
        relays.start(vm1, "vhca3", "vhca1v1")
        for dev, had in zip(PFS, heard):
            wait_count(pf, dev, "notice-repath", had + 1)
        pairs[3].wait_progress(20)
        after = told("after", shares(pairs, SECONDS))
        qps = user_qps(vm1, "state RTS").values()
        assert {qp["dlid"] for qp in qps} == {fabric.lid("H3")}, qps
        # The link is full before and then, and those that stay have of it what the VM has left.
        assert sum(after[:3]) > sum(before[:3]) * 1.1, (before, after)
        assert min(after[:3]) > 0.15 and after[3] > 0, (before, after)
        for pair in pairs:
            pair.finish()
