# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What else can happen to a queue pair while the subnet manager reroutes: stock OpenSM with the plugin, and without the
shim but where said.

In the middle of a move: a link is cut, and the module drains queue pairs for their new path, which takes as long as
their peers have no receives. Then the next reroute takes back the first one; or the owner takes the queue pair to
RESET and connects it anew, drains it himself, or is killed; with the shim its device is suspended, and resumed.

All at once: the link goes and comes again and again, while an administrator sets paths, too, and programs make,
modify and destroy queue pairs of the same paths.

Then the device is removed in the middle of a move. After each of these all queue pairs that are there are on the
path that the subnet administration tells, and data are right. At last the HCAs migrate as well, and programs have
alternate paths of their own, which stay theirs. STRESS_ROUNDS=n: the link goes and comes n times (6).
"""

import itertools
import os
import random
import time

from fabric import CONTROL
from move import SHIM
from rc_flows import service_levels
from test_notice_heard import count, wait_count, wait_subscribed
from test_reroute_lanes import load
from test_sm_plugin import LINK, explain, reroute, told
from tracking import user_qps
from traffic import Pair
from trouble import STUCK_DEPTH, wait_stuck

PENDING = "it has passed, in 488 s on a busy machine, 278 s of processors: longer than a test may take"

ROUNDS = int(os.environ.get("STRESS_ROUNDS") or 6)
TIMEOUT = 900 if ROUNDS <= 10 else 7200
# The fabric is as busy as a guest: alone.
GUESTS = 2

OPENSM = "-R lash -Q"

# 4 s: what is lost with the link is sent again.
TIMING = "--timeout 20"
BUSY = "-q 2 -n 8 -b -k 4 -m all --vary -s 4000 -r 20"
# Its ends can stop to post receives; then what is posted is begun, tried again every 80 ms, and does not end.
STUCK = f"-q 1 -n {STUCK_DEPTH} -s 256 -b -r 100 -m send,send_imm"
STUCK_ENDS = f"-i 0.2 --stall 600 --no-recv-ms 600000 --overrun --rnr-timer 25 {TIMING}"
# Nobody gives up to drain.
MODULE = "reroute_drain_ms=600000"

PAIR = """
    open a {one} 1
    open b {two} 1
    connect a b timeout=20 retry=7
"""

OPEN = PAIR + """
    send a 4 64
    !{cut}
    is a state sqd
"""

OWNER = {
    "the owner resets it": OPEN + """
    reset a
    reset b
    connect a b timeout=20 retry=7
    recv b 2
    send a 2 64
    done a send 2 success
    done b recv 2 success
""",
    # Verbs take no wish to be told in SQD.
    "the owner drains it, too": OPEN + """
    fails sqd a notify
    sqd a
    recv b 5
    is a draining 0
    is a sl {new}
    is a state sqd
    send a 1 64
    quiet a 300
    rts a
    done a send 5 success
    done b recv 5 success
    is a sl {new}
""",
    "the owner exits": OPEN,
}

# A program that has loaded an alternate path hears of no migration that it has not asked for. When it goes over in
# the middle of a move its alternate path is used up, and it sends by what the SA says of these two ports.
APM = PAIR + """
    recv a 1
    recv b 1
    alt a 1 {alt}
    alt b 1 {alt}
    send a 1 64
    send b 1 64
    done a send 1 success
    done a recv 1 success
    is a mig armed
    is b mig armed
    send a 4 64
    !{cut}
    is a state sqd
"""

OWN_APM = {
    "its alternate path stays": APM + """
    recv b 6
    done a send 4 success
    is a sl {new}
    is a state rts
    is a mig armed
    is b sl {new_b}
    is b mig armed
    noevent a 300
    mig a migrated
    event a path_mig
    is a sl {alt}
    send a 2 64
    done a send 2 success
    done b recv 7 success
""",
    "it goes over in the middle": APM + """
    mig a migrated
    event a path_mig
    is a state sqd
    recv b 6
    done a send 4 success
    is a state rts
    is a sl {new}
    is a mig migrated
    send a 2 64
    done a send 2 success
    done b recv 7 success
""",
}
ALT = 3

# What an owner does, whatever goes on meanwhile.
MODIFY = PAIR + """
    recv a 8
    recv b 60
    send a 20 4000
    sqd a
    is a draining 0
    is a state sqd
    send a 1 64
    quiet a 100
    rts a
    send b 4 4000
    done a send 21 success
    done b recv 21 success
    done b send 4 success
    done a recv 4 success
    reset a
    reset b
    connect a b timeout=20 retry=7
    recv b 4
    send a 2 4000
    done a send 2 success
