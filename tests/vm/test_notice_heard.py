# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The module hears the subnet manager: three HCAs subscribe with a stock OpenSM, take what it reports
once, over a bad cable too, and nothing from anybody else; they learn paths by reports and by asking,
subscribe again when the subnet manager comes back, when a cable does, and with other LIDs, and unsubscribe
when they leave."""

import re

from moves_traced import TRACE
from test_track_permissions import FAILED, refused
from tracking import repath

PROCESSORS = 1


# The fabric is as busy as a guest: alone.
GUESTS = 2

HCAS = ("vhca1", "vhca2", "vhca3")

# By LID alone, and by GID; then one end's port gets another LID.
CONNECTED = '''
    open a vhca2 1
    open b vhca3 1
    connect a b timeout=16
    open c vhca2 1
    open d vhca3 1
    connect c d timeout=16 gid
    recv a 1
    recv b 2
    recv c 1
    recv d 2
    send a 1 100
    done b recv 1 success
    send c 1 100
    done d recv 1 success
    !touch /run/connected; while [ ! -e /run/others ]; do sleep 0.2; done
    send b 1 100
    done b send 1 success
    done a recv 1 success
    send d 1 100
    done d send 1 success
    done c recv 1 success
    send a 1 100
    done a send 2 success
    send c 1 100
    done c send 2 success
'''


class Manager:
    """Reports to a port, as the subnet manager at vhca1 sends them."""

    def __init__(self, guest, lid):
        self.guest = guest
        self.lid = lid
        self.number = 0

    def report(self, words, sender="vhca1", options="-t 30000", again=False):
        """Was it answered?"""
        if not again:
            self.number += 1
        said = self.guest.run(f"sanotice -C {sender} -L {self.lid} {options} epoch=7 "
                              f"number={self.number} {words} || true", timeout=100)
        assert set(said.splitlines()) <= {"answered", "no answer"}, said
        return "no answer" not in said


def wait_subscribed(a, hcas=HCAS):
    for hca in hcas:
        a.wait_until(f'repath path sm dev {hca} | grep -q "state subscribed"', timeout=60)


def subscriptions(a):
    """What OpenSM has: [(port GUID's last digits, trap)]."""
    text = a.run("saquery -C vhca1 -I")
    return sorted(zip(re.findall(r"SubscriberGID\W+\S+:0:(\w+)", text),
                      re.findall(r"trap_num\W+(\d+)", text)))


def count(a, dev, name):
    found, = repath(a, f"stats dev {dev}")
    return found["counts"][name]


def wait_count(a, dev, name, wanted, timeout=30):
    """Wait until a counter is at least this."""
    a.wait_until(f"[ $(repath stats all dev {dev} | awk '$1 == \"{name}\" {{ print $2 }}') "
                 f"-ge {wanted} ]", timeout)


def paths(a, dev):
    return {path["dlid"]: path for path in repath(a, f"path dev {dev}")}


def reports(a, manager, slid, dlid):
    assert manager.report(f"serial=1 slid={slid} dlid={dlid} sl=2 mtu=4 rate=3")
    wait_count(a, "vhca2", "notice-repath", 1)
    path = paths(a, "vhca2")[dlid]
    assert (path["sl"], path["source"], path["mtu"]) == (2, "report", 2048), path
    assert count(a, "vhca2", "notice-again") == 0

    # The same once more: answered, and not taken for another.
    assert manager.report(f"serial=1 slid={slid} dlid={dlid} sl=5", again=True)
    wait_count(a, "vhca2", "notice-again", 1)
    assert paths(a, "vhca2")[dlid]["sl"] == 2

    assert manager.report(f"trap=68 serial=2 slid={slid} dlid={dlid}")
    wait_count(a, "vhca2", "notice-unpath", 1)
    assert paths(a, "vhca2")[dlid]["unpath"]

    # Of an older routing, when the path is about to break since: what that comes to is waited for.
    assert manager.report(f"serial=1 slid={slid} dlid={dlid} sl=7")
    wait_count(a, "vhca2", "notice-late", 1)
    assert paths(a, "vhca2")[dlid]["unpath"] and count(a, "vhca2", "sa-query") == 0
    assert manager.report(f"serial=2 slid={slid} dlid={dlid} sl=3")
    wait_count(a, "vhca2", "notice-repath", 3)
    path = paths(a, "vhca2")[dlid]
    assert path["sl"] == 3 and not path["unpath"], path

    # And when it is not: not believed, but the subnet administration is asked.
    assert manager.report(f"serial=1 slid={slid} dlid={dlid} sl=7")
    wait_count(a, "vhca2", "sa-query", 1)
    a.wait_until(f'repath path dev vhca2 dlid {dlid} | grep -q "source query"')
    path = paths(a, "vhca2")[dlid]
    assert path["sl"] == 0 and not path["unpath"], path

    # A report of another trap, another version, and about somebody else's path: only answered.
    heard = count(a, "vhca2", "notice-rx")
    for words in ("trap=64", f"version=99 slid={slid} dlid={dlid} sl=4",
                  f"serial=2 slid={dlid} dlid={slid} sl=4"):
        assert manager.report(words), words
    wait_count(a, "vhca2", "notice-rx", heard + 3)
    assert set(paths(a, "vhca2")) == {dlid} and paths(a, "vhca2")[dlid]["sl"] == 0


def forged(a, manager, slid, dlid):
    before = paths(a, "vhca2")[dlid]["sl"]
    assert not manager.report(f"serial=3 slid={slid} dlid={dlid} sl=6", sender="vhca3", options="-t 1000")
    wait_count(a, "vhca2", "notice-forged", 1)
    assert paths(a, "vhca2")[dlid]["sl"] == before
    # The number is not used up: the true one is heard.
    assert manager.report(f"serial=3 slid={slid} dlid={dlid} sl=3", again=True)
    a.wait_until(f'repath path dev vhca2 dlid {dlid} | grep -q "sl 3 "')


def asks(a, manager, lids):
    """A report that tells nothing: all paths are asked for, once, by who has a queue pair."""
    queries = count(a, "vhca2", "sa-query")
    heard = count(a, "vhca2", "notice-repath")
    assert manager.report("serial=4")
    wait_count(a, "vhca2", "notice-repath", heard + 1)
    assert count(a, "vhca2", "sa-query") == queries, "nobody uses a path"

    job = holds(a)
    assert manager.report("serial=5")
    wait_count(a, "vhca2", "sa-query", queries + 1)
    a.wait_until(f"[ $(repath path dev vhca2 | grep -c 'source query') -ge {len(lids)} ]")
    found = paths(a, "vhca2")
    assert set(lids) <= set(found), found
    assert all(found[lid]["slid"] == lids[1] and found[lid]["sl"] == 0 for lid in lids), found
    ends(a, job)

    # By an administrator, whoever uses it.
    assert not paths(a, "vhca3")
    a.run(f"mount -t tracefs none {TRACE}; echo 1 > {TRACE}/events/repath/sm_paths/enable")
    a.run("repath path ask vhca3")
    a.wait_until(f"grep -q ' read err' {TRACE}/trace")
    traced = re.findall(r"sm_paths: dev \d+ port 1 dlid (\d+) (\w+) err (-?\d+)", a.run(f"cat {TRACE}/trace"))
    number = len(a.run("repath path dev vhca3").splitlines())
    assert traced == [("0", "asked", "0"), ("0", "answered", "0"), ("0", "read", str(number))], traced


def bad_cable(a, fabric, manager, slid, dlid):
    """Each way nearly half is lost, and some come twice: each report arrives once."""
    before = count(a, "vhca2", "notice-repath")
    for port in ('"S2"[1]', '"H2"[1]'):
        fabric.command(f"Fault {port} loss=0.4 duplicate=0.3")
    # 15 SLs are enough for all kinds, but once in 200 times.
    for sl in range(1, 16):
        assert manager.report(f"serial=5 slid={slid} dlid={dlid} sl={sl}", options="-t 300 -r 60")
        ways = [fabric.faults(port) for port in ("S2[1]", "H2[1]")]
        if sl >= 5 and all(way[kind] for way in ways for kind in ("lost", "doubled")):
            break
    else:
        assert False, f"the cable was not that bad: {ways}"
    for port in ('"S2"[1]', '"H2"[1]'):
        fabric.command(f"Fault {port} loss=0 duplicate=0")
    print(f"  {sl} reports over a cable of which {ways}", flush=True)
    wait_count(a, "vhca2", "notice-repath", before + sl)
    assert count(a, "vhca2", "notice-repath") == before + sl
    assert paths(a, "vhca2")[dlid]["sl"] == sl


def restart(a, fabric, options="", command=":"):
    """OpenSM dies, and comes again; @command is run between."""
    a.run("kill -9 $(pidof opensm)")
    a.wait_until("! pidof opensm")
    fabric.sm_jobs.clear()
    a.run(command)
    fabric.start_opensm(options)


def restarts(a, fabric):
    """An OpenSM that knows nothing any more is told."""
    before = [count(a, hca, "sm-subscribed") for hca in HCAS]
    restart(a, fabric)
    for hca, subscribed in zip(HCAS, before):
        wait_count(a, hca, "sm-subscribed", subscribed + 1, timeout=60)
    wait_subscribed(a)
    assert len(subscriptions(a)) == 2 * len(HCAS), subscriptions(a)


def holds(a):
    """A program that has a queue pair on vhca2, connected to itself."""
    job = a.start("exec holdqp -d vhca2 -c")
    a.wait_until('[ $(repath qp dev vhca2 state RTS | grep -c holdqp) = 1 ]')
    return job


def ends(a, job):
    a.run(f"kill {a.run('pidof holdqp').strip()}")
    job.wait(20, check=False)


def follows(a, manager, serial, sl):
    """What is reported is heard, and done: the queue pair of the one program goes by this service level."""
    repaths = count(a, "vhca2", "notice-repath")
    assert manager.report(f"serial={serial} slid={manager.lid} dlid={manager.lid} sl={sl}")
    a.wait_until(f'repath qp dev vhca2 state RTS | grep holdqp | grep -q " sl {sl} "')
    assert count(a, "vhca2", "notice-repath") == repaths + 1


def flaps(a, fabric, manager):
    """The cable is pulled until OpenSM has forgotten the port, and put back: it is told again, asks for what it may have
    missed, and a queue pair that was there all the while is moved by what is reported then."""
    subscribed, queries = (count(a, "vhca2", name) for name in ("sm-subscribed", "sa-query"))
    job = holds(a)
    fabric.command('Unlink "H2"[1]')
    a.wait_until('repath path sm dev vhca2 | grep -q "state down"')
    a.wait_until("saquery -C vhca1 -I > /run/informs && ! grep -q ':0:21$' /run/informs", timeout=60)
    fabric.command('ReLink "H2"[1]')
    wait_count(a, "vhca2", "sm-subscribed", subscribed + 1, timeout=60)
    wait_count(a, "vhca2", "sa-query", queries + 1)
    assert fabric.lid("H2") == manager.lid
    follows(a, manager, 6, 3)
    ends(a, job)


def gets_lids(a, fabric, manager):
    """An OpenSM that gives hosts other LIDs, its own too: what was learnt of the old one is forgotten, and the queue
    pairs of another host, idle meanwhile, go to the new one."""
    job = a.start("exec qpscript", stdin=CONNECTED.encode())
    a.wait_until("[ -e /run/connected ] || ! pidof qpscript > /dev/null")
    # Who goes by a LID alone goes to who was told to be there.
    a.run("repath path ask vhca3")
    a.wait_until(f"repath path dev vhca3 | grep -q 'dlid {manager.lid} '")
    before = {hca: count(a, hca, "sm-subscribed") for hca in HCAS}
    assert paths(a, "vhca2")
    lids = {host: fabric.lid(host) + 100 * (host != "H3") for host in fabric.hosts}
    restart(a, fabric, "-F /run/lids.conf", "echo honor_guid2lid_file TRUE > /run/lids.conf; printf '" +
            "".join(f"{fabric.port_guid(host):#018x} {lid:#06x} {lid:#06x}\\n\\n" for host, lid in lids.items()) +
            "' > /run/opensm-H1/guid2lid")
    for hca, subscribed in before.items():
        wait_count(a, hca, "sm-subscribed", subscribed + 1, timeout=60)
    wait_subscribed(a)
    assert {host: fabric.lid(host) for host in lids} == lids
    sm, = repath(a, "path sm dev vhca2")
    assert (sm["lid"], sm["sm-lid"]) == (lids["H2"], lids["H1"]), sm
    a.wait_until(f"repath path dev vhca2 | grep -q ' slid {lids['H2']} '")
    assert {path["slid"] for path in paths(a, "vhca2").values()} == {lids["H2"]}
    a.wait_until(f"[ $(repath qp dev vhca3 state RTS | grep qpscript | grep -c ' dlid {lids['H2']} ') = 2 ]")
    a.run("touch /run/others")
    job.wait(60)
    manager.lid = lids["H2"]
    job = holds(a)
    follows(a, manager, 7, 4)
    path = paths(a, "vhca2")[lids["H2"]]
    assert (path["slid"], path["sl"], path["source"]) == (lids["H2"], 4, "report"), path
    ends(a, job)
    # Who is connected afterwards, and knows the path as it was.
    job = holds(a)
    a.wait_until('repath qp dev vhca2 state RTS | grep holdqp | grep -q " sl 4 "', timeout=70)
    ends(a, job)


def switched(a):
    # By who may: everybody may look.
    for words in ("listen vhca3 off", "ask vhca3"):
        refused(a, f"unshare -U repath path {words}", "not permitted")
        refused(a, f"unshare -U -r -n repath path {words}", "CAP_NET_ADMIN over the device's")
    assert "state subscribed" in a.run("unshare -U repath path sm dev vhca3")
    refused(a, "repath path ask vhca9", "no RDMA device", FAILED)
    a.run("repath path listen vhca3 off")
    a.wait_until('repath path sm dev vhca3 | grep -q "state off"')
    a.wait_until("[ $(saquery -C vhca1 -I | grep -c trap_num) = 4 ]")
    a.run("repath path listen vhca3 on")
    wait_subscribed(a, ["vhca3"])
    assert len(subscriptions(a)) == 6


def test(bed):
    fabric = bed.fabric("mesh:3")
    a = fabric.guest
    a.load_repath()
    wait_subscribed(a)
    assert subscriptions(a) == [(guid, trap) for guid in ("11", "21", "31")
                                for trap in ("68", "69")], subscriptions(a)
    lids = [fabric.lid(f"H{i}") for i in (1, 2, 3)]
    sm, = repath(a, "path sm dev vhca2")
    assert (sm["lid"], sm["sm-lid"]) == (lids[1], lids[0]), sm

    monitor = a.start("exec repath monitor path")
    manager = Manager(a, lids[1])
    reports(a, manager, lids[1], lids[2])
    forged(a, manager, lids[1], lids[2])
    asks(a, manager, lids)
    bad_cable(a, fabric, manager, lids[1], lids[2])
    monitor.wait_for(rf"path new dev vhca3 .* dlid {lids[0]} .* source query")
    monitor.wait_for(rf"path change dev vhca2 .* dlid {lids[2]} .* sl 5 .* source report")
    restarts(a, fabric)
    flaps(a, fabric, manager)
    gets_lids(a, fabric, manager)
    switched(a)

    # A device that goes while it is asked, and the module.
    a.run("repath path ask vhca2")
    fabric.remove("H2")
    a.run("rmmod ib_repath")
    a.wait_until("saquery -C vhca1 -I > /run/informs && ! grep SubscriberGID /run/informs | grep -qv ':0:21$'")
