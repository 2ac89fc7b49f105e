# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The papers' fault again, with libosmrepath.so in OpenSM and the module on the hosts: RC traffic, both
ways, 1-3 2-4 3-5 4-6 5-1 6-2 on a 3x2 mesh, the link S2-S5 goes down, LASH reroutes with two lanes. The queue
pairs whose service level changed are moved to it while they send, and no others; nothing stands still.
When the link is back they are moved again.

For as long as some hosts have not heard of it there can be a deadlock, and what the subnet manager says
travels on the lanes of LASH as well: it is switches that drop what has waited for a second which end
that. (Where they do not, and nobody is moved, it is for good: test_vhca_deadlock.)
Both ways, since a queue pair that has never been told to send (RTR) can not be told another address.
"""

import json
import re
import time

from channel import CommandFailed
from moves_traced import Trace, check
from rc_flows import Flows, LINK, slow_links
from test_notice_heard import count, wait_subscribed
from test_vhca_deadlock import NET, PAIRS, flows_of

TIMEOUT = 600
# Packets on their way over the link are lost when it goes down, and are sent again after a second.
OPTIONS = {"timeout": 18, "options": "-b"}
# Guests and fabric mostly wait.
PROCESSORS = 1


def service_levels(fabric):
    """{(from, to): service level} of the queue pairs at both ends of each flow, as the HCAs have them."""
    hosts = {fabric.lid(host): host for host in fabric.hosts}
    devices = {device: host for host, device in fabric.hosts.items()}
    return {(devices[qp["dev"]], hosts[qp["dlid"]]): qp["sl"]
            for qp in json.loads(fabric.guest.run("repath -j qp"))
            if qp["type"] == "RC" and qp["state"] in ("RTS", "SQD")}


def both_ways(flows):
    return {pair: sl for a, b, sl in flows for pair in ((a, b), (b, a))}


def wait_moved(fabric, wanted, patience=120):
    end = time.monotonic() + patience
    while (found := service_levels(fabric)) != wanted:
        if time.monotonic() > end:
            raise TimeoutError(f"queue pairs are on {found}, the SM says {wanted}")
        time.sleep(0.2)


def lanes(fabric, node="S", number=None):
    """Packets that went out of switches, or of one port, by data VL, {VL: packets}."""
    found = {}
    for line in fabric.command("Sent" if number is None else f'Sent "{node}"[{number}]').splitlines():
        if line.startswith(f'"{node}'):
            for vl, packets in re.findall(r"VL(\d+) (\d+)", line):
                found[int(vl)] = found.get(int(vl), 0) + int(packets)
    return found


def on_paths(fabric):
    """{(from, to): {VL: packets that have come from host to host}}"""
    hosts, found = {fabric.lid(host): host for host in fabric.hosts}, {}
    for slid, dlid, vl, packets in re.findall(r"^(\d+) (\d+) VL(\d+) (\d+)$", fabric.command("Paths"), re.M):
        found.setdefault((hosts[int(slid)], hosts[int(dlid)]), {})[int(vl)] = int(packets)
    return found


def check_wire(fabric, before, wanted):
    """Since @before what has come from each host to each of its peers came by the lane of that queue pair, and else what is
    not of queue pairs: MADs."""
    now = on_paths(fabric)
    for path, sl in wanted.items():
        got = {vl: n - before.get(path, {}).get(vl, 0) for vl, n in now.get(path, {}).items()}
        assert got.get(sl, 0) > 100, (path, sl, got)
        assert all(n < got[sl] / 10 for vl, n in got.items() if vl != sl), (path, sl, got)


def modified(fabric):
    """{host: modify_qp calls on its HCA}"""
    return {host: count(fabric.guest, hca, "qp-modify") for host, hca in fabric.hosts.items()}


def check_calls(fabric, moves, changed, calls, say):
    """Since @calls: as many modify_qp calls as there are steps to each move, and none for a queue pair whose path is
    what it was."""
    hosts = {fabric.lid(host): host for host in fabric.hosts}
    devices = {device: host for host, device in fabric.hosts.items()}
    check(moves)
    steps = {(devices[move.dev], hosts[move.dlid]): " ".join(move.calls) for move in moves}
    say(f"  modify_qp calls: {steps}")
    assert len(steps) == len(moves) and set(steps) == changed, (moves, changed)
    more = {host: n - calls[host] for host, n in modified(fabric).items()}
    assert more == {host: sum(len(done.split()) for (one, _), done in steps.items() if one == host)
                    for host in fabric.hosts}, (more, steps)


def count_moves(fabric):
    """Queue pairs that the module has moved."""
    whole, = (part["counts"] for part in json.loads(fabric.guest.run("repath -j stats"))
              if "module" in part)
    return whole.get("moved-apm", 0) + whole.get("moved-sqd", 0)


def wait_lanes(fabric, number, patience=120):
    """Wait until the SA's path records of the flows have so many service levels: the flows."""
    end = time.monotonic() + patience
    flows = None
    while len({sl for _, _, sl in flows or ()}) != number:
        if time.monotonic() > end:
            raise TimeoutError(flows)
        try:
            flows = flows_of(fabric)
        except CommandFailed:       # the way to the SM is congested, or blocked
            time.sleep(0.2)
    return flows


