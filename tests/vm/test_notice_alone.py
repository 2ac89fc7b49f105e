# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Peers follow by what the subnet manager says, and by nothing else: the address of a VF goes to another
server and comes back (paper VI). Whoever has it knows nothing of repath, nor does its peers' program. The
queue pairs of the host that listens are moved there and back; of one that does not they stay, as do those
to the server itself, whose LID it was. When the address is back all go on, and nothing is lost.

What is moved is idle: the device has its send queue drained first, and nobody is there who would answer."""

import time
from signal import SIGCONT, SIGSTOP

from test_notice_heard import count, wait_subscribed
from tracking import user_qps
from traffic import Pair

# The fabric is as busy as a guest: alone.
GUESTS = 2

VGUID = 0x0002c9ff00000001
LISTENS, DEAF = "vhca3", "vhca4"


def led_to(guest, dev):
    """Where the queue pairs of a device lead, and which of them the module has moved."""
    found = [qp for (name, _), qp in user_qps(guest, "state RTS").items() if name == dev]
    return sorted(qp["dlid"] for qp in found), sum("moved-by" in qp for qp in found)


def wait_led_to(guest, dev, lids, patience=60):
    end = time.monotonic() + patience
    while led_to(guest, dev)[0] != sorted(lids):
        if time.monotonic() > end:
            raise TimeoutError((lids, guest.run("repath qp; repath path; repath stats", check=False)))
        time.sleep(0.2)


def take(fabric, source, to):
    """The VF's address goes from one server's table to another's."""
    fabric.set_vguid(source, "none")
    fabric.set_vguid(to, VGUID)


def test(bed):
    fabric = bed.fabric("mesh:4,shared=1", repath="", vguids={"H1v1": VGUID},
                        guests={"a": ["H1", "H2", "H3", "H4", "H1v1"]})
    a = fabric.guest
    a.load_repath()
    wait_subscribed(a, ("vhca1", "vhca2", LISTENS, DEAF))
    for dev in DEAF, "vhca1v1":
        a.run(f"repath path listen {dev} off")
    here, there = fabric.lid("H1"), fabric.lid("H2")
    assert fabric.lid("H1v1") == here != there
    # Half a minute, with all retries.
    options = "-q 2 -n 4 -b -k 4 -m send,write --vary -s 4000 -r 40"
    pairs = [Pair(a, a, f"{options} -d {vf}", "-i 0.5 --timeout 20", server_options=f"-d {dev}", port=18600 + i)
             for i, (vf, dev) in enumerate((("vhca1v1", LISTENS), ("vhca1v1", DEAF), ("vhca1", LISTENS)))]
    for pair in pairs:
        pair.wait_running()
    assert led_to(a, LISTENS) == ([here] * 4, 0) and led_to(a, DEAF) == ([here] * 2, 0)

    # What is under way ends, and no more is sent.
    stopped = [job for pair in pairs[:2] for job in pair.jobs]
    for job in stopped:
        job.kill(int(SIGSTOP))
    pairs[2].wait_progress(20)
    before = count(a, LISTENS, "notice-repath"), count(a, DEAF, "notice-rx")
    take(fabric, "H1v1", "H2v1")
    wait_led_to(a, LISTENS, [here, here, there, there])
    assert led_to(a, LISTENS)[1] == 2 and led_to(a, DEAF) == ([here] * 2, 0)
    pairs[2].wait_progress(20)
    take(fabric, "H2v1", "H1v1")
    wait_led_to(a, LISTENS, [here] * 4)
    assert led_to(a, LISTENS)[1] == 2 and led_to(a, DEAF) == ([here] * 2, 0)
    for job in stopped:
        job.kill(int(SIGCONT))
    for pair in pairs:
        pair.wait_progress(20)
    for pair in pairs:
        pair.finish()

    assert count(a, LISTENS, "notice-repath") == before[0] + 2
    assert count(a, DEAF, "notice-rx") == before[1]
    # Two queue pairs, there and back; by the module's device, and by no word between modules or programs.
    for dev in fabric.hosts.values():
        assert count(a, dev, "moved-sqd") == (4 if dev == LISTENS else 0), dev
        for name in "moved-apm", "moved-cycle", "move-failed", "tx-msg", "rx-msg", "tx-local", "conn-new":
            assert count(a, dev, name) == 0, (dev, name)
