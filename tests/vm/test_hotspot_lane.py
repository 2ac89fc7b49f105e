# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""dFtree with real queue pairs: who contributes to a hot spot is moved to the slow lane, and back.

	       R1      R2
	      / | \\   / | \\		all leaves to both roots
	     A     B     C
	    1 2   3 4   5 6		hosts 1 to 3 in one guest, 4 to 6 in another one; OpenSM at 4

1, 3 and 6 send to 5, and 2 to 3 or 4, by the uplink of 1-5. Then 5 takes what comes a while late, so that the
switch before it waits: OpenSM's performance manager sees that, and that 1, 3 and 6 wait and send little. Their
hosts are told to use the slow lane to 5, by RePath, which moves the queue pairs to 5, while they send, and no
other; the subnet administration says of their paths what it did before, and to ask it does not bring them back.
The wire has them in the slow lane. The OpenSM that has told that is killed, and one comes that looks for no hot
spots: it is over with that, though 5 is as late as before. One that does takes its place, and finds it again. When
5 takes all at once again they are told so, by UnPath, and are moved back.

All paths have service level FAST, and so a lane that is not that of the subnet manager's own packets: with links
as slow as these readings that wait behind data come when the sweep of the performance manager seems to be over.
"""

import re
import time

from rc_flows import LINK, slow_links
from test_notice_heard import count, wait_count, wait_subscribed
from test_repath_mesh import check_wire, lanes, on_paths
from tracking import repath
from traffic import Pair

PENDING = "it has passed, in 188 s on a busy machine, 88 s of processors: longer than a test may take"

TIMEOUT = 600
# The fabric is as busy as two guests: alone.
GUESTS = 3

FAST, SLOW_LANE = 2, 1
SM = "H4"
HOT = "H5"
CONTRIBUTORS = [("H1", HOT), ("H3", HOT), ("H6", HOT)]
# Links that are slower than they say by this, in percent of the time of a byte; LINK is what they carry then.
SLOWER = 250000
# The time in which a link carries nearly three times what the hot spot's HCA has room for: the switch waits for two
# thirds of it.
LATE = 65536 * 1e9 * 8 / 3 / LINK
# Of the 250 million ticks of a second; the default is for real links, and hosts that do not stand still for a moment.
WAITS = 100000000
OPTIONS = f"""method hybrid
slow_sl {{}}
hotspot_mbit {LINK * 8 // 1000000}
hotspot_wait {WAITS}
hotspot_onset 3
hotspot_calm 3"""
CONF = """perfmgr TRUE
perfmgr_sweep_time_s 1
transaction_timeout 2000"""
PATIENCE = 90
# More than buffers on the way hold.
TRAFFIC = "-q 1 -n 6 -m send -s 16000"
# An acknowledgement waits for long, behind nothing that is lost.
EACH = f"-i 0.5 --timeout 21 --sl {FAST}"


def start(fabric, slow=SLOW_LANE):
    fabric.repath = OPTIONS.format(slow)
    return fabric.start_opensm("-R ftree -Q -P /run/partitions.conf", host=SM, conf=CONF)


def leaf(fabric, host):
    """The switch and port that a host is plugged into."""
    return re.search(rf'^Hca\s+1\s+"{host}".*\n\[1\]\s+"([^"]+)"\[(\d+)\]', fabric.topology, re.M).groups()


def victim(fabric):
    """From H2 to where it leaves by the uplink of H1 to the hot spot."""
    switch, _ = leaf(fabric, "H2")
    out = dict(re.findall(r" \[(\d+)\](\d+)", fabric.command(f'Dump "{switch}"')))
    return next(("H2", to) for to in ("H3", "H4") if out[str(fabric.lid(to))] == out[str(fabric.lid(HOT))])


def queue_pairs(fabric, flows):
    """{flow: the queue pair that sends it}"""
    hosts = {fabric.lid(host): host for host in fabric.hosts}
    devices = {device: host for host, device in fabric.hosts.items()}
    found = {}
    for guest in fabric.guests:
        for qp in repath(guest, "qp"):
            if qp["type"] != "RC" or qp["state"] not in ("RTS", "SQD"):
                continue
            flow = devices[qp["dev"]], hosts[qp["dlid"]]
            if flow in flows:
                assert flow not in found, (flow, found[flow], qp)
                found[flow] = qp
    return found


def service_levels(fabric, flows):
    return {flow: qp["sl"] for flow, qp in queue_pairs(fabric, flows).items()}


def hot_now(fabric):
    """Of an OpenSM that looks for none, too."""
    return fabric.repath_status(SM)["hot_spots"] or {"now": 0}


def wait_for(fabric, what, flows, hot, levels):
    """Until there are so many hot spots, and queue pairs are on these service levels."""
    end = time.monotonic() + PATIENCE
    while (hot_now(fabric)["now"], service_levels(fabric, flows)) != (hot, levels):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: {hot_now(fabric)}, {queue_pairs(fabric, flows)}")
        time.sleep(0.5)


def check_moves(fabric, flows, moves):
    """The contributors were moved so often, by draining, and nobody else."""
    for flow, qp in queue_pairs(fabric, flows).items():
        told = (moves, "sqd") if flow in CONTRIBUTORS and moves else (0, None)
        assert (qp.get("moves", 0), qp.get("moved-by")) == told, (flow, qp)


def path_of(fabric, flow):
    """What its sender's host knows."""
    path, = repath(fabric.place[flow[0]], f"path dev {fabric.hosts[flow[0]]} dlid {fabric.lid(flow[1])}")
    return path


def goes_by(fabric, pairs, levels):
    """All go on, in these lanes."""
    hops = on_paths(fabric)
    for pair in pairs:
        pair.wait_progress(20)
    check_wire(fabric, hops, levels)


def restart(fabric, slow):
    """The OpenSM that there is is killed."""
    job = fabric.sm_jobs.pop()
    job.kill(9)
    job.wait(30, check=False)
    start(fabric, slow)
    fabric.place[SM].wait_until(f"repath sm socket /run/opensm-{SM}/repath.sock")


def hot_spot(fabric, pairs, flows):
    fast = dict.fromkeys(flows, FAST)
    slow = fast | dict.fromkeys(CONTRIBUTORS, SLOW_LANE)
    for pair in pairs:
        pair.wait_running()
    wait_for(fabric, "before", flows, 0, fast)
    goes_by(fabric, pairs, fast)
    assert not hot_now(fabric)["to_slow_lane"], hot_now(fabric)
    check_moves(fabric, flows, 0)

    switch, port = leaf(fabric, HOT)
    fabric.command(f'Fault "{switch}"[{port}] delay={LATE:.0f}')
    wait_for(fabric, "a hot spot", flows, 1, slow)
    print(f"  {hot_now(fabric)}", flush=True)
    for flow in CONTRIBUTORS:
        path = path_of(fabric, flow)
        assert (path["source"], path["sl"]) == ("lane", SLOW_LANE), path
        # The exception is none of the subnet administration's.
        host, hca = fabric.place[flow[0]], fabric.hosts[flow[0]]
        asked = count(host, hca, "sa-query")
        host.run(f"repath path ask {hca}")
        wait_count(host, hca, "sa-query", asked + 1)
    # What is on its way there is in the lane of before.
    for pair in pairs:
        pair.wait_progress(20)
    used = lanes(fabric, "L")
    goes_by(fabric, pairs, slow)
    used = {vl: n - used.get(vl, 0) for vl, n in lanes(fabric, "L").items() if n > used.get(vl, 0)}
    print(f"  packets by VL: {used}", flush=True)
    assert service_levels(fabric, flows) == slow, queue_pairs(fabric, flows)
    check_moves(fabric, flows, 1)

    restart(fabric, 0)
    wait_for(fabric, "another OpenSM", flows, 0, fast)
    check_moves(fabric, flows, 2)
    restart(fabric, SLOW_LANE)
    wait_for(fabric, "one that looks for hot spots", flows, 1, slow)
    check_moves(fabric, flows, 3)

    fabric.command(f'Fault "{switch}"[{port}] delay=0')
    wait_for(fabric, "its end", flows, 0, fast)
    check_moves(fabric, flows, 4)
    for flow in CONTRIBUTORS:
        path = path_of(fabric, flow)
        assert path["source"] != "lane" and path["sl"] == FAST, path
    for pair in pairs:
        pair.wait_progress(20)
    goes_by(fabric, pairs, fast)
    found = hot_now(fabric)
    assert found["to_slow_lane"] == found["to_fast_lane"] >= len(CONTRIBUTORS), found
    assert not found["contributors"], found


def test(bed):
    fabric = bed.fabric("xgft:2,3/1,2,speed=1", opensm=None, memory=320,
                        guests={"a": ["H1", "H2", "H3"], "b": ["H4", "H5", "H6"]})
    fabric.judged = True
    fabric.place[SM].run(f"echo 'Default=0x7fff, ipoib, sl={FAST} : ALL=full;' > /run/partitions.conf")
    start(fabric)
    fabric.wait_active()
    for guest in fabric.guests:
        guest.load_repath("reroute_drain_ms=60000")
    for host, hca in fabric.hosts.items():
        wait_subscribed(fabric.place[host], [hca])
    slow_links(fabric, SLOWER)
    still = victim(fabric)
    flows = [*CONTRIBUTORS, still]
    pairs = [Pair(fabric.place[to], fabric.place[host], f"{TRAFFIC} -d {fabric.hosts[host]}",
                  EACH, port=18600 + i, server_options=f"-d {fabric.hosts[to]}")
             for i, (host, to) in enumerate(flows)]
    try:
        hot_spot(fabric, pairs, flows)
        for pair in pairs:
            pair.finish()
    except Exception:
        print(fabric.place[SM].run(f"repath sm socket /run/opensm-{SM}/repath.sock", check=False),
              fabric.command("Sent"), *(
                  guest.run("repath path; repath qp; repath stats; dmesg | tail -n 20", check=False)
                  for guest in fabric.guests), fabric.sm_log(SM)[-3000:], sep="\n", flush=True)
        raise
    for host, hca in fabric.hosts.items():
        for name in ("move-failed", "move-lost", "move-no-way"):
            assert not count(fabric.place[host], hca, name), (host, name)
    moved = sum(count(fabric.place[host], hca, name) for host, hca in fabric.hosts.items()
                for name in ("moved-sqd", "moved-apm"))
    assert moved == 4 * len(CONTRIBUTORS), moved
    for guest in fabric.guests:
        guest.run("rmmod ib_repath")