"""

# Each again and again until /run/stop is there; how often is in /run/churn.
CHURN = """
again() {{
    n=0
    while [ ! -e /run/stop ]; do
        "$@" || {{ echo "$*: failed"; return 1; }}
        n=$((n + 1))
    done
    echo $n $* >> /run/churn
}}
short() {{
    rcheck -p $1 {timing} -d {two} > /run/short.$1.server 2>&1 & server=$!
    rcheck -p $1 {timing} -d {one} -q $2 -n 4 -b -T 0.3 127.0.0.1 > /run/short.$1 2>&1 ||
        {{ cat /run/short.$1; return 1; }}
    wait $server || {{ cat /run/short.$1.server; return 1; }}
}}
modify() {{ qpscript -w {slowness} < /run/modify; }}
burn() {{ holdqp -d {one} -q 8 -c -b > /dev/null; }}
again short 18700 4 & one=$!
again short 18701 1 & two=$!
again modify & three=$!
again burn & four=$!
code=0
for job in $one $two $three $four; do wait $job || code=1; done
exit $code
"""


def say(what):
    print(f"  {time.strftime('%T')} {what}", flush=True)


class Paths:
    """Those that change with the link, and where queue pairs are."""

    def __init__(self, fabric):
        self.fabric, self.guest = fabric, fabric.guest
        self.lids = {host: fabric.lid(host) for host in fabric.hosts}
        self.up = service_levels(fabric)
        fabric.command(f"Unlink {LINK}")
        told(fabric)
        self.down = service_levels(fabric)
        reroute(fabric, "ReLink", self.up)

    def ways(self, one, two):
        return (self.lids[one], self.lids[two]), (self.lids[two], self.lids[one])

    def choose(self):
        """Two pairs of hosts whose paths change both ways, of four hosts that are not the subnet manager's."""
        pairs = [pair for pair in itertools.combinations(list(self.lids)[1:], 2)
                 if all(self.up[way] != self.down[way] for way in self.ways(*pair))]
        return next((one, two) for one, two in itertools.combinations(pairs, 2) if not {*one} & {*two})

    def wait(self, wanted, patience=120):
        """All queue pairs between hosts that send, or will, are where the SA has them."""
        end = time.monotonic() + patience
        while True:
            wrong = [qp for qp in user_qps(self.guest).values() if qp["type"] == "RC" and
                     (qp["state"] == "SQD" or (qp["state"] == "RTS" and qp["slid"] != qp["dlid"] and
                      qp["sl"] != wanted[qp["slid"], qp["dlid"]]))]
            if not wrong:
                return
            if time.monotonic() > end:
                raise TimeoutError(f"not on the path that the SA tells: {wrong}")
            time.sleep(0.2)

    def moved(self, what):
        wanted = self.down if what == "Unlink" else self.up
        reroute(self.fabric, what, wanted)
        self.wait(wanted)


class Stuck:
    """Two ends that wait for receives when they are told to."""

    def __init__(self, fabric, hosts, port, env=""):
        self.fabric, self.guest = fabric, fabric.guest
        self.devs = [fabric.hosts[host] for host in hosts]
        one, two = self.devs
        self.pair = Pair(self.guest, self.guest, f"{STUCK} -d {one}", STUCK_ENDS, env=env, port=port,
                         server_options=f"-d {two}")
        self.pair.wait_running()
        self.pids = self.guest.run(f"""for p in $(pidof rcheck); do
            tr '\\0' ' ' < /proc/$p/cmdline | grep -q -e '-p {port} ' && echo $p; done; true""").split()
        assert len(self.pids) == 2, self.pids

    def toggle(self):
        for job in self.pair.jobs:
            job.kill(10)

    def is_draining(self):
        """Both ends are in the middle of a move."""
        return all(self.guest.run(f"repath qp pid {pid} state SQD") for pid in self.pids)

    def cut(self):
        """The link goes, and what they have posted has no end."""
        self.toggle()
        wait_stuck(self.pair)
        self.fabric.command(f"Unlink {LINK}")
        end = time.monotonic() + 60
        while not self.is_draining():
            if time.monotonic() > end:
                raise TimeoutError(f"not drained for another path: {self.guest.run('repath qp')}")
            time.sleep(0.1)

    def go_on(self):
        self.toggle()
        self.pair.wait_progress(50)


def next_reroute(fabric, paths, stuck):
    before = [count(fabric.guest, dev, "notice-repath") for dev in stuck.devs]
    stuck.cut()
    wait_count(fabric.guest, stuck.devs[0], "notice-repath", before[0] + 1)
    before = [count(fabric.guest, dev, "notice-repath") for dev in stuck.devs]
    reroute(fabric, "ReLink", paths.up)
    for dev, told_before in zip(stuck.devs, before):
        wait_count(fabric.guest, dev, "notice-repath", told_before + 1)
    assert stuck.is_draining(), fabric.guest.run("repath qp")
    stuck.go_on()
    paths.wait(paths.up)


def owner(fabric, paths, hosts, scripts):
    one, two = hosts
    new, new_b = (paths.down[way] for way in paths.ways(*hosts))
    for name, script in scripts.items():
        say(name)
        fabric.play(script.format(one=fabric.hosts[one], two=fabric.hosts[two], new=new, new_b=new_b, alt=ALT,
                                  cut=f"vfabric -k {CONTROL} 'Unlink {LINK}'"))
        paths.wait(paths.down)
        paths.moved("ReLink")


