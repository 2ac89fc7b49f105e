# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""OpenSM's plugin and the module, over the kernel's own MAD layer: six HCAs of two guests in the papers' mesh
subscribe; when S2-S5 is pulled each hears of its changed paths what the SA says of them. The way from the
SM to H5 was by that cable: the kernel repeats an UnPath to it, which comes after the RePath.

Then the link comes and goes again and again under checked traffic between the guests: each time exactly the
queue pairs whose path has changed are moved, once, and nothing is lost. LONG=1 has 500 rounds, two reroutings
each, REROUTE_ROUNDS=n as many as one wants; if these are many, nobody looks at nine of ten, and the next rerouting
comes when OpenSM is ready, whether the last one has got everywhere or not.
"""

import os
import time

from channel import CommandFailed
from move import LONG
from moves_traced import TRACE
from rc_flows import service_levels
from test_notice_heard import count, wait_subscribed
from tracking import repath, user_qps
from traffic import Pair

# The fabric is as busy as a guest: alone.
GUESTS = 3

ROUNDS = int(os.environ.get("REROUTE_ROUNDS") or (500 if LONG else 2))
TIMEOUT = 300 + 40 * ROUNDS
LOOK_EVERY = 10 if ROUNDS > 20 else 1
LINK = '"S2"[4]'
PATIENCE = 60
# Packets on their way over the link are lost when it goes down, and are sent again after a second.
OPTIONS = "-q 4 -n 4 -b -k 4 -m all --vary -s 4000"
RATE = 30       # messages a second; on a slow kernel fewer


def told(fabric):
    """What the plugin says when nothing is on its way, and OpenSM has routed."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        status = fabric.repath_status()
        signal, paths = status["signal"], status["paths"]
        if paths["changed"] and paths["routings"] == paths["told"] and \
                not signal["queued"] and not signal["on_the_way"]:
            return status
        time.sleep(0.5)
    raise TimeoutError(str(status))


def routed(fabric, before):
    """OpenSM has routed more than so often, and is through: what it asks by a link that goes in the middle of a sweep is
    not answered, and for ten seconds it sees nothing."""
    until, last = time.monotonic() + PATIENCE, None
    while time.monotonic() < until:
        paths = fabric.repath_status()["paths"]
        if before < paths["routings"] == paths["told"] == last:
            return
        last = paths["routings"]
        time.sleep(0.2)
    raise TimeoutError(str(paths))


def heard(fabric, lanes):
    """How many paths hosts know by a report; all of them are as the SA has them."""
    n = 0
    for host, hca in fabric.hosts.items():
        for path in repath(fabric.place[host], f"path dev {hca}"):
            if path["source"] == "report" and not path["unpath"]:
                assert path["sl"] == lanes[path["slid"], path["dlid"]], (hca, path)
                n += 1
    return n


def wait_heard(fabric, number):
    """The service levels of all paths, of which so many are known by a report."""
    until, lanes = time.monotonic() + PATIENCE, service_levels(fabric)
    while heard(fabric, lanes) != number:
        if time.monotonic() > until:
            raise TimeoutError([repath(guest, "path") for guest in fabric.guests])
        time.sleep(0.5)
    return lanes


def reroute(fabric, what, wanted):
    """The link goes or comes: wait until the SA has these service levels. In the middle of it, it says of some
    paths what was, and of others what will be."""
    fabric.command(f"{what} {LINK}")
    until = time.monotonic() + PATIENCE
    while True:
        try:
            if service_levels(fabric) == wanted:
                return
        except CommandFailed:       # the way to the SM is congested
            pass
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: {fabric.sm_log()[-2000:]}")
        time.sleep(0.2)


