# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Subnet managers come, go, stop and say half of what they were to say, while queue pairs that carry checked
traffic follow their reroutes: two OpenSMs, both with the plugin. Failover to a standby, handover to the one that has come
back, its death when a real reroute is announced (UnPath) and no table is set, handover again, a RePath that
never comes, a question that is not answered. Each queue pair is on the lane that the SA says after each of them, and
nothing is lost.

When S2-S5 goes down the way from H1 to H5 goes with it: UnPath to H5 is not answered, and the OpenSM at H1 waits for
that as long as it is told (unpath_wait). It is killed meanwhile."""

import time

from test_notice_heard import count, wait_count, wait_subscribed
from test_repath_mesh import both_ways, wait_lanes, wait_moved
from test_vhca_deadlock import NET, PAIRS
from tracking import repath
from traffic import Pair

PENDING = "it has passed, in 216 s on a busy machine, 104 s of processors: longer than a test may take"

TIMEOUT = 600
# The fabric is as busy as a guest: alone.
GUESTS = 2

# A standby that notices within seconds.
STANDBY = "sminfo_polling_timeout 1000\npolling_retry_number 2"
UNPATH, WAIT = 68, 0x80
# Of the plugin, for who is to die while it waits: the report that is not answered is lost after twice that time.
WAITS = "unpath_wait 10000\nreport_timeout 5000"
ROOM = 100000


def start_manager(fabric, host, priority, options=""):
    fabric.repath = f"method auto\n{options}"
    return fabric.start_opensm(f"-R lash -Q -p {priority}", host=host, conf=STANDBY)


def wait_manager(fabric, host):
    """All HCAs are subscribed with the one at this host."""
    lid = fabric.lid(host)
    for hca in fabric.hosts.values():
        fabric.guest.wait_until(
            f"repath path sm dev {hca} | grep -q 'state subscribed .* sm-lid {lid} '", timeout=60)


def reroute(fabric, what, lanes):
    """A link goes, or comes, and all queue pairs are where the SA says."""
    fabric.command(f'{what} "S2"[3]')
    wait_moved(fabric, both_ways(wait_lanes(fabric, lanes)))


def announced(fabric):
    """{HCA: paths of it that are about to break}"""
    return {hca: paths for hca in fabric.hosts.values()
            if (paths := [path["dlid"] for path in repath(fabric.guest, f"path dev {hca}") if path["unpath"]])}


def killed_between(fabric, job):
    """S2-S5 goes down, hosts are told that paths will be others, and the subnet manager is killed before it sets a
    table, or says more."""
    guest = fabric.guest
    repaths = {hca: count(guest, hca, "notice-repath") for hca in fabric.hosts.values()}
    fabric.command(f"Journal {ROOM}")
    fabric.command('Unlink "S2"[3]')
    end = time.monotonic() + 60
    while len(announced(fabric)) < 3:
        if time.monotonic() > end:
            raise TimeoutError(repath(guest, "path"))
        time.sleep(0.1)
    job.kill(9)
    job.wait(30, check=False)
    told = announced(fabric)
    tables = [line for line in fabric.command("Journal").splitlines() if not line.startswith("0 ") and " block " in line]
    fabric.command("Journal 0")
    assert len(told) >= 3 and not tables, (told, tables)
    assert repaths == {hca: count(guest, hca, "notice-repath") for hca in fabric.hosts.values()}, repaths
    print(f"    {sum(map(len, told.values()))} paths of {len(told)} hosts were announced", flush=True)


def wait_said(fabric):
    """Of no path it is said any more that it will break."""
    end = time.monotonic() + 90
    while found := announced(fabric):
        if time.monotonic() > end:
            raise TimeoutError(found)
        time.sleep(0.5)


def half_said(fabric, host):
    """An UnPath of the subnet manager at a host, of which no RePath follows: the way from H2 to H4."""
    guest, status = fabric.guest, fabric.repath_status(host)
    slid, dlid = fabric.lid("H2"), fabric.lid("H4")
    said = guest.run(
        f"sanotice -C {fabric.hosts[host]} -L {slid} -t 30000 trap={UNPATH} flags={WAIT} "
        f"epoch={status['epoch']} serial={status['serial'] + 1} number=1000000 slid={slid} dlid={dlid}")
    assert "no answer" not in said
    guest.wait_until(f"repath path dev vhca2 dlid {dlid} | grep -q unpath")
    return dlid


def wait_mended(fabric, dlid):
    fabric.guest.wait_until(f"repath path dev vhca2 dlid {dlid} > /run/path && grep -q . /run/path && "
                            "! grep -q unpath /run/path", timeout=90)


def unanswered(fabric, job):
    """The subnet manager stands still for longer than a question is repeated."""
    guest = fabric.guest
    failed = count(guest, "vhca2", "sa-query-failed")
    job.kill(19)
    guest.run("repath path ask vhca2")
    wait_count(guest, "vhca2", "sa-query-failed", failed + 1, timeout=60)
    job.kill(18)
    end = time.monotonic() + 60
    while max(path["age-s"] for path in repath(guest, "path dev vhca2")) > 4:
        if time.monotonic() > end:
            raise TimeoutError(repath(guest, "path dev vhca2"))
        time.sleep(0.5)


def trouble(fabric):
    guest = fabric.guest
    first = start_manager(fabric, "H1", 8)
    fabric.wait_active()
    guest.load_repath("unpath_ms=3000")
    wait_subscribed(guest, fabric.hosts.values())
    second = start_manager(fabric, "H4", 3)
    pairs = [Pair(guest, guest, f"-q 1 -n 4 -b -r 10 -s 2000 --vary -d {fabric.hosts[a]}",
                  "-i 0.5 --timeout 19 --retry 7", server_options=f"-d {fabric.hosts[b]}",
                  port=18600 + number) for number, (a, b) in enumerate(PAIRS)]
    for pair in pairs:
        pair.wait_running()
    guest.wait_until("grep -q 'Entering STANDBY' /run/opensm-H4/log")

    reroute(fabric, "Unlink", 2)
    print("  failover", flush=True)
    first.kill(9)
    wait_manager(fabric, "H4")
    reroute(fabric, "ReLink", 1)
    print("  handover", flush=True)
    first = start_manager(fabric, "H1", 8, WAITS)
    wait_manager(fabric, "H1")
    reroute(fabric, "Unlink", 2)
    reroute(fabric, "ReLink", 1)

    print("  a death between UnPath and RePath", flush=True)
    killed_between(fabric, first)
    wait_manager(fabric, "H4")
    wait_moved(fabric, both_ways(wait_lanes(fabric, 2)))
    wait_said(fabric)
    print("  handover again", flush=True)
    first = start_manager(fabric, "H1", 8)
    wait_manager(fabric, "H1")
    reroute(fabric, "ReLink", 1)
    first.kill(9)
    wait_manager(fabric, "H4")
    reroute(fabric, "Unlink", 2)
    print("  a RePath that does not come", flush=True)
    wait_mended(fabric, half_said(fabric, "H4"))
    print("  a question without an answer", flush=True)
    unanswered(fabric, second)
    wait_moved(fabric, both_ways(wait_lanes(fabric, 2)))
    for pair in pairs:
        pair.wait_progress(20)
        pair.finish()


def test(bed):
    with open(NET) as f:
        fabric = bed.fabric(f.read(), opensm=None, repath="method auto")
    try:
        trouble(fabric)
    except Exception:
        print(fabric.guest.run("repath path; repath path sm; repath qp; repath stats; "
                               "tail -n 30 /run/opensm-H*/log", check=False), flush=True)
        raise
    for hca in fabric.hosts.values():
        for name in ("move-failed", "move-lost", "move-no-way"):
            assert not count(fabric.guest, hca, name), (hca, name)