def explain(fabric):
    print(fabric.repath_status(), fabric.guest.run(
        "repath path; repath path sm; repath qp; repath stats; dmesg | tail -n 20", check=False),
        fabric.sm_log()[-1500:], flush=True)


def second_fault(fabric, flows, now, parts, say):
    """S3-S4 goes down as well, and both links come back; on @now the queue pairs are."""
    before, calls, trace = count_moves(fabric), modified(fabric), Trace(fabric.guest)
    fabric.command('Unlink "S3"[2]')
    line = wait_lanes(fabric, 1)
    wait_moved(fabric, both_ways(line))
    back = {pair for pair, sl in both_ways(line).items() if sl != both_ways(now)[pair]}
    say(f"  S3-S4 down: {len(back)} queue pairs are moved back")
    flows.rates(5)
    hops = on_paths(fabric)
    parts["line"] = flows.rates(10)
    check_wire(fabric, hops, both_ways(line))
    check_calls(fabric, trace.end(), back, calls, say)
    assert count_moves(fabric) - before == len(back), (count_moves(fabric), before, back)
    routings = fabric.repath_status()["paths"]["routings"]
    for end in '"S2"[3]', '"S3"[2]':
        fabric.command(f"ReLink {end}")
    while fabric.repath_status()["paths"]["routings"] == routings:
        time.sleep(0.5)


def fresh_start(fabric, lanes_needed, samples):
    """(what queue pairs get that have never been anywhere else, the second when they begin)"""
    flows = Flows(fabric, wait_lanes(fabric, lanes_needed), samples=samples, **OPTIONS)
    begun, _ = flows.received()
    flows.rates(5)
    rates = flows.rates(15)
    flows.stop()
    return rates, begun


def repaired(fabric, say=print, second=False):
    """({phase: [part of a link that each host gets]}, [(seconds, bytes)], {event: seconds})"""
    fabric.guest.load_repath()
    wait_subscribed(fabric.guest, fabric.hosts.values())
    slow_links(fabric)
    old = wait_lanes(fabric, 1)
    samples, events, parts = [], {}, {}
    flows = Flows(fabric, old, samples=samples, **OPTIONS)
    flows.rates(5)
    hops = on_paths(fabric)
    parts["mesh"] = flows.rates(10)
    found = service_levels(fabric)
    assert found == both_ways(old), found
    say(f"  all on service level {old[0][2]}")

    check_wire(fabric, hops, both_ways(old))
    calls, trace = modified(fabric), Trace(fabric.guest)
    before, (events["S2-S5 down"], _) = count_moves(fabric), flows.received()
    fabric.command('Unlink "S2"[3]')
    new = wait_lanes(fabric, 2)
    changed = {pair for pair, sl in both_ways(new).items() if sl != both_ways(old)[pair]}
    assert 0 < len(changed) < len(both_ways(new)), changed
    wait_moved(fabric, both_ways(new))
    say(f"  S2-S5 down: {len(changed)} of {len(both_ways(new))} queue pairs are moved to another lane")
    flows.rates(10)
    assert "VL" not in fabric.command("Deadlock")
    start, hops = lanes(fabric), on_paths(fabric)
    parts["ring"] = flows.rates(15)
    used = {vl: n - start.get(vl, 0) for vl, n in lanes(fabric).items() if n > start.get(vl, 0)}
    say(f"  packets by VL: {used}")
    assert sum(n > 1000 for n in used.values()) == 2, used
    check_wire(fabric, hops, both_ways(new))
    check_calls(fabric, trace.end(), changed, calls, say)
    assert count_moves(fabric) - before == len(changed), (count_moves(fabric), before, changed)

    if second:
        second_fault(fabric, flows, new, parts, say)
    else:
        fabric.command('ReLink "S2"[3]')
    events["S2-S5 up"], _ = flows.received()
    assert wait_lanes(fabric, 1) == old
    wait_moved(fabric, both_ways(old))
    flows.rates(5)
    parts["mesh again"] = flows.rates(10)
    flows.stop()

    fabric.command('Unlink "S2"[3]')
    parts["fresh start"], events["new queue pairs"] = fresh_start(fabric, 2, samples)
    if second:
        fabric.command('Unlink "S3"[2]')
        parts["fresh line"], events["new queue pairs on the line"] = fresh_start(fabric, 1, samples)
    for name, values in parts.items():
        say(f"  {name}: " + " ".join(f"{value / LINK:.3f}" for value in values))
    return {name: [value / LINK for value in values] for name, values in parts.items()}, samples, events


def play(bed, second=False):
    with open(NET) as f:
        fabric = bed.fabric(f.read(), opensm="-R lash -Q", repath="")
    try:
        parts, _, _ = repaired(fabric, second=second)
    except Exception:
        explain(fabric)
        raise
    for phase in {"ring", "line"} & set(parts):
        for (_, host), got in zip(PAIRS, parts[phase]):
            assert got > 0.05, f"{phase}: nothing comes to {host}: {got}"
    # How much it is measures the machine as well: tests/sm/test_rates.py asks for 0.95 of each flow in virtual time.
    assert sum(parts["ring"]) > 0.8 * sum(parts["fresh start"]), parts
    assert sum(parts["mesh again"]) > 0.8 * sum(parts["mesh"]), parts
    if second:
        assert sum(parts["line"]) > 0.8 * sum(parts["fresh line"]), parts


def test(bed):
    play(bed)