def start_flows(fabric, old, new):
    """Between two hosts whose path changes, and two others: hosts of both guests."""
    lids = {host: fabric.lid(host) for host in fabric.hosts}
    changed, same = [], []
    for one in ("H1", "H2", "H3"):
        for two in ("H4", "H5", "H6"):
            ways = (lids[one], lids[two]), (lids[two], lids[one])
            (changed if any(old[way] != new[way] for way in ways) else same).append((one, two))
    a, b = fabric.guests
    rate = max(3, RATE // a.bed.kernel.slowness)
    # Where OpenSM takes seconds for a sweep the link is useless for a third of the time: seven tries of two seconds
    # each are not enough then.
    timeout = 19 if a.bed.kernel.slowness == 1 else 20
    pairs = [Pair(a, b, f"{OPTIONS} -r {rate} -d {fabric.hosts[two]}", f"-i 0.5 --timeout {timeout}", port=18600 + i,
                  server_options=f"-d {fabric.hosts[one]}")
             for i, (one, two) in enumerate((changed[0], same[0]))]
    for pair in pairs:
        pair.wait_running()
    return pairs


def queue_pairs(fabric):
    return {(guest.name, *key): qp for guest in fabric.guests
            for key, qp in user_qps(guest).items() if qp["type"] == "RC"}


class Moves:
    """How often each queue pair is to have been moved."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.wanted = dict.fromkeys(queue_pairs(fabric), 0)
        self.changes = 0

    def wait(self, old, new):
        """All are where the SA has them now, each moved once more if its path has changed, else not."""
        until = time.monotonic() + PATIENCE
        for key, qp in queue_pairs(self.fabric).items():
            changed = old[qp["slid"], qp["dlid"]] != new[qp["slid"], qp["dlid"]]
            self.wanted[key] += changed
            self.changes += changed
        while True:
            found = queue_pairs(self.fabric)
            assert found.keys() == self.wanted.keys(), f"gone: {self.wanted.keys() - found.keys()}"
            moves = {key: qp.get("moves", 0) for key, qp in found.items()}
            more = {key: qp for key, qp in found.items() if moves[key] > self.wanted[key]}
            assert not more, f"moved for nothing: {more}"
            if moves == self.wanted and all(qp["sl"] == new[qp["slid"], qp["dlid"]] for qp in found.values()):
                return
            if time.monotonic() > until:
                raise TimeoutError((self.wanted, new, found))
            time.sleep(0.2)

    def catch_up(self, now, reroutings):
        """So many have followed one another: when all has come to rest each is where the SA has it, and what had not
        been moved before was not for nothing. An end that is told of the next one already may be taken there by its
        peer, which is told of the last one only now, and has to go back: so it may be moved oftener."""
        until, last = time.monotonic() + PATIENCE, None
        while True:
            told(self.fabric)
            found = {key: (qp["sl"] == now[qp["slid"], qp["dlid"]], qp.get("moves", 0))
                     for key, qp in queue_pairs(self.fabric).items()}
            if found == last and all(there for there, _ in found.values()):
                break
            if time.monotonic() > until:
                raise TimeoutError((now, found))
            last = found
            time.sleep(1)
        assert found.keys() == self.wanted.keys(), f"gone: {self.wanted.keys() - found.keys()}"
        most = {key: self.wanted[key] and self.wanted[key] + 2 * reroutings for key in found}
        assert all(self.wanted[key] <= moves <= most[key] for key, (_, moves) in found.items()), (self.wanted, found)
        self.wanted = {key: moves for key, (_, moves) in found.items()}
        self.changes = sum(self.wanted.values())


def explain(fabric, pairs):
    for guest in fabric.guests:
        print(guest.run(f"repath qp; repath stats; dmesg | tail -n 20; tail -n 300 {TRACE}/trace", check=False),
              flush=True)
    print(*(job.output()[-2000:] for pair in pairs for job in pair.jobs), fabric.repath_status(),
          fabric.sm_log()[-20000:], sep="\n", flush=True)


def loop(fabric, pairs, old, new):
    moves = Moves(fabric)
    assert len(moves.wanted) == 16, moves.wanted
    now, began = old, time.monotonic()
    behind = 0
    for n in range(ROUNDS):
        looks = n % LOOK_EVERY == 0
        if looks and behind:
            moves.catch_up(now, behind)
            behind = 0
        for what in "Unlink", "ReLink":
            before, now = now, new if what == "Unlink" else old
            if looks:
                reroute(fabric, what, now)
                moves.wait(before, now)
            else:
                routings = fabric.repath_status()["paths"]["routings"]
                fabric.command(f"{what} {LINK}")
                behind += 1
                routed(fabric, routings)
        for pair in pairs if looks else ():
            pair.wait_progress(10)
        if n % 10 == 9:
            print(f"  {n + 1} rounds, {moves.changes} moves, {time.monotonic() - began:.0f} s", flush=True)
    status = told(fabric)
    if behind:
        moves.catch_up(now, behind)
    moves.wait(now, now)
    gaps = [pair.finish()[0]["max_gap_ms"] for pair in pairs]
    routings = status["paths"]["routings"]
    print(f"  {2 * ROUNDS} changes of the link, {routings} routings, {moves.changes} moves, gaps of {gaps} ms; {status['signal']}",
          flush=True)
    assert routings >= 2 * ROUNDS, status
    assert 0 in moves.wanted.values() and moves.changes >= 4 * ROUNDS, moves.wanted
    total = {name: sum(count(fabric.place[host], hca, name) for host, hca in fabric.hosts.items())
             for name in ("moved-sqd", "moved-apm", "move-lost", "move-failed", "move-no-way")}
    assert total["moved-sqd"] + total["moved-apm"] == moves.changes, (total, moves.changes)
    assert not total["move-lost"] and not total["move-failed"] and not total["move-no-way"], total


def mesh(bed, options):
    """The fabric with these options of the plugin; all of its hosts, in two guests, have subscribed."""
    fabric = bed.fabric("mesh:3x2", opensm="-R lash -Q", repath=options, memory=320,
                        guests={"a": ["H1", "H2", "H3"], "b": ["H4", "H5", "H6"]})
    for guest in fabric.guests:
        guest.load_repath()
    for host, hca in fabric.hosts.items():
        wait_subscribed(fabric.place[host], [hca])
    return fabric


def test(bed):
    fabric = mesh(bed, "method auto")
    for guest in fabric.guests:
        guest.run(f"mount -t tracefs none {TRACE}; cd {TRACE}; echo 1 > events/repath/sm_report/enable; "
                  "echo 1 > events/repath/sm_paths/enable; echo 1 > events/repath/move/enable; "
                  "echo 1 > events/repath/qp/enable")
    old = service_levels(fabric)
    fabric.command(f"Unlink {LINK}")
    status = told(fabric)
    signal, paths = status["signal"], status["paths"]
    assert signal["subscribers"] == len(fabric.hosts), signal
    assert signal["given_up"] == 0, signal
    assert signal["repath"] == paths["paths"] > 0, (signal, paths)
    new = wait_heard(fabric, signal["repath"])
    reroute(fabric, "ReLink", old)
    pairs = start_flows(fabric, old, new)
    try:
        loop(fabric, pairs, old, new)
    except Exception as error:
        explain(fabric, pairs)
        # Then other links have gone down as well, and other paths have changed.
        if late := fabric.sm_log().count("Flow Control Update watchdog timer expired"):
            raise RuntimeError(f"the machine has kept a link's flow control waiting: {late} traps 131") from error
        raise
