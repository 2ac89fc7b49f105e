# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the subnet manager reports gets through while the lanes of the hosts' flows are blocked for good, where it has a
lane of its own (sm_sl), and where it has none it does not. There hosts ask for their paths as well, and are answered.

The papers' flows on their mesh come to a deadlock when the link S2-S5 goes down and they keep their lane, which they do
as nothing is to be moved here. The subnet manager has a host of its own, at S1. Packets live for ever: nothing but a
lane lets it through.
"""

import re
import time

from rc_flows import Flows, slow_links
from test_notice_heard import count, wait_count, wait_subscribed
from test_vhca_deadlock import NET, flows_of, wait_deadlock
from tracking import repath

PENDING = "it takes minutes: two deadlocks; tests/sm/test_management.py has the service levels"

TIMEOUT = 600
# The fabric is as busy as a guest: alone.
GUESTS = 2
SM = "H7"
PATIENCE = 20       # seconds, in which a report is repeated several times


def net():
    """The mesh, and one more host."""
    with open(NET) as f:
        text = f.read()
    return re.sub(r'(Switch\t4 "S1"\n)', rf'\1[4]\t"{SM}"[1]\n', text) + f'Hca\t1 "{SM}"\n[1]\t"S1"[4]\n'


def answered(fabric):
    return fabric.repath_status(SM)["signal"]["answered"]


def start(fabric, sm_sl):
    """A subnet manager that all hosts listen to. What it says last is in its log at once: nothing may follow."""
    fabric.repath = f"method wildcard\nunpath off\nreport_limit 1000\nsm_sl {sm_sl}"
    job = fabric.start_opensm("-R lash -Q", host=SM, conf="lash_start_vl 1\nsm_sl 0\nforce_log_flush TRUE")
    fabric.guest.wait_until(f"grep -q 'SUBNET UP' /run/opensm-{SM}/log", timeout=60)
    fabric.wait_active()
    return job


def empty(fabric):
    """Nobody sends any more; what hangs in the ring is taken out."""
    while (said := fabric.command("Deadlock")) and "VL" in said:
        switch, port, vl = re.search(r'"(\w+)"\[(\d+)\] VL(\d)', said).groups()
        fabric.command(f'Remove "{switch}"[{port}] {vl}')
        time.sleep(0.2)


def up(guest):
    return float(guest.run("cut -d' ' -f1 /proc/uptime"))


def learnt_since(guest, hca, asked):
    """Does an HCA know all its paths by answers that came after that? An age is in whole seconds."""
    ages = [path["age-s"] for path in repath(guest, f"path dev {hca}") if path["source"] == "query"]
    return ages and max(ages) + 1 < up(guest) - asked


def asks(fabric):
    """Each host asks for all its paths, and has the answer, at the first try."""
    guest, hcas = fabric.guest, fabric.hosts.values()
    before = {hca: [count(guest, hca, name) for name in ("sa-query", "sa-query-failed", "sm-lost")] for hca in hcas}
    asked = up(guest)
    for hca in hcas:
        guest.run(f"repath path ask {hca}")
    end = time.monotonic() + PATIENCE
    for hca, (queries, failed, lost) in before.items():
        wait_count(guest, hca, "sa-query", queries + 1)
        while not learnt_since(guest, hca, asked):
            assert time.monotonic() < end, (hca, repath(guest, f"path dev {hca}"))
            time.sleep(0.5)
        assert count(guest, hca, "sa-query-failed") == failed and count(guest, hca, "sm-lost") == lost, hca
    wait_deadlock(fabric, patience=1)


def reported(fabric, sm_sl):
    """How many of the reports are answered that are sent in the deadlock."""
    flows = Flows(fabric, flows_of(fabric))
    flows.rates(5)
    fabric.command('Unlink "S2"[3]')
    fabric.guest.wait_until(f"grep -q 'Lanes needed: 2' /run/opensm-{SM}/log", timeout=60)
    wait_deadlock(fabric)
    flows.rates(5)      # what is beyond the ring still arrives, and what was said before
    before = answered(fabric)
    fabric.guest.run("kill -HUP $(pidof opensm)")
    end = time.monotonic() + PATIENCE
    while answered(fabric) < before + len(fabric.hosts) and time.monotonic() < end:
        time.sleep(0.5)
    wait_deadlock(fabric, patience=1)
    heard = answered(fabric) - before
    if sm_sl == "on":
        asks(fabric)
    print(f"  sm_sl {sm_sl}: {heard} of {len(fabric.hosts)} reports are answered", flush=True)
    flows.stop()
    empty(fabric)
    fabric.command('ReLink "S2"[3]')
    return heard


def test(bed):
    fabric = bed.fabric(net(), opensm=None, options="-i", repath="")
    guest = fabric.guest
    manager = start(fabric, "off")
    guest.load_repath()
    wait_subscribed(guest, fabric.hosts.values())
    for hca in fabric.hosts.values():
        guest.run(f"repath path reroute {hca} off")
    slow_links(fabric)
    # The subnet manager's own port, and who is asked beside the ring.
    assert reported(fabric, "off") < len(fabric.hosts)

    manager.kill(15)
    manager.wait(30, check=False)
    guest.run(f"rm /run/opensm-{SM}/log")
    start(fabric, "on")
    wait_subscribed(guest, fabric.hosts.values())
    assert reported(fabric, "on") == len(fabric.hosts)