def killed(fabric, paths, hosts):
    say("killed")
    victim = Stuck(fabric, hosts, 18610)
    victim.cut()
    for job in victim.pair.jobs:
        job.kill(9)
        job.wait(30, check=False)
    paths.wait(paths.down)
    paths.moved("ReLink")


def suspended(fabric, paths, stuck):
    stuck.cut()
    said = fabric.guest.run(f"repath suspend {stuck.devs[0]} timeout 60", timeout=90)
    print("    " + said.splitlines()[-1], flush=True)
    fabric.guest.run(f"repath resume {stuck.devs[0]} timeout 60", timeout=90)
    stuck.go_on()
    reroute(fabric, "ReLink", paths.up)
    paths.wait(paths.up)


def churn(fabric, paths, hosts, pairs):
    guest = fabric.guest
    one, two = (fabric.hosts[host] for host in hosts)
    guest.run(f"cat > /run/modify <<'END'\n{MODIFY.format(one=one, two=two)}END\n")
    job = guest.start(CHURN.format(one=one, two=two, timing=TIMING, slowness=guest.bed.kernel.slowness))
    dice = random.Random(1)
    for turn in range(ROUNDS):
        for what in "Unlink", "ReLink":
            fabric.command(f"{what} {LINK}")
            if turn % 2:
                for end, path in zip((one, two), paths.ways(*hosts)):
                    guest.run(f"repath path set {end}/1 dlid {path[1]} sl {dice.randrange(4)}")
            time.sleep(dice.random() * 3)
            assert job.running, job.output()
    for pair in pairs:
        pair.wait_progress(20)
    guest.run("touch /run/stop")
    job.wait(180)
    print("    " + guest.run("tr '\\n' ',' < /run/churn"), flush=True)
    assert "\n0 " not in "\n" + guest.run("cat /run/churn")
    # What the administrator has set is none of the subnet administration's.
    reroute(fabric, "Unlink", paths.down)
    for dev in one, two:
        guest.run(f"repath path ask {dev}")
    paths.wait(paths.down)
    paths.moved("ReLink")


def removed(fabric, paths, stuck, pairs, host):
    """Who used it has lost it."""
    stuck.cut()
    fabric.remove(host)
    for pair in (stuck.pair, *pairs):
        for job in pair.jobs:
            job.wait(150, check=False)
            assert job.status == 1, f"{job.status}: {job.output()[-2000:]}"
    fabric.command(f"ReLink {LINK}")
    paths.wait(paths.up)


def middle(fabric, paths, pairs):
    hosts, others = paths.choose()
    print(f"  {hosts}, with the shim {others}", flush=True)
    busy = [Pair(fabric.guest, fabric.guest, f"{BUSY} -d {fabric.hosts[one]}", f"-i 0.5 {TIMING}", env=env,
                 port=port, server_options=f"-d {fabric.hosts[two]}")
            for (one, two), env, port in ((hosts, "", 18600), (others, SHIM, 18601))]
    pairs += busy
    stuck = Stuck(fabric, hosts, 18602)
    shims = Stuck(fabric, others, 18603, SHIM)
    pairs += stuck.pair, shims.pair
    for pair in pairs:
        pair.wait_running()
    say("the next reroute")
    next_reroute(fabric, paths, stuck)
    owner(fabric, paths, hosts, OWNER)
    killed(fabric, paths, hosts)
    say("suspend and resume")
    suspended(fabric, paths, shims)
    say("all at once")
    churn(fabric, paths, hosts, pairs)
    for hca in fabric.hosts.values():
        for name in ("move-failed", "move-no-way"):
            assert not count(fabric.guest, hca, name), (hca, name)
    say("removed")
    removed(fabric, paths, stuck, busy[:1], hosts[0])
    for pair in (busy[1], shims.pair):
        pair.wait_progress(20)
        pair.finish()


def migrating(fabric, hosts):
    """The same HCAs with path migration, and what their owners do with that."""
    load(fabric, opensm=OPENSM, hosts=hosts)
    wait_subscribed(fabric.guest, fabric.hosts.values())
    paths = Paths(fabric)
    owner(fabric, paths, paths.choose()[0], OWN_APM)


def test(bed):
    fabric = bed.fabric("mesh:3x2", opensm=OPENSM, repath="method auto", memory=640, module="apm=0")
    fabric.judged = True
    guest = fabric.guest
    guest.load_repath(MODULE)
    wait_subscribed(guest, fabric.hosts.values())
    hosts, paths, pairs = list(fabric.hosts), Paths(fabric), []
    try:
        middle(fabric, paths, pairs)
        migrating(fabric, hosts)
    except Exception:
        explain(fabric, pairs)
        raise
    guest.run("rmmod ib_repath")
