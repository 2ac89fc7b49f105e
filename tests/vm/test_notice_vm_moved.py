# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A VM's VF goes to the PF of another server with its vGUID, and so to another LID (paper VI). The
process in it is moved by the shim, and its peer in another VM follows. The subnet manager tells each
server once, and these their VMs. The flow of a bystander from that VM to the server that was left, the
same LID until then, is not touched."""

from move import SHIM, moving
from test_notice_heard import count, subscriptions, wait_count
from tracking import user_qps
from traffic import Pair, json_lines
from vm_moves import PFS, VfMover, servers, start_relays

GUESTS = 3


def rates(pair):
    """Messages a second of a pair's server, half a second each."""
    return [line["rate"] for line in json_lines(pair.server.output(), "rate")]


def told(fabric, before):
    """Registrations are two a server, and notices one a server, however many VMs these have."""
    pf = fabric.guest
    status = fabric.repath_status()
    assert status["signal"]["subscribers"] == len(PFS), status
    assert len(subscriptions(pf)) == 2 * len(PFS), subscriptions(pf)
    assert status["moves"]["moves"] == 1 and status["moves"]["notices"] == len(PFS), status
    for pf_dev, old in zip(PFS, before):
        wait_count(pf, pf_dev, "notice-repath", old + 1)
    print(f"  {status['signal']}\n  {status['moves']}", flush=True)


def test(bed):
    fabric = servers(bed)
    pf, vm1, vm2 = fabric.guests
    with moving(*fabric.guests, mover=VfMover(fabric, spare=["H2v1"])) as mover:
        relays = start_relays(fabric)
        before = [count(pf, dev, "notice-repath") for dev in PFS]
        relayed = count(vm2, "vhca3v1", "notice-relayed")
        bystander = Pair(pf, vm2, "-q 2 -n 4 -b -r 60 -m send,write", port=18700,
                         server_options="-d vhca1")
        pair = Pair(vm1, vm2, "-q 2 -n 4 -b -k 4 -r 60 -m all --vary -s 8000", env=SHIM)
        for one in (bystander, pair):
            one.wait_running()
        left = fabric.lid("H1")
        relays.stop(vm1)
        mark = len(rates(bystander))
        mover.swap(vm1, inflight=False)
        lid = fabric.lid("H2v1")
        assert lid == fabric.lid("H2") != left
        relays.start(vm1, "vhca2", "vhca1v1")
        wait_count(vm2, "vhca3v1", "notice-relayed", relayed + 1)
        pair.wait_progress(50)
        bystander.wait_progress(60)
        told(fabric, before)
        found = list(user_qps(vm2, "state RTS").values())
        assert sorted(qp["dlid"] for qp in found) == sorted([left] * 2 + [lid] * 2), found
        assert not any("moved-by" in qp for qp in found if qp["dlid"] == left), found
        print(f"  bystander, messages a second: {rates(bystander)[:mark]}, with the move: "
              f"{rates(bystander)[mark:]}", flush=True)
        for one in (bystander, pair):
            one.finish()
